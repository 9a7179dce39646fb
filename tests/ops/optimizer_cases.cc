#include <fmt/format.h>

#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Reference = ReferenceOutputs (*)(const ReferenceCall&);

// The result of `reference` if there is a control after the `num_states` states.
ReferenceOutputs Controlled(Reference reference, int num_states, const ReferenceCall& call) {
  ReferenceCall plain = call;
  const std::vector<double> control = call.inputs.back().values;
  plain.inputs.pop_back();
  if (control[0] == 0.0) {
    ReferenceOutputs kept = {plain.inputs[0].values};
    for (int i = 0; i < num_states; ++i) kept.push_back(plain.inputs[2 + i].values);
    return kept;
  }
  for (double& g : plain.inputs[1].values) g *= control[0];
  plain.step.step = static_cast<int64_t>(control[1]);
  return reference(plain);
}

// The case with one more result: the parameter in 16 bits, which needs the tolerance. Its bits are
// those of a cast (tests/kernels/optimizer_test.cc).
OpCase WithCopy(OpCase op_case, DType dtype) {
  op_case.label += fmt::format(", copied to {}", DTypeName(dtype));
  op_case.attributes.Set("copy_dtype", dtype);
  op_case.tolerance = dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  op_case.reference = [reference = op_case.reference](const ReferenceCall& call) {
    ReferenceOutputs outputs = reference(call);
    outputs.push_back(outputs[0]);
    return outputs;
  };
  return op_case;
}

ReferenceOutputs Sgd(const ReferenceCall& call) {
  const double lr = call.attributes.Float("lr") * call.step.lr_factor;
  std::vector<double> p = call.inputs[0].values;
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] -= lr * (call.inputs[1].values[i] + call.attributes.Float("weight_decay") * p[i]);
  }
  return {p};
}

ReferenceOutputs SgdMomentum(const ReferenceCall& call) {
  const double lr = call.attributes.Float("lr") * call.step.lr_factor;
  const double momentum = call.attributes.Float("momentum");
  const bool nesterov = call.attributes.Bool("nesterov");
  std::vector<double> p = call.inputs[0].values;
  std::vector<double> m = call.inputs[2].values;
  for (size_t i = 0; i < p.size(); ++i) {
    const double g = call.inputs[1].values[i] + call.attributes.Float("weight_decay") * p[i];
    m[i] = momentum * m[i] + g;
    p[i] -= lr * (nesterov ? g + momentum * m[i] : m[i]);
  }
  return {p, m};
}

ReferenceOutputs Adam(const ReferenceCall& call) {
  const ir::Attributes& attributes = call.attributes;
  const double lr = attributes.Float("lr") * call.step.lr_factor;
  const double beta1 = attributes.Float("beta1");
  const double beta2 = attributes.Float("beta2");
  const double weight_decay = attributes.Float("weight_decay");
  const double t = static_cast<double>(call.step.step);
  std::vector<double> p = call.inputs[0].values;
  std::vector<double> m = call.inputs[2].values;
  std::vector<double> v = call.inputs[3].values;
  for (size_t i = 0; i < p.size(); ++i) {
    double g = call.inputs[1].values[i];
    if (attributes.Bool("decoupled")) {
      p[i] -= lr * weight_decay * p[i];
    } else {
      g += weight_decay * p[i];
    }
    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
    v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
    const double corrected_m = m[i] / (1.0 - std::pow(beta1, t));
    const double corrected_v = v[i] / (1.0 - std::pow(beta2, t));
    p[i] -= lr * corrected_m / (std::sqrt(corrected_v) + attributes.Float("epsilon"));
  }
  return {p, m, v};
}

ir::Attributes AdamAttributes(bool decoupled) {
  return {{"lr", 0.1},       {"beta1", 0.9},        {"beta2", 0.99},
          {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"decoupled", decoupled}};
}

struct Rule {
  const char* op;
  const char* label;
  std::vector<InputSpec> inputs;  // with the shape still to be set
  ir::Attributes attributes;
  Reference reference;
};

}  // namespace

FamilyCases OptimizerCases() {
  const InputSpec any = F32({});
  const InputSpec squares = F32({}, 0.01, 1.0);
  const ir::Attributes sgd = {{"lr", 0.1}, {"weight_decay", 0.25}};
  const ir::Attributes momentum = {{"lr", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.25}};
  ir::Attributes nesterov = momentum;
  nesterov.Set("nesterov", true);
  const Rule rules[] = {
      {"sgd_update", "sgd", {any, any}, sgd, Sgd},
      {"sgd_momentum_update", "momentum", {any, any, any}, momentum, SgdMomentum},
      {"sgd_momentum_update", "nesterov", {any, any, any}, nesterov, SgdMomentum},
      {"adam_update", "adam", {any, any, any, squares}, AdamAttributes(false), Adam},
      {"adam_update", "adamw", {any, any, any, squares}, AdamAttributes(true), Adam}};
  FamilyCases family;
  for (const Rule& rule : rules) {
    for (const Shape& shape : {Shape{}, Shape{5, 7}, Shape{6, 6, 6}, Shape{4603}}) {
      OpCase op_case = {.op = rule.op,
                        .label = rule.label + shape.ToString(),
                        .inputs = rule.inputs,
                        .attributes = rule.attributes,
                        .reference = rule.reference,
                        .f32_inputs = {0, 2, 3}};  // all but the gradient
      for (InputSpec& input : op_case.inputs) input.type.shape = shape;
      family.cases.push_back(op_case);
      family.cases.push_back(WithCopy(op_case, DType::kBF16));
      family.cases.push_back(WithCopy(op_case, DType::kF16));
      for (const double factor : {0.75, 0.0}) {
        OpCase controlled = op_case;
        controlled.label += fmt::format(", factor {}", factor);
        controlled.inputs.push_back(F32({2}));
        controlled.f32_inputs.push_back(static_cast<int>(rule.inputs.size()));
        controlled.reference =
            [reference = rule.reference, num_states = static_cast<int>(rule.inputs.size()) - 2](
                const ReferenceCall& call) { return Controlled(reference, num_states, call); };
        controlled.prepare = [factor](ReferenceCall& call) {
          call.inputs.back().values = {factor, 7.0};  // not the number of the suite's step
        };
        family.cases.push_back(WithCopy(controlled, DType::kBF16));
        family.cases.push_back(std::move(controlled));
      }
    }
  }
  const InputSpec half = {{DType::kBF16, {5}}};
  ir::Attributes beta_of_one = AdamAttributes(true);
  beta_of_one.Set("beta2", 1.0);
  ir::Attributes copied_to_i64 = sgd;
  copied_to_i64.Set("copy_dtype", DType::kI64);
  family.rejections = {
      {"sgd_update",
       {F32({5}), F32({5})},
       copied_to_i64,
       "sgd_update: copy_dtype is i64, expected bf16 or f16, or f32 for none"},
      {"sgd_update", {F32({5}), F32({7})}, sgd, "sgd_update: shapes differ: p f32[5], g f32[7]"},
      {"sgd_update",
       {F32({5}), F32({5})},
       {{"lr", -0.1}, {"weight_decay", 0.0}},
       "sgd_update: lr is -0.1, expected 0 <= lr"},
      {"sgd_momentum_update",
       {F32({5}), F32({5}), F32({7})},
       momentum,
       "sgd_momentum_update: shapes differ: p f32[5], g f32[5], m f32[7]"},
      {"sgd_update",
       {F32({5}), F32({5}), F32({5})},
       sgd,
       "sgd_update: control is f32[5], expected f32[2]"},
      {"sgd_update", {half, half}, sgd, "sgd_update: p is not f32: p bf16[5], g bf16[5]"},
      {"sgd_momentum_update",
       {F32({5}), half, half},
       momentum,
       "sgd_momentum_update: dtypes differ: p f32[5], g f32[5], m bf16[5]"},
      {"adam_update",
       {F32({5}), F32({5}), F32({5}), F32({5})},
       beta_of_one,
       "adam_update: beta2 is 1, expected 0 <= beta2 < 1"}};
  const InputSpec state = F32({70003}, 0.01, 1.0);
  const ir::Attributes adam = AdamAttributes(true);
  ir::Attributes copying = adam;
  copying.Set("copy_dtype", DType::kBF16);
  family.large = {
      Sized("adam_update", "copied", {state, state, state, state}, copying, {0, 2, 3}),
      Sized("adam_update", "copied, left out", {state, state, state, state, F32({2}, 0, 0)},
            copying, {0, 2, 3, 4}),
      Sized("sgd_update", "many blocks", {state, state}, sgd, {0}),
      Sized("sgd_momentum_update", "many blocks", {state, state, state}, nesterov, {0, 2}),
      Sized("adam_update", "many blocks", {state, state, state, state}, adam, {0, 2, 3}),
      Sized("adam_update", "with a factor", {state, state, state, state, F32({2}, 2, 3)}, adam,
            {0, 2, 3, 4}),
      Sized("adam_update", "left out", {state, state, state, state, F32({2}, 0, 0)}, adam,
            {0, 2, 3, 4})};
  const InputSpec bucket = F32({4 << 20}, 0.01, 1.0);
  family.bench = {
      Sized("sgd_update", "bucket", {bucket, bucket}, sgd, {0}),
      Sized("sgd_momentum_update", "bucket", {bucket, bucket, bucket}, momentum, {0, 2}),
      Sized("adam_update", "bucket", {bucket, bucket, bucket, bucket}, adam, {0, 2, 3}),
      Sized("adam_update", "bucket, copied", {bucket, bucket, bucket, bucket}, copying, {0, 2, 3})};
  family.exact_on_gpu = {"sgd_update", "sgd_momentum_update"};
  return family;
}

}  // namespace zg::testing
