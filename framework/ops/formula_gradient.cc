#include "framework/ops/formula_gradient.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "framework/ir/differentiate.h"

namespace zg {
namespace {

bool NeedsNone(const ir::GradientContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) {
    if (context.needs(i)) return false;
  }
  return true;
}

Status AppendGradients(const Formula& formula, ir::GradientContext& context) {
  if (NeedsNone(context)) return Status::Ok();
  ir::Builder& builder = context.builder();
  const auto begin = static_cast<int64_t>(builder.section()->nodes.size());
  const ir::Node& node = context.node();
  std::vector<Term> inputs;
  std::unordered_set<const ir::Value*> sources;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const Term input = {&builder, node.inputs[i]};
    inputs.push_back(IsFloat(input.value->type.dtype) ? As(DType::kF32, input) : input);
    if (i < context.num_inputs() && context.needs(i)) sources.insert(node.inputs[i]);
  }
  const std::vector<Term> outputs = formula(inputs, node);
  std::vector<ir::Seed> seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    ir::Value* const gradient = context.output_gradient(static_cast<int>(i));
    if (gradient == nullptr) continue;
    seeds.push_back({outputs[i].value, As(DType::kF32, {&builder, gradient}).value});
  }
  ZG_RETURN_IF_ERROR(builder.status());
  const std::vector<ir::Node*>& all = builder.section()->nodes;
  const std::vector<ir::Node*> nodes(all.begin() + begin, all.end());
  ZG_ASSIGN_OR_RETURN(const auto gradients,
                      ir::Differentiate(&builder, nodes, seeds, ir::DependingOn(nodes, sources)));
  for (int i = 0; i < context.num_inputs(); ++i) {
    // A value that is several inputs has one gradient, their sum.
    const auto found =
        sources.erase(context.input(i)) > 0 ? gradients.find(context.input(i)) : gradients.end();
    if (found != gradients.end()) context.set_input_gradient(i, found->second);
  }
  return Status::Ok();
}

}  // namespace

std::function<Status(ir::GradientContext&)> GradientOf(Formula formula) {
  return [formula = std::move(formula)](ir::GradientContext& context) {
    return AppendGradients(formula, context);
  };
}

void AddToInputGradient(ir::GradientContext& context, int i, Term term) {
  const Term same_type = As(context.input(i)->type.dtype, term);
  ir::Value* const before = context.input_gradients()[i];
  const Term sum = before == nullptr ? same_type : Term{&context.builder(), before} + same_type;
  context.set_input_gradient(i, sum.value);
}

}  // namespace zg
