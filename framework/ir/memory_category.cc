#include "framework/ir/memory_category.h"

#include "framework/ir/graph.h"

namespace zg {
namespace {

constexpr std::string_view kCategoryNames[kNumMemoryCategories] = {
    "parameters", "gradients", "optimizer_state", "activations", "communication", "workspace"};

MemoryCategory CategoryOfRole(Role role) {
  switch (role) {
    case Role::kParameter:
    case Role::kBuffer:
      return MemoryCategory::kParameters;
    case Role::kGradient:
      return MemoryCategory::kGradients;
    case Role::kMaster:
    case Role::kOptimizerState:
    case Role::kControl:
      return MemoryCategory::kOptimizerState;
    case Role::kAccumulator:
      return MemoryCategory::kActivations;
  }
  return MemoryCategory::kActivations;
}

// For the value in another placement: gathered parameters, and 16-bit copies of them, are
// communication.
MemoryCategory CategoryOfCopy(const ir::Value& value) {
  if (ir::HoldsGradient(value)) return MemoryCategory::kGradients;
  const ir::Node& node = *value.producer;
  const bool is_cast = node.op->traits.kind == ir::OpKind::kCast;
  const MemoryCategory category = CategoryOf(is_cast ? *node.inputs[0] : value);
  return category == MemoryCategory::kParameters ? MemoryCategory::kCommunication : category;
}

}  // namespace

std::string_view MemoryCategoryName(MemoryCategory category) {
  return kCategoryNames[static_cast<int>(category)];
}

MemoryCategory CategoryOf(const ir::Value& value) {
  const ir::Node& node = *value.producer;
  switch (node.op->traits.kind) {
    case ir::OpKind::kVariable:
      return CategoryOfRole(ir::RoleOf(value));
    case ir::OpKind::kView:
      return CategoryOf(*node.inputs[0]);
    case ir::OpKind::kPack:
      return ir::IsInFlight(value) ? MemoryCategory::kCommunication : MemoryCategory::kGradients;
    case ir::OpKind::kPlace:
    case ir::OpKind::kBoxing:
      return CategoryOfCopy(*node.inputs.back());  // a sum has the category of its accumulator
    default:
      return ir::HoldsGradient(value) ? MemoryCategory::kGradients : MemoryCategory::kActivations;
  }
}

}  // namespace zg
