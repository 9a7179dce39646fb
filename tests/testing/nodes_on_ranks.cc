#include "tests/testing/nodes_on_ranks.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "framework/ir/placement.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "tests/testing/interpreter.h"
#include "tests/testing/virtual_ranks.h"

namespace zg::testing {
namespace {

void Scale(Parts* parts, double factor) {
  for (HeapTensor& part : *parts) {
    std::vector<double> values = part.ToDoubles();
    for (double& value : values) value = static_cast<float>(value) * static_cast<float>(factor);
    part = HeapTensor::FromDoubles({DType::kF32, part.type().shape}, values);
  }
}

}  // namespace

void NodesOnRanks::GoTo(int64_t step, int64_t micro_step) {
  step_.seed = options_.seed;
  step_.step = step;
  step_.first_micro_step = micro_step == 0;
  micro_step_ = micro_step;
}

Status NodesOnRanks::Run(const ir::Node& node) {
  const std::string& op = node.op->name;
  if (op == "place" || node.attributes.Has("axis")) return Box(node);
  if (op == "accumulate" && FoldsRanks(node)) return FoldInto(node, 0, 1);
  if (op == "own_part" || op == "joined_parts") {  // another name for each rank's part
    Set(*node.outputs[0], Parts(PartsOf(*node.inputs[0])));
    return Status::Ok();
  }
  return Compute(node);
}

Status NodesOnRanks::Assign(const ir::Node& node) {
  const ir::Value& variable = *node.inputs[0];
  const ir::Value& value = *node.inputs[1];
  ZG_ASSIGN_OR_RETURN(const Parts parts,
                      ranks_.ChangePlacement(PartsOf(value), value.sbp, variable.sbp));
  const Parts& storage = PartsOf(variable);
  for (size_t rank = 0; rank < storage.size(); ++rank) {
    std::memmove(storage[rank].data(), parts[rank].data(), storage[rank].type().bytes());
  }
  return Status::Ok();
}

bool NodesOnRanks::FoldsRanks(const ir::Node& node) const {
  for (size_t axis = 0; axis < node.outputs[0]->sbp.size(); ++axis) {
    if (node.inputs[1]->sbp[axis].is_partial() && !node.inputs[0]->sbp[axis].is_partial()) {
      return true;
    }
  }
  return false;
}

// Adds the terms of all ranks to an accumulator, over all axes in one fold.
Status NodesOnRanks::FoldInto(const ir::Node& node, int accumulator_index, int term_index) {
  const ir::Value& output = *node.outputs[0];
  const Parts accumulator = PartsOf(*node.inputs[accumulator_index]);
  const ir::Value& term = *node.inputs[term_index];
  const int num_ranks = ranks_.num_ranks();
  const Mesh& mesh = graph_.mesh();
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (term.sbp[axis].is_partial() && !output.sbp[axis].is_partial()) axes.push_back(axis);
  }
  Parts result;
  for (int rank = 0; rank < num_ranks; ++rank) {
    Parts terms;
    for (const int other : mesh.RanksAlong(rank, axes)) {
      HeapTensor own = PartsOf(term)[other];
      for (const int axis : axes) {
        own = Cut(own, output.sbp[axis], mesh.axes()[axis].size,
                  nullptr)[mesh.Coordinate(rank, axis)];
      }
      terms.push_back(own);
    }
    const HeapTensor* const start = step_.first_micro_step ? nullptr : &accumulator[rank];
    result.push_back(Fold(start, terms, output.type.dtype));
  }
  if (options_.in_place) {
    for (int rank = 0; rank < num_ranks; ++rank) {
      std::memcpy(accumulator[rank].data(), result[rank].data(), result[rank].type().bytes());
    }
    result = accumulator;
  }
  Set(output, std::move(result));
  return Status::Ok();
}

// A change of placement.
Status NodesOnRanks::Box(const ir::Node& node) {
  if (node.inputs.size() == 2) return FoldInto(node, 1, 0);
  const ir::Value& input = *node.inputs[0];
  const ir::Value& output = *node.outputs[0];
  const Parts before = PartsOf(input);
  ZG_ASSIGN_OR_RETURN(const Parts parts, ranks_.ChangePlacement(before, input.sbp, output.sbp));
  if (input.type.dtype != output.type.dtype) return InvalidArgument("a change of dtype");
  Parts result;
  for (int rank = 0; rank < ranks_.num_ranks(); ++rank) {
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
  Set(output, std::move(result));
  return Status::Ok();
}

// The placements that a node wants for its inputs.
StatusOr<std::vector<NdSbp>> NodesOnRanks::WantedPlacements(const ir::Node& node) const {
  std::vector<NdSbp> wanted(node.inputs.size());
  if (!ranks_.is_placed()) return wanted;
  for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
    std::vector<Sbp> outputs;
    for (const ir::Value* output : node.outputs) outputs.push_back(output->sbp[axis]);
    const auto is_broadcast = [](Sbp sbp) { return sbp.is_broadcast(); };
    bool possible = std::all_of(outputs.begin(), outputs.end(), is_broadcast);
    if (graph_.mesh().axes()[axis].num_parts() > 1) {
      for (const ir::SbpSignature& signature : ir::SignaturesOf(node, axis)) {
        possible = possible || signature.outputs == outputs;
      }
    }
    const std::optional<ir::SbpSignature> own = ir::MicroBatchSignature(node, axis, graph_.mesh());
    possible = possible || (own.has_value() && own->outputs == outputs);
    if (!possible) return InvalidArgument("no signature has the placements of its outputs");
    const ir::SbpSignature signature = ir::ChooseSignature(node, axis, graph_.mesh(), &outputs);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i].push_back(signature.inputs[i]);
  }
  return wanted;
}

// Whether the node computes sums over whole tensors itself, although a rank may have only a part.
bool NodesOnRanks::MeasuresTensors(const ir::Node& node) const {
  return ranks_.is_placed() && node.op->traits.kind == ir::OpKind::kUpdate &&
         (node.attributes.Has("tensors") || node.attributes.Has("matrices")) &&
         node.inputs.back()->type.dtype != DType::kI64;
}

Status NodesOnRanks::Compute(const ir::Node& node) {
  ZG_ASSIGN_OR_RETURN(std::vector<NdSbp> wanted, WantedPlacements(node));
  const bool is_whole = MeasuresTensors(node);
  const NdSbp whole = AllBroadcast(graph_.mesh());
  if (is_whole) wanted.assign(wanted.size(), whole);
  std::vector<Parts> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value& input = *node.inputs[i];
    ZG_ASSIGN_OR_RETURN(Parts parts, ranks_.ChangePlacement(PartsOf(input), input.sbp, wanted[i]));
    inputs.push_back(std::move(parts));
  }
  if (node.op->traits.kind == ir::OpKind::kUpdate && options_.gradient_factor != 1.0) {
    Scale(&inputs[1], options_.gradient_factor);
  }
  std::vector<Parts> outputs(node.outputs.size());
  for (int rank = 0; rank < ranks_.num_ranks(); ++rank) {
    std::vector<HeapTensor> operands;
    for (const Parts& parts : inputs) operands.push_back(parts[rank]);
    ZG_ASSIGN_OR_RETURN(const std::vector<HeapTensor> results,
                        RunKernel(node, std::move(operands), rank));
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
    const ir::Value& output = *node.outputs[i];
    if (is_whole) {
      ZG_ASSIGN_OR_RETURN(outputs[i], ranks_.ChangePlacement(outputs[i], whole, output.sbp));
    }
    Set(output, std::move(outputs[i]));
  }
  if (is_whole && options_.in_place) WriteInPlace(node);
  return Status::Ok();
}

// For a bucket (parts, elements) of which the rank has its own part.
HeapTensor NodesOnRanks::ViewOfPart(const ir::Node& node, const HeapTensor& bucket) const {
  const HeapTensor view =
      bucket.View(graph_.LocalType(*node.outputs[0]), node.attributes.Int("offset"));
  return options_.in_place ? view : view.Clone();
}

HeapTensor NodesOnRanks::PackedPart(const ir::Node& node, const Parts& inputs) const {
  HeapTensor bucket = Zeros(graph_.LocalType(*node.outputs[0]));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = inputs[i].type();
    std::memcpy(bucket.View(type, node.attributes.Ints("offsets")[i]).data(), inputs[i].data(),
                type.bytes());
  }
  return bucket;
}

// Runs the kernel on a rank's operands.
StatusOr<std::vector<HeapTensor>> NodesOnRanks::RunKernel(const ir::Node& node,
                                                          std::vector<HeapTensor> inputs,
                                                          int rank) {
  const bool is_view = node.op->name == "bucket_view";
  if (is_view && inputs[0].type().shape.num_dims() == 2) return Parts{ViewOfPart(node, inputs[0])};
  const bool is_pack = node.op->name == "bucket_pack";
  if (is_pack && node.attributes.Int("parts") > 1) return Parts{PackedPart(node, inputs)};
  ir::OpCall call{node.op, {}, node.attributes};
  for (const HeapTensor& input : inputs) call.inputs.push_back(input.type());
  if (node.op->localize != nullptr) node.op->localize(node.Call(), &call);
  if (node.op->aliases != nullptr && !options_.in_place) {
    for (const ir::AliasRule& rule : node.op->aliases(call)) {
      if (rule.kind != ir::AliasRule::Kind::kOutputInsideInput) continue;
      inputs[rule.input] = inputs[rule.input].Clone();
    }
  }
  step_.micro_batch = ranks_.MicroBatch(rank, micro_step_);
  const int64_t part =
      inputs.empty() ? 0 : ShardPositionOf(graph_.mesh(), node.inputs[0]->sbp, rank).part;
  return Execute(CpuKernels(), call, inputs, step_, part);
}

// Writes that a kernel on parts does itself.
void NodesOnRanks::WriteInPlace(const ir::Node& node) {
  for (const ir::AliasRule& rule : node.op->aliases(node.Call())) {
    const ir::Value& output = *node.outputs[rule.output];
    if (node.inputs[rule.input]->sbp != output.sbp) continue;
    const Parts storage = PartsOf(*node.inputs[rule.input]);
    const Parts& parts = PartsOf(output);
    for (size_t rank = 0; rank < storage.size(); ++rank) {
      std::memcpy(storage[rank].data(), parts[rank].data(), parts[rank].type().bytes());
    }
    Set(output, storage);
  }
}

}  // namespace zg::testing
