// The proof that nothing races, on correct schedules and on schedules with a seeded fault.
#include "framework/passes/check_races.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/runtime/plan_program.h"
#include "models/gpt/model.h"
#include "zero/compile.h"

namespace zg::zero {
namespace {

// A schedule of a small GPT.
struct Setting {
  int stage = 0;
  int64_t micro_steps = 1;
  int64_t overlap_bytes = CompileOptions::kUnlimitedBytes;
  DType dtype = DType::kF32;
  bool update_early = false;
  std::string ToString() const {
    return fmt::format("stage {}, {} micro-steps, {} bytes, {}{}", stage, micro_steps,
                       overlap_bytes, DTypeName(dtype), update_early ? ", early updates" : "");
  }
};

Program CompileAt(const Setting& setting) {
  static models::Gpt model(models::GptConfig{
      .layers = 2, .heads = 2, .channels = 24, .context = 12, .vocabulary = 30, .dropout = 0.1});
  static Graph* const graph = [] {
    auto* const made = new Graph("gpt");
    const auto loss = [](Inputs& in) {
      return cross_entropy(model(in.i64("x", {2, 12})), in.i64("y", {2, 12}));
    };
    made->train(optim::AdamW(), loss);
    made->eval("validate", loss);
    return made;
  }();
  CompileOptions options;
  options.zero.stage = setting.stage;
  options.zero.bucket_bytes = 4096;
  options.micro_batches = 3 * setting.micro_steps;
  options.overlap_bytes = setting.overlap_bytes;
  options.dtype = setting.dtype;
  options.update_early = setting.update_early;
  return Compile(*graph, Mesh::DataParallel(3), options, TargetOf(CpuKernels(), 1024)).value();
}

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int64_t micro_steps : {1, 2}) {
      for (const int64_t bytes : {int64_t{20000}, CompileOptions::kUnlimitedBytes}) {
        settings.push_back({stage, micro_steps, bytes});
      }
    }
    settings.push_back({stage, 1, CompileOptions::kUnlimitedBytes, DType::kBF16});
    settings.push_back({stage, 1, CompileOptions::kUnlimitedBytes, DType::kF32, true});
  }
  return settings;
}

TEST(CheckRaces, PassesTrueSchedules) {
  for (const Setting& setting : Settings()) {
    SCOPED_TRACE(setting.ToString());
    const Program program = CompileAt(setting);
    const StatusOr<RaceProof> proof = CheckRaces(program.graph, program.memory);
    ASSERT_TRUE(proof.ok()) << proof.status().message();
    EXPECT_GT(proof->transfers, 0);
    EXPECT_GT(proof->accesses, 0);
  }
}

// A program into which a fault is put.
class Patient {
 public:
  Patient(Program program, unsigned seed) : program_(std::move(program)), random_(seed) {}

  ir::Graph& graph() { return program_.graph; }
  MemoryPlan& plan() { return program_.memory; }
  StatusOr<RaceProof> Check() const { return CheckRaces(program_.graph, program_.memory); }

  template <typename T>
  T* Pick(const std::vector<T*>& from) {
    return from.empty() ? nullptr : from[random_() % from.size()];
  }

  std::vector<ir::Node*> Nodes(const std::function<bool(const ir::Node&)>& which) {
    std::vector<ir::Node*> nodes;
    for (ir::Node* node : graph().AllNodes()) {
      if (which(*node)) nodes.push_back(node);
    }
    return nodes;
  }

  // The waits for transfers that were started in the same section.
  std::vector<ir::Node*> WaitsInTheirSection() {
    return Nodes([](const ir::Node& node) {
      return node.op->traits.kind == ir::OpKind::kWait && !ir::IsVariable(*node.inputs[0]) &&
             node.inputs[0]->producer->section == node.section;
    });
  }

  static bool Computes(const ir::Node& node) {
    return node.op->traits.has_kernel() && !ir::MovesData(node);
  }
  // Whether the nodes after this one come after the transfer: it waits for that transfer or a later
  // one.
  bool Orders(const ir::Node& node, const ir::Node& start) {
    if (ir::MovesData(node)) return !ir::IsStart(node);
    if (node.op->traits.kind != ir::OpKind::kWait) return false;
    const std::vector<ir::Node*> starts = ir::StartsOf(node);
    return std::any_of(starts.begin(), starts.end(), [&](const ir::Node* other) {
      return other->section == start.section && graph().IndexOf(other) >= graph().IndexOf(&start);
    });
  }
  // The nodes that compute while the transfer of a wait in the same section is in flight.
  std::vector<ir::Node*> Beside(const ir::Node& wait) {
    const ir::Node& start = *wait.inputs[0]->producer;
    std::vector<ir::Node*> beside;
    for (ir::Node* node = graph().NextOf(&start); !Orders(*node, start);
         node = graph().NextOf(node)) {
      if (Computes(*node)) beside.push_back(node);
    }
    return beside;
  }
  // Whether only the transfer's wait, in the same section, orders the node after the transfer.
  bool IsOnlyOrderedByWait(const ir::Node& wait, const ir::Node& reader) {
    const ir::Node& start = *wait.inputs[0]->producer;
    if (reader.section != wait.section) return false;
    for (ir::Node* node = graph().NextOf(&start); node != &reader; node = graph().NextOf(node)) {
      if (node == nullptr || (node != &wait && Orders(*node, start))) return false;
    }
    return true;
  }
  // The first node that computes with the awaited value, also through views.
  ir::Node* FirstReader(const ir::Value& value) {
    ir::Node* first = nullptr;
    for (ir::Node* user : value.users) {
      ir::Node* const reader = user->op->traits.kind == ir::OpKind::kView
                                   ? FirstReader(*user->outputs[0])
                                   : (Computes(*user) ? user : nullptr);
      if (reader == nullptr || reader->section != value.producer->section) continue;
      if (first == nullptr || graph().IndexOf(reader) < graph().IndexOf(first)) first = reader;
    }
    return first;
  }

  // The waits that alone order the first reader after the transfer.
  std::vector<ir::Node*> NeededWaits() {
    std::vector<ir::Node*> waits = WaitsInTheirSection();
    Keep(&waits, [&](const ir::Node& wait) {
      const ir::Node* const reader = FirstReader(*wait.outputs[0]);
      return reader != nullptr && IsOnlyOrderedByWait(wait, *reader);
    });
    return waits;
  }
  // The value that the transfer of a wait reads.
  static ir::Value* Read(const ir::Node& wait) { return wait.inputs[0]->producer->inputs[0]; }
  static ir::Value* Written(const ir::Node& wait) { return wait.inputs[0]; }
  // The waits for transfers that overlap a computation, where the value is not in a variable.
  std::vector<ir::Node*> WaitsBesideWork(ir::Value* (*value)(const ir::Node& wait)) {
    std::vector<ir::Node*> waits = WaitsInTheirSection();
    Keep(&waits,
         [&](const ir::Node& wait) { return !IsInVariable(value(wait)) && !Beside(wait).empty(); });
    return waits;
  }

  // Moves the buffer to the address of another one.
  void PutOnto(int buffer, int other) {
    plan().buffers[buffer].offset = plan().buffers[other].offset;
  }
  int BufferOf(const ir::Value* value) { return plan().storage.Of(value).buffer; }
  bool IsInVariable(const ir::Value* value) {
    return ir::IsVariable(*plan().storage.buffers[BufferOf(value)].root);
  }

 private:
  static void Keep(std::vector<ir::Node*>* nodes,
                   const std::function<bool(const ir::Node&)>& which) {
    nodes->erase(std::remove_if(nodes->begin(), nodes->end(),
                                [&](const ir::Node* node) { return !which(*node); }),
                 nodes->end());
  }

  Program program_;
  std::mt19937 random_;
};

// Each seeds a fault if the program has a place for it, and returns whether it did.
using Fault = std::function<bool(Patient&)>;

// The transfer begins before its input has been written.
bool StartsEarly(Patient& patient) {
  const auto reads_computed = [&](const ir::Node& node) {
    if (!ir::IsStart(node)) return false;
    const ir::Node* writer = node.inputs[0]->producer;
    while (writer->op->traits.kind == ir::OpKind::kPack) writer = writer->inputs.back()->producer;
    return Patient::Computes(*writer) && writer->section == node.section;
  };
  ir::Node* const start = patient.Pick(patient.Nodes(reads_computed));
  if (start == nullptr) return false;
  ir::Node* writer = start->inputs[0]->producer;
  while (writer->op->traits.kind == ir::OpKind::kPack) writer = writer->inputs.back()->producer;
  patient.graph().MoveBefore(start, writer);
  return true;
}

// A node reads before the wait.
bool ReadsBeforeWait(Patient& patient) {
  ir::Node* const wait = patient.Pick(patient.NeededWaits());
  if (wait == nullptr) return false;
  patient.graph().MoveAfter(wait, patient.FirstReader(*wait->outputs[0]));
  return true;
}

// The wait is for an earlier transfer.
bool WaitsForAnother(Patient& patient) {
  ir::Node* const wait = patient.Pick(patient.NeededWaits());
  if (wait == nullptr) return false;
  ir::Node* const start = wait->inputs[0]->producer;
  for (ir::Node* other : start->section->nodes) {
    if (other == start) return false;
    if (!ir::IsStart(*other)) continue;
    patient.graph().ReplaceInput(wait, 0, other->outputs[0]);
    return true;
  }
  return false;
}

// Nothing waits for the parameters that the previous step has sent.
bool ForgetsTheStepBefore(Patient& patient) {
  const auto is_of_variable = [](const ir::Node& node) {
    return node.op->traits.kind == ir::OpKind::kWait && ir::IsVariable(*node.inputs[0]);
  };
  const std::vector<ir::Node*> waits = patient.Nodes(is_of_variable);
  if (waits.empty()) return false;
  // The wait for the last transfer of a step, which waits for others do not order.
  const auto place = [&](const ir::Node* wait) {
    return patient.graph().IndexOf(ir::StartsOf(*wait).front());
  };
  ir::Node* const wait =
      *std::max_element(waits.begin(), waits.end(),
                        [&](const ir::Node* a, const ir::Node* b) { return place(a) < place(b); });
  patient.graph().ReplaceAllUses(wait->outputs[0], wait->inputs[0]);
  patient.graph().Erase(wait);
  return true;
}

// The memory that a transfer reads is given to a result beside it.
bool FreesWhatIsRead(Patient& patient) {
  ir::Node* const wait = patient.Pick(patient.WaitsBesideWork(Patient::Read));
  if (wait == nullptr) return false;
  const ir::Node* const beside = patient.Pick(patient.Beside(*wait));
  const int read = patient.BufferOf(Patient::Read(*wait));
  const int result = patient.BufferOf(beside->outputs[0]);
  if (read == result || patient.IsInVariable(beside->outputs[0])) return false;
  patient.PutOnto(result, read);
  return true;
}

// A result beside a transfer is in the memory that the transfer writes.
bool WritesWhereItArrives(Patient& patient) {
  ir::Node* const wait = patient.Pick(patient.WaitsBesideWork(Patient::Written));
  if (wait == nullptr) return false;
  const ir::Node* const beside = patient.Pick(patient.Beside(*wait));
  const int written = patient.BufferOf(Patient::Written(*wait));
  const int result = patient.BufferOf(beside->outputs[0]);
  if (written == result || patient.IsInVariable(beside->outputs[0])) return false;
  patient.PutOnto(result, written);
  return true;
}

// A computation beside a transfer reads memory that the transfer writes.
bool ReadsWhereItArrives(Patient& patient) {
  ir::Node* const wait = patient.Pick(patient.WaitsBesideWork(Patient::Written));
  if (wait == nullptr) return false;
  const ir::Node* const beside = patient.Pick(patient.Beside(*wait));
  const int read = patient.BufferOf(beside->inputs[0]);
  const int written = patient.BufferOf(Patient::Written(*wait));
  if (written == read || patient.IsInVariable(beside->inputs[0])) return false;
  patient.PutOnto(written, read);
  return true;
}

// The scratch memory where chunks of peers arrive is also used by another buffer.
bool SharesTheTransportsRoom(Patient& patient) {
  ir::Node* const wait = patient.Pick(patient.WaitsInTheirSection());
  if (wait == nullptr || patient.Beside(*wait).empty()) return false;
  const ir::Node* const beside = patient.Pick(patient.Beside(*wait));
  if (patient.IsInVariable(beside->outputs[0])) return false;
  patient.PutOnto(patient.plan().communicator_workspace, patient.BufferOf(beside->outputs[0]));
  return true;
}

// The last transfer of an eval is started, and nothing waits for it.
bool NobodyWaits(Patient& patient) {
  const auto moves_in_eval = [](const ir::Node& node) {
    return ir::MovesData(node) && node.section->kind == ir::SectionKind::kEval;
  };
  const std::vector<ir::Node*> transfers = patient.Nodes(moves_in_eval);
  if (transfers.empty() || ir::IsStart(*transfers.back())) return false;
  transfers.back()->attributes.Set("start", true);
  return true;
}

TEST(CheckRaces, CatchesSeededFaults) {
  const std::vector<std::pair<const char*, Fault>> faults = {
      {"starts early", StartsEarly},
      {"reads before the wait", ReadsBeforeWait},
      {"waits for another", WaitsForAnother},
      {"forgets the step before", ForgetsTheStepBefore},
      {"frees what is read", FreesWhatIsRead},
      {"writes where it arrives", WritesWhereItArrives},
      {"reads where it arrives", ReadsWhereItArrives},
      {"shares the transport's room", SharesTheTransportsRoom},
      {"nobody waits", NobodyWaits},
  };
  int seeded = 0;
  int caught = 0;
  for (const auto& [name, fault] : faults) {
    int of_this_kind = 0;
    for (const Setting& setting : Settings()) {
      for (unsigned seed = 1; seed <= 2; ++seed) {
        Patient patient(CompileAt(setting), seed);
        if (!fault(patient)) continue;
        ++of_this_kind;
        ++seeded;
        const bool is_caught = !patient.Check().ok();
        caught += is_caught ? 1 : 0;
        EXPECT_TRUE(is_caught) << name << ", " << setting.ToString() << ", seed " << seed;
      }
    }
    EXPECT_GT(of_this_kind, 0) << name;
  }
  fmt::print("{} of {} seeded faults caught\n", caught, seeded);
  EXPECT_GE(seeded, 60);
}

}  // namespace
}  // namespace zg::zero
