// What fuse-gelu makes of a graph computes the same bits on the CPU, in every dtype.

#include "framework/passes/fuse_gelu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "framework/ir/parser.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

// A layer with gelu and one behind it, forward and backward; the first is computed again. D is the
// dtype.
constexpr const char* kGraph = R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %x: D[40,24] = input (dtype="D", name="x", shape=[40,24])
  %a: D[96,24] = input (dtype="D", name="a", shape=[96,24])
  %bias: D[96] = input (dtype="D", name="bias", shape=[96])
  %b: D[24,96] = input (dtype="D", name="b", shape=[24,96])
  %h: D[40,96] = linear %x, %a, %bias
  %r: D[40,96] = gelu %h
  %y: D[40,24] = linear %r, %b
backward:
  %r.grad: D[40,96] = linear_grad_input %y, %b
  %h.again: D[40,96] = linear %x, %a, %bias
  %r.again: D[40,96] = gelu %h.again
  %b.grad: D[24,96] = linear_grad_weight %y, %r.again
  %h.grad: D[40,96] = gelu_grad %r.grad, %h.again
  %a.grad: D[96,24] = linear_grad_weight %h.grad, %x
  output %a.grad (name="a")
  output %b.grad (name="b")
)";

std::string GraphIn(DType dtype) {
  std::string text = kGraph;
  for (const std::string from : {" D[", "\"D\""}) {
    const std::string to = fmt::format("{}{}{}", from[0], DTypeName(dtype), from[2]);
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

HeapTensor RandomTensor(const TensorType& type, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> values(type.shape.num_elements());
  for (double& value : values) value = uniform(random);
  return HeapTensor::FromDoubles(type, values);
}

// Runs the whole graph; its inputs are the same in every call.
Interpreter RunGraph(const ir::Graph& graph) {
  Interpreter interpreter(CpuKernels(), StepContext());
  uint32_t seed = 0;
  for (ir::Node* node : graph.AllNodes()) {
    if (node->op->name == "input") {
      interpreter.Bind(node->outputs[0], RandomTensor(node->outputs[0]->type, ++seed));
    } else if (node->op->name != "output") {
      EXPECT_TRUE(interpreter.Run({node}).ok()) << node->op->name;
    }
  }
  return interpreter;
}

TEST(FuseGelu, ChangesNoBitOnTheCpu) {
  RegisterAllOps();
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const StatusOr<ir::Graph> apart = ir::Parse(GraphIn(dtype));
    StatusOr<ir::Graph> fused = ir::Parse(GraphIn(dtype));
    ASSERT_TRUE(apart.ok() && fused.ok()) << apart.status().message();
    const StatusOr<bool> changed = FuseGelu().Run(*fused);
    ASSERT_TRUE(changed.ok()) << changed.status().message();
    EXPECT_EQ(fused->NodesOf("linear_gelu").size(), 2u);
    EXPECT_EQ(fused->NodesOf("linear_grad_input_gelu").size(), 1u);
    const Interpreter expected = RunGraph(*apart);
    const Interpreter got = RunGraph(*fused);
    for (const char* name : {"h", "r", "y", "h.again", "r.again", "b.grad", "h.grad", "a.grad"}) {
      const ir::Value* value = fused->FindValue(name);
      ASSERT_NE(value, nullptr) << name;
      EXPECT_TRUE(SameBits(got.Get(value), expected.Get(apart->FindValue(name)))) << name;
    }
  }
}

}  // namespace
}  // namespace zg::testing
