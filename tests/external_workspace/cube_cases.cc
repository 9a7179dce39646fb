// Cases of cube for Zerograph's op suite, which checks its definition, kernels, gradient and
// placements like those of Zerograph's own ops.
#include "cube.h"
#include "tests/ops/op_suite.h"

namespace zg::testing {
namespace {

ReferenceOutputs Cube(const ReferenceCall& call) {
  return MapElements(call, [](double x, double) { return x * x * x; });
}
ReferenceOutputs CubeGrad(const ReferenceCall& call) {
  return MapElements(call, [](double x, double dy) { return 3.0 * x * x * dy; });
}

OpCase Case(const std::string& op, const std::string& label, std::vector<InputSpec> inputs,
            std::function<ReferenceOutputs(const ReferenceCall&)> reference) {
  OpCase op_case;
  op_case.op = op;
  op_case.label = label;
  op_case.inputs = std::move(inputs);
  op_case.reference = std::move(reference);
  op_case.gradient_tolerance = 1e-2;
  op_case.is_f32_only = true;
  return op_case;
}

}  // namespace

void RegisterOpsUnderTest() { RegisterCube(); }

std::vector<FamilyCases> FamiliesUnderTest() {
  FamilyCases family;
  const InputSpec odd = F32({5, 7}), even = F32({6, 12});  // divisible into parts for 2 and 3 ranks
  family.cases = {Case("cube", "odd", {odd}, Cube), Case("cube", "even", {even}, Cube),
                  Case("cube_grad", "odd", {odd, odd}, CubeGrad),
                  Case("cube_grad", "even", {even, even}, CubeGrad)};
  family.rejections = {
      {"cube", {I64({3}, 9)}, {}, "cube: inputs are not f32 of one shape"},
      {"cube_grad", {F32({3}), F32({4})}, {}, "cube_grad: inputs are not f32 of one shape"}};
  return {family};
}

}  // namespace zg::testing
