#include "framework/ops/custom_gradient.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

constexpr int kFirstInput = 2;  // after y and the placeholder of its gradient

StatusOr<Types> InferType(const ir::OpCall& call) {
  const Types& inputs = call.inputs;
  if (inputs.size() % 2 != 0) {
    return InvalidArgument("custom_gradient: got {} inputs, expected y, dy, every x and every dx",
                           inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsFloat(inputs[i].dtype)) continue;
    return InvalidArgument("custom_gradient: input {} is {}, expected floating-point", i,
                           inputs[i].ToString());
  }
  const size_t count = inputs.size() / 2 - 1;
  for (size_t i = 0; i <= count; ++i) {
    const TensorType& of = i == 0 ? inputs[0] : inputs[kFirstInput + i - 1];
    const TensorType& gradient = i == 0 ? inputs[1] : inputs[kFirstInput + count + i - 1];
    if (of.shape == gradient.shape) continue;
    return InvalidArgument("custom_gradient: got the gradient {} of {}, expected the same shape",
                           gradient.ToString(), of.ToString());
  }
  return Types{inputs[0]};
}

// Mixed precision may have inserted casts after it.
const ir::Value* WithoutCasts(const ir::Value* value) {
  while (value->producer->op->traits.kind == ir::OpKind::kCast) value = value->producer->inputs[0];
  return value;
}

ir::Value* AsDType(ir::Builder& builder, ir::Value* value, DType dtype) {
  if (value == nullptr || value->type.dtype == dtype) return value;
  return builder.Op("cast", {value}, {{"dtype", dtype}});
}

// The nodes before `end`, in order, through which `results` depend on `placeholder`.
std::vector<const ir::Node*> NodesBetween(const ir::Value* placeholder, const ir::Node& end,
                                          std::unordered_set<const ir::Value*> results) {
  const std::vector<ir::Node*>& nodes = end.section->nodes;
  const auto last = std::find(nodes.begin(), nodes.end(), &end);
  const auto first = std::find(nodes.begin(), last, placeholder->producer);
  std::unordered_set<const ir::Value*> depend = {placeholder};
  std::vector<const ir::Node*> dependent;
  for (auto node = first; node != last; ++node) {
    const auto& inputs = (*node)->inputs;
    if (std::any_of(inputs.begin(), inputs.end(), [&](auto* one) { return depend.count(one); })) {
      dependent.push_back(*node);
      depend.insert((*node)->outputs.begin(), (*node)->outputs.end());
    }
  }
  std::vector<const ir::Node*> between;
  for (auto node = dependent.rbegin(); node != dependent.rend(); ++node) {
    const auto& outputs = (*node)->outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](auto* one) { return results.count(one); }))
      continue;
    between.push_back(*node);
    results.insert((*node)->inputs.begin(), (*node)->inputs.end());
  }
  std::reverse(between.begin(), between.end());
  return between;
}

// Computes every dx again, from the actual gradient.
Status Gradient(ir::GradientContext& context) {
  const ir::Node& node = context.node();
  ir::Builder& builder = context.builder();
  const int count = context.num_inputs() / 2 - 1;
  const ir::Value* const placeholder = WithoutCasts(context.input(1));
  std::unordered_set<const ir::Value*> results;
  for (int i = 0; i < count; ++i) {
    if (context.needs(kFirstInput + i)) results.insert(context.input(kFirstInput + count + i));
  }
  if (results.empty()) return Status::Ok();
  std::unordered_map<const ir::Value*, ir::Value*> copies;
  copies[placeholder] = AsDType(builder, context.output_gradient(), placeholder->type.dtype);
  const auto copy_of = [&](ir::Value* value) {
    const auto found = copies.find(value);
    return found == copies.end() ? value : found->second;
  };
  for (const ir::Node* from : NodesBetween(placeholder, node, results)) {
    std::vector<ir::Value*> inputs;
    for (ir::Value* input : from->inputs) inputs.push_back(copy_of(input));
    const std::vector<ir::Value*> outputs =
        builder.Ops(from->op->name, inputs, from->attributes, from->outputs[0]->name);
    ZG_RETURN_IF_ERROR(builder.status());
    for (size_t i = 0; i < outputs.size(); ++i) copies[from->outputs[i]] = outputs[i];
  }
  for (int i = 0; i < count; ++i) {
    if (!context.needs(kFirstInput + i)) continue;
    ir::Value* const gradient = copy_of(context.input(kFirstInput + count + i));
    const DType dtype = context.input(kFirstInput + i)->type.dtype;
    context.set_input_gradient(kFirstInput + i, AsDType(builder, gradient, dtype));
  }
  return Status::Ok();
}

}  // namespace

ir::OpDef CustomGradientOp() {
  ir::OpDef op;
  op.name = op_names::kCustomGradient;
  op.traits.kind = ir::OpKind::kView;
  op.traits.sinks_to_user = true;
  op.doc =
      "y, which shares its memory. Its gradient is what the inputs say: y, dy, then every x and the dx "
      "of each. dy has any value; backward computes what lies between it and every dx once more, of "
      "the gradient of y. The pass drop-gradient-marks removes it.";
  op.min_inputs = 4;
  op.max_inputs = -1;
  op.infer_shape = InferType;
  op.gradient = Gradient;
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

}  // namespace zg
