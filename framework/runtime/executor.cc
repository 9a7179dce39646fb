#include "framework/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/base/format.h"
#include "framework/base/listed.h"
#include "framework/base/seed_of_evals.h"
#include "framework/passes/assign_offsets.h"
#include "framework/passes/category_sizes.h"
#include "framework/passes/nodes_of_groups.h"
#include "framework/passes/predict_traffic.h"
#include "framework/passes/updated_variables.h"
#include "framework/runtime/check_same_program.h"
#include "framework/runtime/plan_program.h"

namespace zg {
namespace {

// Error: the mesh has features that the executor does not support.
Status CheckMesh(const ir::Graph& graph) {
  const int num_data_ranks = graph.mesh().num_data_ranks();
  if (graph.micro_batches() % num_data_ranks != 0) {
    return InvalidArgument(
        "graph {}: got {} micro-batches per step, expected a multiple of the {} data ranks of "
        "mesh({})",
        graph.name(), graph.micro_batches(), num_data_ranks, graph.mesh().ToString());
  }
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    NdSbp split = AllBroadcast(graph.mesh());
    for (size_t axis = 0; axis < tensor.split.size(); ++axis) {
      if (tensor.split[axis].is_split()) split[axis] = tensor.storage->sbp[axis];
    }
    const Shape part = LocalShape(tensor.storage->type.shape, split, graph.mesh());
    for (size_t axis = 0; axis < tensor.storage->sbp.size(); ++axis) {
      const Sbp sbp = tensor.storage->sbp[axis];
      if (sbp.is_broadcast() || split[axis].is_split()) continue;
      if (sbp.is_split() && IsFirstLongDim(part, sbp.dim())) continue;
      return InvalidArgument(
          "graph {}: tensor \"{}\" is stored in %{} with placement {}, expected a range of its "
          "elements along each axis that does not split the tensor itself",
          graph.name(), tensor.name, tensor.storage->name, ToString(tensor.storage->sbp));
    }
  }
  return Status::Ok();
}

// Caches hold zeros until a program writes to them. They count as touched although no step uses
// them.
Status ClearCaches(const RankMemory& memory, Device& device, MemoryMeter* meter) {
  const ir::Section& variables = *memory.graph().section(ir::SectionKind::kVariables);
  for (const ir::Node* node : variables.nodes) {
    if (!node->attributes.Has("placement")) continue;  // only caches have it
    const Operand cache = memory.OperandOf(node->outputs[0]);
    ZG_RETURN_IF_ERROR(device.Zero(memory.AddressOf(cache), cache.bytes()));
    meter->Touch(cache.buffer, Lifetime::kAllTimelines, 0, cache.begin, cache.end);
  }
  return Status::Ok();
}

// Variables that only programs of other phases change count as touched, too: they hold their values.
void TouchThoseOfOtherPhases(const RankMemory& memory, MemoryMeter* meter) {
  for (const ir::Node* node : memory.graph().section(ir::SectionKind::kVariables)->nodes) {
    if (IsUpdated(*node->outputs[0])) continue;
    const Operand variable = memory.OperandOf(node->outputs[0]);
    meter->Touch(variable.buffer, Lifetime::kAllTimelines, 0, variable.begin, variable.end);
  }
}

int64_t NumTransfersPerStep(const ir::Graph& graph) {
  int64_t count = 0;
  for (const auto& [op, traffic] : PredictTraffic(graph)) count += traffic.count;
  return count;
}

}  // namespace

Executor::Executor(const ir::Graph* graph, Communicator* communicator, ExecutorOptions options)
    : graph_(graph),
      communicator_(communicator),
      device_(communicator->device()),
      options_(options) {
  set_changed();
  if (options.arena_of == nullptr) return;
  owner_ = options.arena_of;
  owner_->guests_.push_back(this);
}

Executor::~Executor() {
  std::vector<const Executor*>& guests = owner_->guests_;
  guests.erase(std::remove(guests.begin(), guests.end(), this), guests.end());
  if (owner_->last_stepped_ == this) owner_->last_stepped_ = owner_;
  if (owner_ == this && is_in_arena_) communicator_->arena().set_is_used(false);
}

StatusOr<std::unique_ptr<Executor>> Executor::Create(const ir::Graph* graph,
                                                     const KernelRegistry& kernels,
                                                     Communicator* communicator,
                                                     ExecutorOptions options) {
  if (communicator->size() != graph->mesh().num_ranks()) {
    return FailedPrecondition("graph {}: it is compiled for {} ranks, the job has {}",
                              graph->name(), graph->mesh().num_ranks(), communicator->size());
  }
  ZG_RETURN_IF_ERROR(CheckSameProgram(*graph, options.seed, *communicator));
  ZG_RETURN_IF_ERROR(CheckMesh(*graph));
  std::unique_ptr<Executor> executor(new Executor(graph, communicator, options));
  executor->num_data_ranks_ = graph->mesh().num_data_ranks();
  executor->data_index_ = graph->mesh().DataIndex(communicator->rank());
  RunnerOptions runner_options;
  runner_options.detect_anomaly = options.detect_anomaly;
  runner_options.record = options.record;
  runner_options.threads = kernels.options().threads;
  if (options.profile_clock != nullptr) {
    runner_options.profiler = &executor->profiler_.emplace(options.profile_clock);
  }
  if (options.gradient_histograms_every > 0) {
    runner_options.gradient_histograms =
        &executor->gradient_histograms_.emplace(options.gradient_histograms_every);
  }
  ZG_ASSIGN_OR_RETURN(executor->runner_, MakeRunner(*graph, communicator, runner_options));
  ZG_ASSIGN_OR_RETURN(
      ProgramPlan program,
      PlanProgram(*graph, kernels, communicator->arena().workspace_bytes(), options.memory));
  executor->plan_ = std::move(program.memory);
  executor->meter_ = std::make_unique<MemoryMeter>(executor->plan_.buffers);
  ZG_ASSIGN_OR_RETURN(std::byte* const arena, executor->AllocateArena());
  ZG_ASSIGN_OR_RETURN(executor->program_,
                      BindProgram(RankMemory(graph, &executor->plan_, arena, communicator->rank()),
                                  std::move(program.kernels), communicator));
  ZG_RETURN_IF_ERROR(
      ClearCaches(executor->program_.memory, executor->device_, executor->meter_.get()));
  if (!options.variant.phase.empty()) {
    TouchThoseOfOtherPhases(executor->program_.memory, executor->meter_.get());
  }
  if (executor->profiler_) {
    for (const InstructionList* list : executor->program_.Lists()) {
      for (const Instruction& instruction : list->instructions) {
        executor->profiler_->AddNode(instruction.index, *graph, *instruction.node);
      }
    }
    const BoundProgram& bound = executor->program_;
    const auto per_micro_batch = static_cast<int64_t>(bound.micro_batch.instructions.size()) + 1;
    executor->profiler_->KeepTimeline(options.timeline_steps,
                                      executor->micro_batches_per_rank() * per_micro_batch +
                                          static_cast<int64_t>(bound.update.instructions.size()),
                                      bound.num_starts == 0 ? 0 : NumTransfersPerStep(*graph));
  }
  executor->same_.emplace(communicator, &executor->program_);
  ZG_RETURN_IF_ERROR(executor->runner_->Prepare(
      &executor->program_, options.measure_memory ? executor->meter_.get() : nullptr));
  return executor;
}

void Executor::set_changed() {
  static std::atomic<int64_t> last{0};  // of all executors of the process
  version_ = ++last;
}

StatusOr<std::byte*> Executor::AllocateArena() {
  if (owner_ != this) return communicator_->arena().data();
  if (communicator_->arena().is_used()) {
    return FailedPrecondition(
        "graph {}: the arena of its communicator holds the program of another executor; give it a "
        "Communicator::Duplicate()",
        graph_->name());
  }
  const int workspace = plan_.communicator_workspace;
  StatusOr<std::byte*> arena = communicator_->arena().Allocate(
      plan_.arena_bytes, workspace < 0 ? 0 : plan_.buffers[workspace].offset);
  if (arena.status().code() == StatusCode::kFailedPrecondition) {
    return Status(arena.status().code(),
                  fmt::format("{}\n  each rank: {}, together at most {}", arena.status().message(),
                              CategorySizes(plan_), FormatBytes(plan_.arena_bytes)));
  }
  is_in_arena_ = arena.ok();
  communicator_->arena().set_is_used(is_in_arena_);
  return arena;
}

// Settles first: what the last step has left to this one may be waited for by nodes that do not run.
Status Executor::ActivateNodesOf(const StepGroups& groups) {
  const std::vector<int64_t>& numbers = program_.update_numbers;
  std::optional<std::set<int64_t>> active;
  if (std::find(numbers.begin(), numbers.end(), 0) != numbers.end()) {
    active.emplace();
    for (size_t group = 0; group < numbers.size(); ++group) {
      if (numbers[group] != 0) active->insert(static_cast<int64_t>(group));
    }
  }
  if (active == active_groups_) return Status::Ok();
  if (options_.record) {
    return InvalidArgument("it updates the groups {} only, which cannot be recorded (`record`)",
                           groups.names);
  }
  ZG_RETURN_IF_ERROR(Settle());
  std::unordered_set<const ir::Node*> nodes;
  if (active) nodes = NodesOfGroups(*graph_, *active);
  for (InstructionList* list : {&program_.micro_batch, &program_.update}) {
    for (Instruction& instruction : list->instructions) {
      instruction.is_active = !active || nodes.count(instruction.node) != 0;
    }
  }
  active_groups_ = std::move(active);
  return Status::Ok();
}

Status Executor::RunStep(int64_t step, double lr_factor, const Feed& feed,
                         const StepGroups& groups) {
  const Communicator::Call call(*communicator_);
  ZG_RETURN_IF_ERROR(call.status());
  StepContext context;
  context.seed = options_.seed;
  context.step = step;
  context.lr_factor = lr_factor;
  context.stop_on_non_finite = options_.stop_on_non_finite;
  ZG_RETURN_IF_ERROR(TakeTurn());
  const Status same_step = same_->CheckStep(lr_factor, groups.names, options_.variant);
  if (!same_step.ok()) return same_step.WithContext(fmt::format("step {}", step));
  for (size_t group = 0; group < program_.update_numbers.size(); ++group) {
    const bool is_given = group < groups.update_numbers.size();
    program_.update_numbers[group] = is_given ? groups.update_numbers[group] : step;
  }
  if (const Status active = ActivateNodesOf(groups); !active.ok()) {
    return active.WithContext(fmt::format("step {}", step));
  }
  if (profiler_) profiler_->BeginStep(step);
  if (!before_steps_) before_steps_ = communicator_->traffic();
  for (int64_t j = 0; j < micro_batches_per_rank(); ++j) {
    context.micro_batch = j * num_data_ranks_ + data_index_;
    context.first_micro_step = j == 0;
    const Status status = RunMicroBatch(context, feed);
    ForgetInputs("");
    ZG_RETURN_IF_ERROR(status);
  }
  ZG_RETURN_IF_ERROR(runner_->Run(program_.update, context));
  if (profiler_) profiler_->EndStep();
  ZG_RETURN_IF_ERROR(runner_->Finish(context));
  return runner_->leaves_work() ? Status::Ok() : Settle();
}

Status Executor::RunMicroBatch(const StepContext& context, const Feed& feed) {
  const int64_t feed_begin = profiler_ ? profiler_->Now() : 0;
  ZG_RETURN_IF_ERROR(feed(context.micro_batch));
  if (profiler_) profiler_->EndFeed(feed_begin);
  if (const Status same = same_->CheckInputs(program_.micro_batch); !same.ok()) {
    return same.WithContext(fmt::format("step {}", context.step));
  }
  return runner_->Run(program_.micro_batch, context);
}

// What another executor's last step has left to its next one ends here.
Status Executor::TakeTurn() {
  owner_->last_eval_ = nullptr;
  owner_->set_changed();
  if (owner_->last_stepped_ == this) return Status::Ok();
  owner_->last_stepped_ = this;
  return Settle();
}

Status Executor::Settle() const {
  for (const Executor* guest : owner_->guests_) ZG_RETURN_IF_ERROR(guest->SettleOwn());
  return owner_->SettleOwn();
}

Status Executor::SettleOwn() const {
  ZG_RETURN_IF_ERROR(runner_->Settle());
  if (before_steps_) AddDifference(*before_steps_, communicator_->traffic(), &step_traffic_);
  before_steps_.reset();
  return Status::Ok();
}

StatusOr<bool> Executor::RemakeKernels(const std::vector<const ir::Node*>& nodes,
                                       const KernelRegistry& kernels) {
  ZG_RETURN_IF_ERROR(Settle());
  const std::unordered_set<const ir::Node*> remade(nodes.begin(), nodes.end());
  std::vector<std::pair<Instruction*, std::unique_ptr<Kernel>>> made;
  for (InstructionList* list : program_.Lists()) {
    for (Instruction& instruction : list->instructions) {
      if (remade.count(instruction.node) == 0) continue;
      ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                          MakeKernelOf(*graph_, *instruction.node, kernels));
      if (kernel->workspace_bytes() != instruction.kernel->workspace_bytes()) return false;
      made.emplace_back(&instruction, std::move(kernel));
    }
  }
  for (auto& [instruction, kernel] : made) instruction->kernel = std::move(kernel);
  runner_->ForgetRecordings();
  return true;
}

StatusOr<TrafficCounters> Executor::StepTraffic() const {
  ZG_RETURN_IF_ERROR(Settle());
  TrafficCounters traffic = step_traffic_;
  for (const Executor* guest : guests_) AddDifference({}, guest->step_traffic_, &traffic);
  return traffic;
}

StatusOr<LocalPart> Executor::LocalPartOf(const ir::StoredTensor& tensor) const {
  ZG_RETURN_IF_ERROR(Settle());
  return program_.memory.PartOf(tensor);
}

Status Executor::NoEval(std::string_view eval) const {
  std::vector<std::string> names;
  for (const auto& [name, list] : program_.evals) names.push_back(name);
  return InvalidArgument("graph {}: it has no eval program \"{}\"; it has {}", graph_->name(), eval,
                         Listed(names));
}

Status Executor::RunEval(std::string_view eval, const EvalRun& run) {
  const auto list = program_.evals.find(eval);
  if (list == program_.evals.end()) return NoEval(eval);
  const Communicator::Call call(*communicator_);
  ZG_RETURN_IF_ERROR(call.status());
  const Status status = RunEvalList(eval, list->second, run);
  ForgetInputs(eval);
  return status;
}

Status Executor::RunEvalList(std::string_view eval, InstructionList& list, const EvalRun& run) {
  StepContext context;
  context.seed = SeedOfEvals(options_.seed, run.steps_done);
  context.micro_batch = run.number * num_data_ranks_ + data_index_;
  if (const Status same = same_->CheckInputs(list); !same.ok()) {
    return same.WithContext(fmt::format("eval {}", eval));
  }
  last_eval_ = &list;
  if (evals_run_.find(eval) == evals_run_.end()) evals_run_.emplace(eval);
  ZG_RETURN_IF_ERROR(Settle());
  ZG_RETURN_IF_ERROR(runner_->Run(list, context));
  return runner_->Finish(context);
}

std::vector<std::string> Executor::EvalsNotRun() const {
  std::vector<std::string> names;
  for (const auto& [name, list] : program_.evals) {
    if (evals_run_.find(name) == evals_run_.end()) names.push_back(name);
  }
  return names;
}

StatusOr<const OutputSlot*> Executor::Output(std::string_view name) const {
  for (const OutputSlot& slot : program_.outputs) {
    if (slot.name == name) return &slot;
  }
  std::vector<std::string> names;
  for (const OutputSlot& slot : program_.outputs) names.push_back(slot.name);
  return InvalidArgument("graph {}: training has no result \"{}\"; it has {}", graph_->name(), name,
                         Listed(names));
}

int64_t Executor::step_result_bytes() const {
  int64_t bytes = 0;
  for (const OutputSlot& slot : program_.outputs) bytes += static_cast<int64_t>(slot.data.size());
  return bytes;
}

StatusOr<Executor::LocalResult> Executor::Result(std::string_view eval,
                                                 std::string_view name) const {
  for (const EvalResult& result : program_.results) {
    if (result.eval != eval || result.name != name) continue;
    if (last_eval_ == nullptr || last_eval_ != &program_.evals.find(eval)->second) {
      return FailedPrecondition(
          "graph {}, eval {}: its result \"{}\" is not there: it is kept until the next run, and "
          "{} "
          "ran last; run the eval, then take its results",
          graph_->name(), eval, name, last_eval_ == nullptr ? "a step" : "another eval");
    }
    return LocalResult{result.value, program_.memory.AddressOf(result.value)};
  }
  if (program_.evals.find(eval) == program_.evals.end()) return NoEval(eval);
  return InvalidArgument("graph {}, eval {}: it has no result \"{}\"", graph_->name(), eval, name);
}

std::optional<Profile> Executor::profile() const {
  std::optional<Profile> profile = profiler_ ? profiler_->Result() : std::nullopt;
  if (profile) profile->variant = options_.variant;
  return profile;
}

}  // namespace zg
