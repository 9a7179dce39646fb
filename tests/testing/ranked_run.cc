#include "tests/testing/ranked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "framework/ir/printer.h"
#include "tests/testing/cache_rows.h"
#include "tests/testing/nodes_on_ranks.h"
#include "tests/testing/stored_tensors.h"
#include "tests/testing/virtual_mesh.h"

namespace zg::testing {
namespace {

// Whether nodes of the graph sum gradients over the micro-batches.
bool AccumulatesGradients(const ir::Graph& graph) {
  for (const ir::Node* node : graph.AllNodes()) {
    const bool adds_up = node->op->name == "accumulate" ||
                         (node->attributes.Has("axis") && node->inputs.size() == 2);
    if (adds_up && node->section->kind != ir::SectionKind::kForward) return true;
  }
  return false;
}

class Run {
 public:
  Run(const ir::Graph& graph, const RunOptions& options)
      : graph_(graph),
        options_(options),
        ranks_(graph),
        nodes_(graph, ranks_, options),
        accumulates_gradients_(AccumulatesGradients(graph)),
        micro_steps_(std::max<int64_t>(
            1, graph.micro_batches() / (ranks_.is_placed() ? ranks_.data_ranks() : 1))) {}

  StatusOr<Observations> Go() {
    for (const ir::Node* node : graph_.section(ir::SectionKind::kVariables)->nodes) {
      const ir::Value& variable = *node->outputs[0];
      nodes_.Set(variable, InitialVariable(graph_, variable, ranks_, options_));
    }
    SwapCaches(0);  // training does not read them
    for (step_ = 1; step_ <= options_.steps; ++step_) ZG_RETURN_IF_ERROR(RunStep());
    for (const auto& section : graph_.sections()) {
      if (section->kind != ir::SectionKind::kEval) continue;
      const int64_t runs = ranks_.is_placed() ? 1 : ranks_.data_ranks();
      for (int64_t run = 0; run < runs; ++run) {
        GoTo(run);
        SwapCaches(run);
        ZG_RETURN_IF_ERROR(RunSection(*section));
      }
    }
    return std::move(observations_);
  }

 private:
  void GoTo(int64_t micro_step) {
    micro_step_ = micro_step;
    nodes_.GoTo(step_, micro_step);
  }

  Status RunStep() {
    crossing_.clear();
    gradients_.clear();
    next_values_.clear();
    for (int64_t micro_step = 0; micro_step < micro_steps_; ++micro_step) {
      GoTo(micro_step);
      ZG_RETURN_IF_ERROR(RunSection(*graph_.section(ir::SectionKind::kForward)));
      ZG_RETURN_IF_ERROR(RunSection(*graph_.section(ir::SectionKind::kBackward)));
      if (micro_step == 0) FindCrossing();
      for (auto& [value, terms] : crossing_) {
        for (const HeapTensor& part : nodes_.PartsOf(*value)) terms.push_back(part.Clone());
      }
    }
    GoTo(0);
    for (const auto& [value, terms] : crossing_) {
      nodes_.Set(*value, SumOverMicroSteps(*value, terms));
    }
    for (const auto& [name, terms] : gradients_) {
      Observe("gradient " + name, {Fold(nullptr, terms, terms[0].type().dtype), Sbp::B(), {}});
    }
    ZG_RETURN_IF_ERROR(RunSection(*graph_.section(ir::SectionKind::kUpdate)));
    // The next step would wait for these.
    while (!started_.empty()) ZG_RETURN_IF_ERROR(FinishTransfer(**started_.begin()));
    for (const auto& [buffer, terms] : next_values_) SetBuffer(*buffer, terms);
    return ObserveVariables();
  }

  // Finds values of the micro-batches that the update section reads: they count for the whole step,
  // except those that a buffer will hold.
  void FindCrossing() {
    if (micro_steps_ == 1 || accumulates_gradients_) return;
    for (const ir::Node* node : graph_.section(ir::SectionKind::kUpdate)->nodes) {
      if (node->op->traits.kind == ir::OpKind::kAssign) continue;
      for (const ir::Value* input : node->inputs) {
        const ir::SectionKind from = input->producer->section->kind;
        if (from != ir::SectionKind::kForward && from != ir::SectionKind::kBackward) continue;
        crossing_[input];
      }
    }
  }

  // `terms` are those of all ranks, micro-step by micro-step.
  Parts SumOverMicroSteps(const ir::Value& value, const Parts& terms) const {
    const bool is_partial = ranks_.AlongData(value.sbp).is_partial();
    const int num_ranks = ranks_.num_ranks();
    Parts sums;
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (is_partial && ranks_.DataCoordinate(rank) != 0) {
        sums.push_back(NoTerm(terms[0].type()));
        continue;
      }
      const std::vector<int> ranks =
          is_partial ? ranks_.RanksAlong(rank, ranks_.data_axis()) : std::vector<int>{rank};
      Parts own;
      for (size_t first = 0; first < terms.size(); first += num_ranks) {
        for (const int other : ranks) own.push_back(terms[first + other]);
      }
      sums.push_back(Fold(nullptr, own, value.type.dtype));
    }
    return sums;
  }

  void SetBuffer(const ir::Value& buffer, const Parts& terms) {
    std::vector<double> mean = Fold(nullptr, terms, DType::kF32).ToDoubles();
    const float factor = 1.0 / static_cast<double>(terms.size());
    for (double& value : mean) value = static_cast<float>(value) * factor;
    const bool all_same = std::all_of(terms.begin(), terms.end(), [&](const HeapTensor& term) {
      return SameBits(term, terms[0]);
    });
    const HeapTensor next =
        HeapTensor::FromDoubles(buffer.type, all_same ? terms[0].ToDoubles() : mean);
    std::memcpy(nodes_.PartsOf(buffer)[0].data(), next.data(), buffer.type.bytes());
  }

  Status RunSection(const ir::Section& section) {
    for (const ir::Node* node : section.nodes) {
      ZG_RETURN_IF_ERROR(RunNode(*node).WithContext(ir::NodeLabel(*node)));
      for (const ir::Value* output : node->outputs) {
        ZG_RETURN_IF_ERROR(ranks_.CheckSame(*output, nodes_.PartsOf(*output)));
        if (options_.watched.count(output->name) == 0) continue;
        ZG_RETURN_IF_ERROR(ObserveValue("value " + output->name, *output));
      }
    }
    return Status::Ok();
  }

  Status RunNode(const ir::Node& node) {
    const std::string& op = node.op->name;
    if (ir::IsStart(node)) return StartTransfer(node);
    if (op == "wait") return Wait(node);
    if (op == "input" || op == "given") {
      nodes_.Set(*node.outputs[0], Feed(node, ranks_, options_, step_, micro_step_));
      return Status::Ok();
    }
    if (op == "cached_rows") return ReadCache(node);
    if (op == "left_rows") return ReadState(node);
    if (op == "keep_rows") return KeepState(node);
    if (op == "move_texts" || op == "write_rows") return WriteCache(node);
    if (op == "output") return ObserveOutput(node);
    if (op == "assign") {
      const bool comes_later = started_.count(node.inputs[1]->producer) != 0;
      return comes_later ? Status::Ok() : nodes_.Assign(node);
    }
    if (op == "next_value") {
      if (ranks_.is_placed()) return InvalidArgument("a next_value that has a placement");
      next_values_[node.inputs[0]].push_back(nodes_.PartsOf(*node.inputs[1])[0].Clone());
      return Status::Ok();
    }
    if (op == "parameter_gradient") return ObserveGradient(node, *node.inputs[0], *node.inputs[1]);
    if (node.op->traits.kind == ir::OpKind::kUpdate) ZG_RETURN_IF_ERROR(ObserveUpdate(node));
    return nodes_.Run(node);
  }

  // --- Caches ---

  // Rows that earlier programs have left for a text, zeros at first. A rank that computes all
  // micro-batches one after the other keeps those of each.
  Parts& CacheOf(const std::string& name, const TensorType& type) {
    Parts& parts = caches_[{name, text_}];
    while (static_cast<int>(parts.size()) < ranks_.num_ranks()) parts.push_back(Zeros(type));
    return parts;
  }

  void SwapCaches(int64_t text) {
    text_ = text;
    for (const ir::Node* node : graph_.section(ir::SectionKind::kVariables)->nodes) {
      if (node->op->name != "cache") continue;
      const ir::Value& cache = *node->outputs[0];
      nodes_.Set(cache, CacheOf(cache.name, graph_.LocalType(cache)));
    }
  }

  std::vector<double> NumbersOf(const ir::Value& value) const {
    return nodes_.PartsOf(value)[0].ToDoubles();
  }

  // Before there are variables for them, programs share caches by name. Texts go on from their
  // parents, if the node has such.
  HeapTensor& NamedCache(const ir::Node& node) {
    HeapTensor& cache = CacheOf(node.attributes.String("name"), node.outputs[0]->type)[0];
    if (node.inputs.size() == 3) {
      MoveTexts(NumbersOf(*node.inputs[2]), NumbersOf(*node.inputs[1]), &cache);
    }
    return cache;
  }

  Status ReadCache(const ir::Node& node) {
    HeapTensor& cache = NamedCache(node);
    const HeapTensor& rows = nodes_.PartsOf(*node.inputs[0])[0];
    ZG_RETURN_IF_ERROR(WriteRows(rows, NumbersOf(*node.inputs[1]), &cache));
    nodes_.Set(*node.outputs[0], {cache.Clone()});
    return Status::Ok();
  }

  Status ReadState(const ir::Node& node) {
    HeapTensor state = NamedCache(node).Clone();
    ClearBegun(NumbersOf(*node.inputs[1]), &state);
    nodes_.Set(*node.outputs[0], {std::move(state)});
    return Status::Ok();
  }

  Status KeepState(const ir::Node& node) {
    const HeapTensor& rows = nodes_.PartsOf(*node.inputs[0])[0];
    const HeapTensor& state = CacheOf(node.attributes.String("name"), rows.type())[0];
    std::memcpy(state.data(), rows.data(), rows.type().bytes());
    nodes_.Set(*node.outputs[0], {rows.Clone()});
    return Status::Ok();
  }

  // It changes the cache, also where nothing else is written in place.
  Status WriteCache(const ir::Node& node) {
    ZG_RETURN_IF_ERROR(nodes_.Run(node));
    const Parts& cache = nodes_.PartsOf(*node.inputs[0]);
    const Parts& written = nodes_.PartsOf(*node.outputs[0]);
    for (size_t rank = 0; rank < cache.size(); ++rank) {
      std::memmove(cache[rank].data(), written[rank].data(), cache[rank].type().bytes());
    }
    return Status::Ok();
  }

  // --- Transfers ---

  // A transfer is done at its wait, as late as possible: until then its result is NaN everywhere,
  // and a variable that it is assigned to keeps its value.
  Status StartTransfer(const ir::Node& start) {
    const ir::Value& result = *start.outputs[0];
    Parts nothing;
    for (int rank = 0; rank < ranks_.num_ranks(); ++rank) {
      nothing.emplace_back(graph_.LocalType(result));
    }
    nodes_.Set(result, std::move(nothing));
    started_.insert(&start);
    return Status::Ok();
  }

  Status FinishTransfer(const ir::Node& start) {
    if (started_.erase(&start) == 0) return Status::Ok();
    ZG_RETURN_IF_ERROR(nodes_.Run(start));
    for (const ir::Node* user : start.outputs[0]->users) {
      if (user->op->name == "assign") ZG_RETURN_IF_ERROR(nodes_.Assign(*user));
    }
    return Status::Ok();
  }

  Status Wait(const ir::Node& wait) {
    for (const ir::Node* start : ir::StartsOf(wait)) ZG_RETURN_IF_ERROR(FinishTransfer(*start));
    nodes_.Set(*wait.outputs[0], nodes_.PartsOf(*wait.inputs[0]));
    return Status::Ok();
  }

  // --- Observations ---

  void Observe(const std::string& key, Observation observation) {
    observations_[key].push_back(std::move(observation));
  }

  Status ObserveValue(const std::string& key, const ir::Value& value) {
    ZG_ASSIGN_OR_RETURN(HeapTensor logical, ranks_.Logical(value, nodes_.PartsOf(value)));
    ZG_ASSIGN_OR_RETURN(const Parts parts, ranks_.PartsAlongData(value, nodes_.PartsOf(value)));
    Observation observation = {std::move(logical), ranks_.AlongData(value.sbp), {}};
    for (const HeapTensor& part : parts) observation.parts.push_back(part.Clone());
    Observe(key, std::move(observation));
    return Status::Ok();
  }

  Status ObserveOutput(const ir::Node& node) {
    const std::string& name = node.attributes.String("name");
    const ir::Section& section = *node.section;
    std::string key = "output " + name;
    if (section.kind == ir::SectionKind::kForward) key = "forward " + key;
    if (section.kind == ir::SectionKind::kEval) key = fmt::format("eval {} {}", section.name, key);
    return ObserveValue(key, *node.inputs[0]);
  }

  // Calls observe(name, part) for every tensor in `variable`; false when it has none.
  template <typename F>
  bool ForEachTensor(const ir::Value& variable, const HeapTensor& logical, const F& observe) const {
    bool has_tensors = false;
    for (const ir::StoredTensor& tensor : graph_.tensors()) {
      if (tensor.storage != &variable) continue;
      has_tensors = true;
      observe(tensor.name, ReadTensor(tensor, logical));
    }
    return has_tensors;
  }

  Status ObserveVariables() {
    for (const ir::Node* node : graph_.section(ir::SectionKind::kVariables)->nodes) {
      const ir::Value& value = *node->outputs[0];
      ZG_ASSIGN_OR_RETURN(const HeapTensor logical, ranks_.Logical(value, nodes_.PartsOf(value)));
      const bool has_tensors =
          ForEachTensor(value, logical, [&](const std::string& name, const HeapTensor& part) {
            Observe("tensor " + name, {part, Sbp::B(), {}});
          });
      if (!has_tensors) {
        Observe("variable " + value.name, {logical, ranks_.AlongData(value.sbp), {}});
      }
    }
    return Status::Ok();
  }

  // The gradient of every tensor in `variable`, or of the variable itself if it has none; in
  // backward, summed over the micro-batches at the end.
  Status ObserveGradient(const ir::Node& node, const ir::Value& variable,
                         const ir::Value& gradient) {
    ZG_ASSIGN_OR_RETURN(const HeapTensor logical,
                        ranks_.Logical(gradient, nodes_.PartsOf(gradient)));
    const auto observe = [&](const std::string& name, const HeapTensor& part) {
      if (node.section->kind == ir::SectionKind::kBackward && node.op->num_outputs == 0) {
        gradients_[name].push_back(part);
      } else {
        Observe("gradient " + name, {part, Sbp::B(), {}});
      }
    };
    if (!ForEachTensor(variable, logical, observe)) observe(variable.name, logical);
    return Status::Ok();
  }

  Status ObserveUpdate(const ir::Node& node) {
    const ir::Value* variable = node.inputs[0];
    while (variable->producer->op->name != "variable" && !variable->producer->inputs.empty()) {
      variable = variable->producer->inputs[0];
    }
    return ObserveGradient(node, *variable, *node.inputs[1]);
  }

  const ir::Graph& graph_;
  const RunOptions& options_;
  const VirtualMesh ranks_;
  NodesOnRanks nodes_;
  const bool accumulates_gradients_;
  const int64_t micro_steps_;
  int64_t step_ = 1;
  int64_t micro_step_ = 0;
  int64_t text_ = 0;                                         // whose caches are in place
  std::map<std::pair<std::string, int64_t>, Parts> caches_;  // by name and text
  std::set<const ir::Node*> started_;                        // transfers
  std::unordered_map<const ir::Value*, Parts> crossing_;
  std::map<std::string, Parts> gradients_;
  std::unordered_map<const ir::Value*, Parts> next_values_;  // of buffers, by micro-batch
  Observations observations_;
};

}  // namespace

bool IsRunnable(const ir::Graph& graph) {
  if (IsPlaced(graph)) return true;
  const auto& variables = graph.section(ir::SectionKind::kVariables)->nodes;
  return std::none_of(variables.begin(), variables.end(), [&](const ir::Node* variable) {
    return IsInParts(graph, *variable->outputs[0]);
  });
}

StatusOr<Observations> RunOnRanks(const ir::Graph& graph, const RunOptions& options) {
  return Run(graph, options).Go();
}

}  // namespace zg::testing
