#include <algorithm>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// (a - b) c, then halved, then relu.
ReferenceOutputs Chain(const ReferenceCall& call) {
  std::vector<double> y = call.inputs[0].values;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = std::max(0.0, 0.5 * (y[i] - call.inputs[1].values[i]) * call.inputs[2].values[i]);
  }
  return {y};
}

// (a + b) (a + b) + b: a result that is used twice.
ReferenceOutputs Diamond(const ReferenceCall& call) {
  return MapElements(call, [](double a, double b) { return (a + b) * (a + b) + b; });
}

OpCase Case(const char* label, const Shape& shape, int num_inputs, std::string program,
            ReferenceOutputs (*reference)(const ReferenceCall&)) {
  return {.op = "fused_elementwise",
          .label = label,
          .inputs = std::vector<InputSpec>(num_inputs, F32(shape)),
          .attributes = {{"program", std::move(program)}},
          .reference = reference,
          .rounds_within = true};
}

}  // namespace

FamilyCases FusedElementwiseCases() {
  const std::string chain =
      "t0=subtract(i0,i1);t1=multiply(t0,i2);t2=scale(t1,factor=0.5);t3=relu(t2)";
  const std::string diamond = "t0=add(i0,i1);t1=multiply(t0,t0);t2=add(t1,i1)";
  const ir::Attributes softmax = {{"program", std::string("t0=softmax(i0)")}};
  FamilyCases family;
  family.cases = {Case("chain", {6, 12}, 3, chain, Chain),
                  Case("diamond", {6, 12}, 2, diamond, Diamond),
                  Case("chain, many elements", {4603}, 3, chain, Chain),
                  Case("diamond, many elements", {4602}, 2, diamond, Diamond),
                  Case("chain, vector", {18}, 3, chain, Chain)};
  family.rejections = {
      {"fused_elementwise",
       {F32({2, 3}), F32({3, 2})},
       {{"program", std::string("t0=add(i0,i1)")}},
       "fused_elementwise: input types differ: f32[2,3], f32[3,2]"},
      {"fused_elementwise",
       {F32({2, 3})},
       softmax,
       "fused_elementwise: program \"t0=softmax(i0)\": \"softmax\" is not an elementwise op"}};
  const std::string many_slots =
      "t0=add(i0,i1);t1=gelu(t0);t2=multiply(t0,t1);t3=scale(t1,factor=3);t4=subtract(t3,t2);"
      "t5=relu(t4)";
  family.large = {Sized("fused_elementwise", "many slots", {F32({4099}), F32({4099})},
                        {{"program", many_slots}})};
  family.bench = {Sized("fused_elementwise", "add,gelu", {F32({2048, 1536}), F32({2048, 1536})},
                        {{"program", std::string("t0=add(i0,i1);t1=gelu(t0)")}})};
  family.exact_on_gpu = {"fused_elementwise"};
  return family;
}

}  // namespace zg::testing
