#include "framework/runtime/non_finite_report.h"

namespace zg {
namespace {

// "'weight' at element 7", for the stored tensor at this address.
std::string ElementAt(const RankMemory& memory, const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  for (const ir::StoredTensor& tensor : memory.graph().tensors()) {
    const LocalPart part = memory.PartOf(tensor);
    const int64_t offset_bytes = part.count == 0 ? -1 : byte - part.data;
    const int64_t element = offset_bytes / SizeOf(tensor.type.dtype);
    if (offset_bytes < 0 || element >= part.count) continue;
    return fmt::format("'{}' at element {}", tensor.name, part.ElementAt(element));
  }
  return "padding";
}

}  // namespace

Status CheckFiniteOutput(const OutputSlot& slot, const std::function<std::string()>& blame) {
  const auto found = FirstNonFinite(slot.result.type.dtype, slot.data.data(),
                                    slot.result.type.shape.num_elements());
  if (!found) return Status::Ok();
  const std::string value = ElementText(slot.result.type.dtype, slot.data.data(), *found);
  if (slot.name != "grad_norm") {
    return FailedPrecondition("the {} is {}{}", slot.name, value, kNonFiniteHint);
  }
  return FailedPrecondition("the norm of the gradients is {}{}{}", value,
                            blame ? ": " + blame() : "", kNonFiniteHint);
}

std::string BlamedGradient(const RankMemory& memory, const InstructionList& update) {
  const ir::Graph& graph = memory.graph();
  for (const Instruction& instruction : update.instructions) {
    if (instruction.kind() != ir::OpKind::kUpdate) continue;
    const ir::Value* gradient = instruction.node->inputs[1];
    // Before its collective has run, only this rank's part is valid.
    bool is_gathered_later = false;
    while (gradient->producer->op->traits.kind == ir::OpKind::kBoxing) {
      const ir::Value* source = gradient->producer->inputs[0];
      if (graph.LocalType(*source).bytes() >= graph.LocalType(*gradient).bytes()) break;
      gradient = source;
      is_gathered_later = true;
    }
    const TensorType type = graph.LocalType(*gradient);
    const void* const data = memory.AddressOf(gradient);
    const auto found = FirstNonFinite(type.dtype, data, type.shape.num_elements());
    if (!found) continue;
    const int flat_dim = gradient->type.shape.num_dims() - 1;
    const int64_t part = ShardPositionOf(graph.mesh(), gradient->sbp, memory.rank(), flat_dim).part;
    const int64_t part_begin = is_gathered_later ? part * type.shape.num_elements() : 0;
    const auto* const parameters = static_cast<const float*>(instruction.inputs[0]);
    return fmt::format("that of {} is {}", ElementAt(memory, parameters + part_begin + *found),
                       ElementText(type.dtype, data, *found));
  }
  return "those that this rank holds are finite";
}

std::string BlamedUpdate(const RankMemory& memory, const Instruction& instruction) {
  const ir::Node& node = *instruction.node;
  const TensorType type = memory.graph().LocalType(*node.outputs[0]);
  const auto found = FirstNonFinite(type.dtype, instruction.outputs[0], type.shape.num_elements());
  if (!found) return "";
  return fmt::format(": {} is {}, with a gradient of {}",
                     ElementAt(memory, static_cast<const float*>(instruction.inputs[0]) + *found),
                     ElementText(type.dtype, instruction.outputs[0], *found),
                     ElementText(node.inputs[1]->type.dtype, instruction.inputs[1], *found));
}

}  // namespace zg
