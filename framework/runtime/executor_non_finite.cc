// What a program hands out and updates when it must be finite, and who is to blame when it is not.

#include "framework/runtime/executor.h"
#include "framework/runtime/non_finite.h"

namespace zg {

Status Executor::CheckOutput(const OutputSlot& slot, const StepContext& context) const {
  if (!context.stop_on_non_finite) return Status::Ok();
  const auto found =
      FirstNonFinite(slot.type.dtype, slot.data.data(), slot.type.shape.num_elements());
  if (!found) return Status::Ok();
  const std::string value = ElementText(slot.type.dtype, slot.data.data(), *found);
  if (slot.name != "grad_norm") {
    return FailedPrecondition("the {} is {}{}", slot.name, value, kNonFiniteHint);
  }
  return FailedPrecondition("the norm of the gradients is {}{}{}", value,
                            device_.is_host() ? ": " + BlamedGradient() : "", kNonFiniteHint);
}

std::string Executor::ElementAt(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  for (const ir::StoredTensor& tensor : graph_->tensors()) {
    const LocalPart part = LocalPartOf(tensor);
    const int64_t offset_bytes = part.count == 0 ? -1 : byte - part.data;
    const int64_t element = offset_bytes / SizeOf(tensor.type.dtype);
    if (offset_bytes < 0 || element >= part.count) continue;
    return fmt::format("'{}' at element {}", tensor.name, part.begin + element);
  }
  return "padding";
}

// Of the gradients that this rank holds, before the update.
std::string Executor::BlamedGradient() const {
  for (const Instruction& instruction : update_.instructions) {
    const ir::Node& node = *instruction.node;
    if (node.op->traits.kind != ir::OpKind::kUpdate) continue;
    const ir::Value* gradient = node.inputs[1];
    // Before its collective has run, only this rank's part is there.
    bool is_gathered_later = false;
    while (gradient->producer->op->traits.kind == ir::OpKind::kBoxing) {
      const ir::Value* source = gradient->producer->inputs[0];
      if (graph_->LocalType(*source).bytes() >= graph_->LocalType(*gradient).bytes()) break;
      gradient = source;
      is_gathered_later = true;
    }
    const TensorType type = graph_->LocalType(*gradient);
    const void* const data = arena_ + OperandOf(gradient).begin;
    const auto found = FirstNonFinite(type.dtype, data, type.shape.num_elements());
    if (!found) continue;
    const int64_t part_begin =
        is_gathered_later
            ? ShardPositionOf(graph_->mesh(), gradient->sbp, communicator_->rank()).part *
                  type.shape.num_elements()
            : 0;
    return fmt::format(
        "that of {} is {}",
        ElementAt(static_cast<const float*>(instruction.inputs[0]) + part_begin + *found),
        ElementText(type.dtype, data, *found));
  }
  return "those that this rank holds are finite";
}

std::string Executor::BlamedUpdate(const Instruction& instruction) const {
  const TensorType type = graph_->LocalType(*instruction.node->outputs[0]);
  const auto found = FirstNonFinite(type.dtype, instruction.outputs[0], type.shape.num_elements());
  if (!found) return "";
  return fmt::format(
      ": {} is {}, with a gradient of {}",
      ElementAt(static_cast<const float*>(instruction.inputs[0]) + *found),
      ElementText(type.dtype, instruction.outputs[0], *found),
      ElementText(instruction.node->inputs[1]->type.dtype, instruction.inputs[1], *found));
}

}  // namespace zg
