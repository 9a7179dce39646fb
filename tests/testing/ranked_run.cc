#include "tests/testing/ranked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "framework/base/check.h"
#include "framework/base/random.h"
#include "framework/ir/placement.h"
#include "framework/ir/printer.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/tensor/half.h"
#include "tests/testing/virtual_ranks.h"

namespace zg::testing {
namespace {

using Parts = std::vector<HeapTensor>;  // by rank

// Small enough for every vocabulary and number of classes in tests.
constexpr int64_t kTokenIds = 3;

HeapTensor RandomTensor(const TensorType& type, RandomKey key, double low, double high) {
  std::vector<double> values(type.shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * UniformAt(key, i);
  return HeapTensor::FromDoubles(type, values);
}

RandomKey Key(const RunOptions& options, std::string_view name, int64_t index) {
  return FoldIn(FoldIn(RandomKey{options.seed, 0}, name), static_cast<uint64_t>(index));
}

HeapTensor RandomData(const TensorType& type, RandomKey key) {
  if (type.dtype == DType::kI64) return RandomTensor(type, key, 0, kTokenIds);
  if (type.dtype == DType::kBool) {
    std::vector<double> values(type.shape.num_elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = UniformAt(key, i) < 0.5f ? 1.0 : 0.0;
    return HeapTensor::FromDoubles(type, values);
  }
  return RandomTensor(type, key, -1, 1);
}

HeapTensor Zeros(const TensorType& type) {
  HeapTensor tensor(type);
  std::memset(tensor.data(), 0, type.bytes());
  return tensor;
}

// ((start + terms[0]) + terms[1]) + ..., without `start` when it is null; 16-bit terms in f32.
HeapTensor Fold(const HeapTensor* start, const Parts& terms, DType dtype) {
  const TensorType type = {dtype, terms[0].type().shape};
  std::vector<double> sum = start != nullptr ? start->ToDoubles() : terms[0].ToDoubles();
  for (size_t i = start != nullptr ? 0 : 1; i < terms.size(); ++i) {
    const std::vector<double> term = terms[i].ToDoubles();
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k] = IsFloat(dtype)
                   ? static_cast<double>(static_cast<float>(sum[k]) + static_cast<float>(term[k]))
                   : sum[k] + term[k];
    }
  }
  if (IsFloat(dtype)) return HeapTensor::FromDoubles(type, sum);
  // Words of exact sums are longer than a double's digits.
  HeapTensor exact = start != nullptr ? start->Clone() : terms[0].Clone();
  auto* const words = static_cast<int64_t*>(exact.data());
  for (size_t i = start != nullptr ? 0 : 1; i < terms.size(); ++i) {
    const auto* const more = static_cast<const int64_t*>(terms[i].data());
    for (int64_t k = 0; k < type.shape.num_elements(); ++k) words[k] += more[k];
  }
  return exact;
}

// A term that changes no sum, not even the sign of its zero.
HeapTensor NoTerm(const TensorType& type) {
  if (!IsFloat(type.dtype)) return Zeros(type);
  return HeapTensor::FromDoubles(type, std::vector<double>(type.shape.num_elements(), -0.0));
}

class Run {
 public:
  Run(const ir::Graph& graph, const RunOptions& options)
      : graph_(graph), options_(options), data_axis_(graph.mesh().FindAxis("data")) {
    for (const ir::Node* node : graph.AllNodes()) {
      for (const ir::Value* output : node->outputs) is_placed_ |= !output->sbp.empty();
    }
    data_ranks_ = data_axis_ < 0 ? 1 : graph.mesh().axes()[data_axis_].size;
    num_ranks_ = is_placed_ ? graph.mesh().num_ranks() : 1;
    for (const ir::Node* node : graph.AllNodes()) {
      const bool adds_up = node->op->name == "accumulate" ||
                           (node->attributes.Has("axis") && node->inputs.size() == 2);
      accumulates_gradients_ |= adds_up && node->section->kind != ir::SectionKind::kForward;
    }
    micro_steps_ = std::max<int64_t>(1, graph.micro_batches() / (is_placed_ ? data_ranks_ : 1));
  }

  StatusOr<Observations> Go() {
    FillVariables();
    for (step_.step = 1; step_.step <= options_.steps; ++step_.step) {
      crossing_.clear();
      gradients_.clear();
      next_values_.clear();
      for (micro_step_ = 0; micro_step_ < micro_steps_; ++micro_step_) {
        ZG_RETURN_IF_ERROR(RunSection(*graph_.section(ir::SectionKind::kForward)));
        ZG_RETURN_IF_ERROR(RunSection(*graph_.section(ir::SectionKind::kBackward)));
        for (auto& [value, terms] : crossing_) {
          for (const HeapTensor& part : values_.at(value)) terms.push_back(part.Clone());
        }
        if (micro_step_ == 0) ZG_RETURN_IF_ERROR(FindCrossing());
      }
      micro_step_ = 0;
      for (const auto& [value, terms] : crossing_)
        values_[value] = SumOverMicroSteps(*value, terms);
      for (const auto& [name, terms] : gradients_) {
        Observe("gradient " + name, {Fold(nullptr, terms, terms[0].type().dtype), Sbp::B(), {}});
      }
      ZG_RETURN_IF_ERROR(RunSection(*graph_.section(ir::SectionKind::kUpdate)));
      ZG_RETURN_IF_ERROR(FinishTransfers());
      for (const auto& [buffer, terms] : next_values_) SetBuffer(*buffer, terms);
      ZG_RETURN_IF_ERROR(ObserveVariables());
    }
    for (const auto& section : graph_.sections()) {
      if (section->kind != ir::SectionKind::kEval) continue;
      const int64_t runs = is_placed_ ? 1 : data_ranks_;
      for (micro_step_ = 0; micro_step_ < runs; ++micro_step_) {
        ZG_RETURN_IF_ERROR(RunSection(*section));
      }
    }
    return std::move(observations_);
  }

 private:
  int DataCoordinate(int rank) const {
    return data_axis_ < 0 || !is_placed_ ? 0 : graph_.mesh().Coordinate(rank, data_axis_);
  }
  int64_t MicroBatch(int rank) const {
    return is_placed_ ? micro_step_ * data_ranks_ + DataCoordinate(rank) : micro_step_;
  }

  // What a rank holds of a logical value. Terms of a partial one are random, and add up to it.
  Parts CutValue(const HeapTensor& logical, const NdSbp& sbp, RandomKey key) const {
    Parts parts(num_ranks_, logical);
    std::mt19937 random(static_cast<unsigned>(key.stream));
    for (size_t axis = 0; axis < sbp.size(); ++axis) {
      parts = AlongAxis(parts, static_cast<int>(axis), [&](const Parts& group) {
        return Cut(group[0], sbp[axis], static_cast<int>(group.size()), &random);
      });
    }
    if (sbp.empty()) parts[0] = logical.Clone();
    return parts;
  }

  // Applies f to the parts of the ranks that differ along `axis` only.
  template <typename F>
  Parts AlongAxis(const Parts& parts, int axis, const F& f) const {
    Parts result(parts.size());
    for (int first = 0; first < num_ranks_; ++first) {
      if (graph_.mesh().Coordinate(first, axis) != 0) continue;
      const std::vector<int> ranks = GroupOf(first, axis);
      Parts group;
      for (int rank : ranks) group.push_back(parts[rank]);
      group = f(group);
      if (group.empty()) return {};
      for (size_t i = 0; i < ranks.size(); ++i) result[ranks[i]] = group[i];
    }
    return result;
  }

  std::vector<int> GroupOf(int first, int axis) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      bool same = true;
      for (int other = 0; other < graph_.mesh().num_axes(); ++other) {
        same = same && (other == axis || graph_.mesh().Coordinate(rank, other) ==
                                             graph_.mesh().Coordinate(first, other));
      }
      if (same) ranks.push_back(rank);
    }
    return ranks;
  }

  // The parts of the same value under another placement; `status` says what keeps it from that. Of
  // axes that split one dim the last one cuts finest: splits go from the last axis on, and come from
  // the first.
  Parts ChangePlacement(Parts parts, const NdSbp& from, const NdSbp& to, Status* status) const {
    NdSbp now = from;
    const auto change = [&](size_t axis, Sbp next) {
      if (now[axis] == next || !status->ok()) return;
      parts = AlongAxis(parts, static_cast<int>(axis), [&](const Parts& group) {
        return ChangeInGroup(group, now[axis], next, status);
      });
      now[axis] = next;
    };
    for (size_t axis = to.size(); axis-- > 0;) {
      const bool is_in_the_way = !std::equal(now.begin(), now.begin() + axis, to.begin());
      if (now[axis].is_split() && is_in_the_way) change(axis, Sbp::B());
    }
    for (size_t axis = 0; axis < to.size(); ++axis) change(axis, to[axis]);
    return status->ok() ? parts : Parts();
  }

  static Parts ChangeInGroup(const Parts& group, Sbp from, Sbp to, Status* status) {
    const int size = static_cast<int>(group.size());
    HeapTensor whole;
    if (from.is_partial()) {
      whole = Fold(nullptr, group, group[0].type().dtype);
    } else {
      StatusOr<HeapTensor> joined = Join(group, from);
      if (!joined.ok()) {
        *status = joined.status();
        return {};
      }
      whole = *joined;
    }
    if (!to.is_partial()) {
      if (Divides(whole.type().shape, to, size)) return Cut(whole, to, size, nullptr);
      *status = InvalidArgument("{} does not divide by {} ranks", whole.type().ToString(), size);
      return {};
    }
    Parts terms;
    for (int rank = 0; rank < size; ++rank) {
      Parts padded;
      for (const HeapTensor& part : group) padded.push_back(Zeros(part.type()));
      padded[rank] = group[rank];
      if (from.is_split()) {
        terms.push_back(*Join(padded, from));
      } else {
        terms.push_back(rank == 0 ? whole.Clone() : Zeros(whole.type()));
      }
    }
    return terms;
  }

  StatusOr<HeapTensor> Logical(const ir::Value& value, const Parts& parts) const {
    if (value.sbp.empty()) return parts[0].Clone();
    Status status;
    const Parts whole = ChangePlacement(parts, value.sbp, AllBroadcast(graph_.mesh()), &status);
    if (!status.ok()) return status.WithContext("%" + value.name);
    for (int rank = 1; rank < num_ranks_; ++rank) {
      if (SameBits(whole[rank], whole[0])) continue;
      return InvalidArgument("%{}: rank {} holds another value than rank 0", value.name, rank);
    }
    return whole[0].Clone();
  }

  void FillVariables() {
    for (const ir::Node* node : graph_.section(ir::SectionKind::kVariables)->nodes) {
      const ir::Value& value = *node->outputs[0];
      HeapTensor logical;
      bool has_tensors = false;
      for (const ir::StoredTensor& tensor : graph_.tensors()) {
        if (tensor.storage != &value) continue;
        if (!has_tensors) logical = Zeros(value.type);
        has_tensors = true;
        const HeapTensor contents = InitialTensor(graph_, tensor, options_);
        std::memcpy(logical.View(tensor.type, tensor.offset_elements).data(), contents.data(),
                    contents.type().bytes());
      }
      if (!has_tensors) logical = RandomData(value.type, Key(options_, value.name, 0));
      values_[&value] = CutValue(logical, value.sbp, Key(options_, value.name, 1));
    }
  }

  Status ObserveVariables() {
    for (const ir::Node* node : graph_.section(ir::SectionKind::kVariables)->nodes) {
      const ir::Value& value = *node->outputs[0];
      ZG_ASSIGN_OR_RETURN(const HeapTensor logical, Logical(value, values_.at(&value)));
      bool has_tensors = false;
      for (const ir::StoredTensor& tensor : graph_.tensors()) {
        if (tensor.storage != &value) continue;
        has_tensors = true;
        Observe("tensor " + tensor.name,
                {logical.View(tensor.type, tensor.offset_elements), Sbp::B(), {}});
      }
      const bool has_data = !value.sbp.empty() && data_axis_ >= 0;
      const Sbp placement = has_data ? value.sbp[data_axis_] : Sbp::B();
      if (!has_tensors) Observe("variable " + value.name, {logical, placement, {}});
    }
    return Status::Ok();
  }

  void Observe(const std::string& key, Observation observation) {
    observations_[key].push_back(std::move(observation));
  }

  Status ObserveValue(const std::string& key, const ir::Value& value) {
    const Parts& parts = values_.at(&value);
    ZG_ASSIGN_OR_RETURN(HeapTensor logical, Logical(value, parts));
    const bool has_data = !value.sbp.empty() && data_axis_ >= 0;
    Observation observation = {std::move(logical), has_data ? value.sbp[data_axis_] : Sbp::B(), {}};
    for (const HeapTensor& part : parts) observation.parts.push_back(part.Clone());
    Observe(key, std::move(observation));
    return Status::Ok();
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
    std::memcpy(values_.at(&buffer)[0].data(), next.data(), buffer.type.bytes());
  }

  // Values of the micro-batches that the update section reads: they count for the whole step, but
  // for those that a buffer is to hold.
  Status FindCrossing() {
    if (micro_steps_ == 1 || accumulates_gradients_) return Status::Ok();
    for (const ir::Node* node : graph_.section(ir::SectionKind::kUpdate)->nodes) {
      if (node->op->traits.kind == ir::OpKind::kAssign) continue;
      for (const ir::Value* input : node->inputs) {
        const ir::SectionKind from = input->producer->section->kind;
        if (from != ir::SectionKind::kForward && from != ir::SectionKind::kBackward) continue;
        if (crossing_.count(input) != 0) continue;
        for (const HeapTensor& part : values_.at(input)) crossing_[input].push_back(part.Clone());
      }
    }
    return Status::Ok();
  }

  // `terms` are those of all ranks, micro-step by micro-step.
  Parts SumOverMicroSteps(const ir::Value& value, const Parts& terms) const {
    const DType dtype = value.type.dtype;
    const bool is_partial =
        data_axis_ >= 0 && !value.sbp.empty() && value.sbp[data_axis_].is_partial();
    Parts sums;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      if (is_partial && DataCoordinate(rank) != 0) {
        sums.push_back(NoTerm(terms[0].type()));
        continue;
      }
      Parts own;
      for (size_t step = 0; step * num_ranks_ < terms.size(); ++step) {
        const std::vector<int> ranks =
            is_partial ? GroupOf(rank, data_axis_) : std::vector<int>{rank};
        for (int other : ranks) own.push_back(terms[step * num_ranks_ + other]);
      }
      sums.push_back(Fold(nullptr, own, dtype));
    }
    return sums;
  }

  Status RunSection(const ir::Section& section) {
    for (const ir::Node* node : section.nodes) {
      ZG_RETURN_IF_ERROR(RunNode(*node).WithContext(ir::NodeLabel(*node)));
      for (const ir::Value* output : node->outputs) {
        ZG_RETURN_IF_ERROR(CheckSame(*output));
        if (options_.watched.count(output->name) == 0) continue;
        ZG_RETURN_IF_ERROR(ObserveValue("value " + output->name, *output));
      }
    }
    return Status::Ok();
  }

  // Where a value is whole on every rank, all of them hold the same.
  Status CheckSame(const ir::Value& value) const {
    for (size_t axis = 0; axis < value.sbp.size(); ++axis) {
      if (!value.sbp[axis].is_broadcast()) continue;
      const Parts& parts = values_.at(&value);
      for (int rank = 0; rank < num_ranks_; ++rank) {
        const int first = GroupOf(rank, static_cast<int>(axis))[0];
        if (SameBits(parts[rank], parts[first])) continue;
        return InvalidArgument("%{} is broadcast, but ranks {} and {} hold different values",
                               value.name, first, rank);
      }
    }
    return Status::Ok();
  }

  // Data that the user feeds: by name and micro-batch, so that ranks find the same batches in any
  // number.
  Parts Feed(const ir::Node& node) const {
    const ir::Value& value = *node.outputs[0];
    const bool is_input = node.op->name == "input";
    const std::string& name = is_input ? node.attributes.String("name") : value.name;
    const int64_t run = (step_.step * 1000 + micro_step_) * 1000;
    const bool is_split =
        is_input && data_axis_ >= 0 && !value.sbp.empty() && value.sbp[data_axis_].is_split();
    if (!is_input) {
      return CutValue(RandomData(value.type, Key(options_, name, run)), value.sbp,
                      Key(options_, name, run + 1));
    }
    const int64_t step = step_.step * 1000;
    if (!is_split) {
      // What every rank reads is the same for all micro-batches.
      const bool by_micro_batch = !node.attributes.Sbp("placement").is_broadcast();
      const int64_t index = by_micro_batch ? step + MicroBatch(0) : step;
      return CutValue(RandomData(value.type, Key(options_, name, index)), value.sbp,
                      Key(options_, name, run));
    }
    NdSbp others = value.sbp;
    others[data_axis_] = Sbp::B();
    TensorType own = value.type;
    const int dim = value.sbp[data_axis_].dim();
    own.shape.set_dim(dim, own.shape.dim(dim) / data_ranks_);
    Parts parts;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      const HeapTensor batch = RandomData(own, Key(options_, name, step + MicroBatch(rank)));
      parts.push_back(CutValue(batch, others, {})[rank]);
    }
    return parts;
  }

  // A transfer takes place at its wait, as late as it may: until then its result is NaN everywhere,
  // and a variable that it is assigned to keeps what it holds.
  Status StartTransfer(const ir::Node& start) {
    const ir::Value& result = *start.outputs[0];
    Parts nothing;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      nothing.emplace_back(graph_.LocalType(result));
    }
    values_[&result] = nothing;
    started_.insert(&start);
    return Status::Ok();
  }

  Status FinishTransfer(const ir::Node& start) {
    if (started_.erase(&start) == 0) return Status::Ok();
    ZG_RETURN_IF_ERROR(Box(start));
    for (const ir::Node* user : start.outputs[0]->users) {
      if (user->op->name == "assign") ZG_RETURN_IF_ERROR(Assign(*user));
    }
    return Status::Ok();
  }

  Status Wait(const ir::Node& wait) {
    for (const ir::Node* start : ir::StartsOf(wait)) ZG_RETURN_IF_ERROR(FinishTransfer(*start));
    const Parts parts = values_.at(wait.inputs[0]);
    values_[wait.outputs[0]] = parts;
    return Status::Ok();
  }

  // What the next step would wait for.
  Status FinishTransfers() {
    while (!started_.empty()) ZG_RETURN_IF_ERROR(FinishTransfer(**started_.begin()));
    return Status::Ok();
  }

  Status RunNode(const ir::Node& node) {
    const std::string& op = node.op->name;
    if (ir::IsStart(node)) return StartTransfer(node);
    if (op == "wait") return Wait(node);
    if (op == "input" || op == "given") {
      values_[node.outputs[0]] = Feed(node);
      return Status::Ok();
    }
    if (op == "output") return ObserveOutput(node);
    if (op == "assign") {
      const bool comes_later = started_.count(node.inputs[1]->producer) != 0;
      return comes_later ? Status::Ok() : Assign(node);
    }
    if (op == "next_value") {
      if (is_placed_) return InvalidArgument("a next_value that has a placement");
      next_values_[node.inputs[0]].push_back(values_.at(node.inputs[1])[0].Clone());
      return Status::Ok();
    }
    if (op == "parameter_gradient") return ObserveGradient(node, *node.inputs[0], *node.inputs[1]);
    if (op == "place" || node.attributes.Has("axis")) return Box(node);
    if (op == "accumulate" && FoldsRanks(node)) return FoldInto(node, 0, 1);
    if (op == "own_part" || op == "joined_parts") {  // another name for what each rank holds
      const Parts parts = values_.at(node.inputs[0]);
      values_[node.outputs[0]] = parts;
      return Status::Ok();
    }
    return Compute(node);
  }

  Status ObserveOutput(const ir::Node& node) {
    const std::string& name = node.attributes.String("name");
    const ir::Section& section = *node.section;
    std::string key = "output " + name;
    if (section.kind == ir::SectionKind::kForward) key = "forward " + key;
    if (section.kind == ir::SectionKind::kEval) key = fmt::format("eval {} {}", section.name, key);
    return ObserveValue(key, *node.inputs[0]);
  }

  Status Assign(const ir::Node& node) {
    const ir::Value& variable = *node.inputs[0];
    Status status;
    const Parts parts =
        ChangePlacement(values_.at(node.inputs[1]), node.inputs[1]->sbp, variable.sbp, &status);
    ZG_RETURN_IF_ERROR(status);
    const Parts& storage = values_.at(&variable);
    for (int rank = 0; rank < num_ranks_; ++rank) {
      std::memmove(storage[rank].data(), parts[rank].data(), storage[rank].type().bytes());
    }
    return Status::Ok();
  }

  // Of every tensor in `variable`, or of itself when it has none; in backward, summed over the
  // micro-batches at the end.
  Status ObserveGradient(const ir::Node& node, const ir::Value& variable,
                         const ir::Value& gradient) {
    ZG_ASSIGN_OR_RETURN(const HeapTensor logical, Logical(gradient, values_.at(&gradient)));
    const auto observe = [&](const std::string& name, const HeapTensor& part) {
      if (node.section->kind == ir::SectionKind::kBackward && node.op->num_outputs == 0) {
        gradients_[name].push_back(part);
      } else {
        Observe("gradient " + name, {part, Sbp::B(), {}});
      }
    };
    bool has_tensors = false;
    for (const ir::StoredTensor& tensor : graph_.tensors()) {
      if (tensor.storage != &variable) continue;
      has_tensors = true;
      const TensorType type = {logical.type().dtype, tensor.type.shape};
      observe(tensor.name, logical.View(type, tensor.offset_elements));
    }
    if (!has_tensors) observe(variable.name, logical);
    return Status::Ok();
  }

  bool FoldsRanks(const ir::Node& node) const {
    for (size_t axis = 0; axis < node.outputs[0]->sbp.size(); ++axis) {
      if (node.inputs[1]->sbp[axis].is_partial() && !node.inputs[0]->sbp[axis].is_partial()) {
        return true;
      }
    }
    return false;
  }

  // Adds the terms of all ranks to an accumulator.
  Status FoldInto(const ir::Node& node, int accumulator_index, int term_index) {
    const ir::Value& output = *node.outputs[0];
    const Parts accumulator = values_.at(node.inputs[accumulator_index]);
    const ir::Value& term = *node.inputs[term_index];
    Parts result(num_ranks_);
    for (size_t axis = 0; axis < term.sbp.size(); ++axis) {
      if (!term.sbp[axis].is_partial() || output.sbp[axis].is_partial()) continue;
      for (int rank = 0; rank < num_ranks_; ++rank) {
        const std::vector<int> ranks = GroupOf(rank, static_cast<int>(axis));
        const int size = static_cast<int>(ranks.size());
        const int index =
            static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
        Parts terms;
        for (int other : ranks) {
          terms.push_back(Cut(values_.at(&term)[other], output.sbp[axis], size, nullptr)[index]);
        }
        result[rank] =
            Fold(micro_step_ == 0 ? nullptr : &accumulator[rank], terms, output.type.dtype);
      }
    }
    values_[&output] = result;
    if (!options_.in_place) return Status::Ok();
    for (int rank = 0; rank < num_ranks_; ++rank) {
      std::memcpy(accumulator[rank].data(), result[rank].data(), result[rank].type().bytes());
    }
    values_[&output] = accumulator;
    return Status::Ok();
  }

  Status Box(const ir::Node& node) {
    if (node.inputs.size() == 2) return FoldInto(node, 1, 0);
    const ir::Value& input = *node.inputs[0];
    const ir::Value& output = *node.outputs[0];
    Status status;
    const Parts before = values_.at(&input);
    Parts parts = ChangePlacement(before, input.sbp, output.sbp, &status);
    ZG_RETURN_IF_ERROR(status);
    if (input.type.dtype != output.type.dtype) return InvalidArgument("a change of dtype");
    Parts result;
    for (int rank = 0; rank < num_ranks_; ++rank) {
      HeapTensor part = parts[rank].Clone();
      if (node.op->aliases != nullptr && options_.in_place) {
        for (const ir::AliasRule& rule : node.op->aliases(node.LocalCall(graph_.mesh()))) {
          if (rule.kind != ir::AliasRule::Kind::kOutputInsideInput || !rule.at_rank_slice) continue;
          const int64_t offset =
              part.type().shape.num_elements() *
              graph_.mesh().Coordinate(rank, static_cast<int>(node.attributes.Int("axis")));
          HeapTensor view = before[rank].View(part.type(), offset);
          std::memcpy(view.data(), part.data(), part.type().bytes());
          part = view;
        }
      }
      result.push_back(part);
    }
    values_[&output] = result;
    return Status::Ok();
  }

  // The placements that a node wants for its inputs.
  StatusOr<std::vector<NdSbp>> WantedPlacements(const ir::Node& node) const {
    std::vector<NdSbp> wanted(node.inputs.size());
    if (!is_placed_) return wanted;
    for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
      std::vector<Sbp> outputs;
      for (const ir::Value* output : node.outputs) outputs.push_back(output->sbp[axis]);
      const int size = graph_.mesh().axes()[axis].size;
      const auto is_broadcast = [](Sbp sbp) { return sbp.is_broadcast(); };
      bool possible = std::all_of(outputs.begin(), outputs.end(), is_broadcast);
      if (size > 1 && node.op->sbp_signatures != nullptr) {
        for (const ir::SbpSignature& signature : node.op->sbp_signatures(node.Call())) {
          possible = possible || signature.outputs == outputs;
        }
      }
      const std::optional<ir::SbpSignature> own =
          ir::MicroBatchSignature(node, axis, graph_.mesh());
      possible = possible || (own.has_value() && own->outputs == outputs);
      if (!possible) return InvalidArgument("no signature has the placements of its outputs");
      const ir::SbpSignature signature = ir::ChooseSignature(node, axis, graph_.mesh(), &outputs);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i].push_back(signature.inputs[i]);
    }
    return wanted;
  }

  // Whether the node measures whole tensors itself, though a rank may have a part.
  bool MeasuresTensors(const ir::Node& node) const {
    return is_placed_ && node.op->traits.kind == ir::OpKind::kUpdate &&
           (node.attributes.Has("tensors") || node.attributes.Has("matrices")) &&
           node.inputs.back()->type.dtype != DType::kI64;
  }

  Status Compute(const ir::Node& node) {
    ZG_ASSIGN_OR_RETURN(std::vector<NdSbp> wanted, WantedPlacements(node));
    const bool is_whole = MeasuresTensors(node);
    if (is_whole) wanted.assign(wanted.size(), AllBroadcast(graph_.mesh()));
    std::vector<Parts> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Status status;
      inputs.push_back(
          ChangePlacement(values_.at(node.inputs[i]), node.inputs[i]->sbp, wanted[i], &status));
      ZG_RETURN_IF_ERROR(status);
    }
    if (node.op->traits.kind == ir::OpKind::kUpdate) {
      ZG_RETURN_IF_ERROR(ObserveUpdate(node));
      if (options_.gradient_factor != 1.0) Scale(&inputs[1], options_.gradient_factor);
    }
    std::vector<Parts> outputs(node.outputs.size());
    for (int rank = 0; rank < num_ranks_; ++rank) {
      std::vector<HeapTensor> operands;
      for (const Parts& parts : inputs) operands.push_back(parts[rank]);
      ZG_ASSIGN_OR_RETURN(const std::vector<HeapTensor> results, RunKernel(node, operands, rank));
      for (size_t i = 0; i < results.size(); ++i) {
        const ir::Value& output = *node.outputs[i];
        const TensorType expected = is_whole ? output.type : graph_.LocalType(output);
        if (results[i].type() != expected) {
          return InvalidArgument("rank {} computes {}, expected {}", rank,
                                 results[i].type().ToString(), expected.ToString());
        }
        outputs[i].push_back(results[i]);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ir::Value* output = node.outputs[i];
      Status status;
      values_[output] =
          is_whole ? ChangePlacement(outputs[i], AllBroadcast(graph_.mesh()), output->sbp, &status)
                   : outputs[i];
      ZG_RETURN_IF_ERROR(status);
    }
    if (is_whole && options_.in_place) WriteInPlace(node);
    return Status::Ok();
  }

  // What a kernel on parts does itself.
  void WriteInPlace(const ir::Node& node) {
    for (const ir::AliasRule& rule : node.op->aliases(node.Call())) {
      if (node.inputs[rule.input]->sbp != node.outputs[rule.output]->sbp) continue;
      const Parts& storage = values_.at(node.inputs[rule.input]);
      Parts& parts = values_.at(node.outputs[rule.output]);
      for (int rank = 0; rank < num_ranks_; ++rank) {
        std::memcpy(storage[rank].data(), parts[rank].data(), parts[rank].type().bytes());
      }
      parts = storage;
    }
  }

  Status ObserveUpdate(const ir::Node& node) {
    const ir::Value* variable = node.inputs[0];
    while (variable->producer->op->name != "variable" && !variable->producer->inputs.empty()) {
      variable = variable->producer->inputs[0];
    }
    return ObserveGradient(node, *variable, *node.inputs[1]);
  }

  static void Scale(Parts* parts, double factor) {
    for (HeapTensor& part : *parts) {
      std::vector<double> values = part.ToDoubles();
      for (double& value : values) {
        value = static_cast<float>(value) * static_cast<float>(factor);
      }
      part = HeapTensor::FromDoubles({DType::kF32, part.type().shape}, values);
    }
  }

  StatusOr<std::vector<HeapTensor>> RunKernel(const ir::Node& node, std::vector<HeapTensor> inputs,
                                              int rank) {
    ir::OpCall call{node.op, {}, node.attributes};
    for (const HeapTensor& input : inputs) call.inputs.push_back(input.type());
    ZG_ASSIGN_OR_RETURN(const std::vector<TensorType> types, node.op->infer_shape(call));
    std::vector<HeapTensor> outputs;
    for (const TensorType& type : types) outputs.emplace_back(type);
    if (node.op->aliases != nullptr) {
      for (const ir::AliasRule& rule : node.op->aliases(call)) {
        if (rule.kind != ir::AliasRule::Kind::kOutputInsideInput) continue;
        if (!options_.in_place) inputs[rule.input] = inputs[rule.input].Clone();
        outputs[rule.output] = inputs[rule.input].View(types[rule.output], rule.offset_elements);
      }
    }
    if (!CpuKernels().Has(node.op->name) && node.op->aliases != nullptr) return outputs;  // a view
    std::unique_ptr<Kernel>& kernel =
        kernels_[{&node, call.inputs.empty() ? DType::kF32 : call.inputs.back().dtype}];
    if (kernel == nullptr) {
      ZG_ASSIGN_OR_RETURN(kernel, CpuKernels().Make({call, types}));
    }
    std::vector<const void*> input_addresses;
    std::vector<void*> output_addresses;
    for (const HeapTensor& input : inputs) input_addresses.push_back(input.data());
    for (const HeapTensor& output : outputs) output_addresses.push_back(output.data());
    const HeapTensor workspace(TensorType{DType::kU8, {kernel->workspace_bytes()}});
    step_.seed = options_.seed;
    step_.micro_batch = MicroBatch(rank);
    step_.first_micro_step = micro_step_ == 0;
    KernelArguments arguments{input_addresses.data(), output_addresses.data(), workspace.data(),
                              &step_};
    if (!node.inputs.empty()) {
      arguments.part = ShardPositionOf(graph_.mesh(), node.inputs[0]->sbp, rank).part;
    }
    ZG_RETURN_IF_ERROR(kernel->Run(arguments));
    return outputs;
  }

  const ir::Graph& graph_;
  const RunOptions& options_;
  const int data_axis_;
  bool is_placed_ = false;
  bool accumulates_gradients_ = false;
  int data_ranks_ = 1;
  int num_ranks_ = 1;
  int64_t micro_steps_ = 1;
  int64_t micro_step_ = 0;
  StepContext step_;
  std::unordered_map<const ir::Value*, Parts> values_;
  std::map<std::pair<const ir::Node*, DType>, std::unique_ptr<Kernel>> kernels_;
  std::set<const ir::Node*> started_;  // transfers
  std::unordered_map<const ir::Value*, Parts> crossing_;
  std::map<std::string, Parts> gradients_;
  std::unordered_map<const ir::Value*, Parts> next_values_;  // of buffers, by micro-batch
  Observations observations_;
};

}  // namespace

HeapTensor InitialTensor(const ir::Graph& graph, const ir::StoredTensor& tensor,
                         const RunOptions& options) {
  const auto given = options.tensors.find(tensor.name);
  if (given != options.tensors.end()) return given->second;
  if (!tensor.copy_of.empty()) {
    const ir::StoredTensor& original = *graph.FindTensor(tensor.copy_of);
    return HeapTensor::FromDoubles(tensor.type,
                                   InitialTensor(graph, original, options).ToDoubles());
  }
  const std::string initializer = tensor.initializer.ToString();
  if (initializer == "zeros") return Zeros(tensor.type);
  if (initializer == "ones") {
    return HeapTensor::FromDoubles(tensor.type,
                                   std::vector<double>(tensor.type.shape.num_elements(), 1.0));
  }
  return RandomTensor(tensor.type, Key(options, tensor.name, 0), -0.5, 0.5);
}

StatusOr<Observations> RunOnRanks(const ir::Graph& graph, const RunOptions& options) {
  return Run(graph, options).Go();
}

}  // namespace zg::testing
