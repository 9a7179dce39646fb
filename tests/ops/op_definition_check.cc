// For every compute op: its definition is complete, its shape rule rejects invalid inputs, its
// kernel agrees with a plain reference, and memory is shared as its alias rules allow.
#include <algorithm>

#include "tests/ops/op_suite.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

using OpTest = OpSuite;
ZG_INSTANTIATE_OP_SUITE(OpTest);

TEST_P(OpTest, IsDefinedAndCovered) {
  EXPECT_FALSE(op().doc.empty());
  EXPECT_NE(op().gradient == nullptr, op().not_differentiable.empty())
      << "either a gradient or a reason why there is none";
  EXPECT_FALSE(CasesOf(op().name).empty()) << "add cases to the family's file in tests/ops";
  EXPECT_FALSE(RejectionsOf(op().name).empty()) << "add a rejected input, likewise";
}

TEST_P(OpTest, RejectsWithAMessage) {
  for (const Rejection* rejection : RejectionsOf(op().name)) {
    ir::Graph graph;
    ir::Builder builder(&graph, graph.section(ir::SectionKind::kForward));
    std::vector<ir::Value*> inputs;
    for (const InputSpec& spec : rejection->inputs) {
      inputs.push_back(builder.Variable(fmt::format("input{}", inputs.size()), spec.type,
                                        Initializer::Zeros(), Role::kParameter));
    }
    builder.Ops(rejection->op, inputs, rejection->attributes);
    EXPECT_EQ(builder.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(builder.status().message(), rejection->message);
  }
}

bool IsOverwritten(const ir::OpCall& call, int input) {
  if (call.op->aliases == nullptr) return false;
  const std::vector<ir::AliasRule> rules = call.op->aliases(call);
  return std::any_of(rules.begin(), rules.end(), [&](const ir::AliasRule& rule) {
    return rule.kind == ir::AliasRule::Kind::kOutputInsideInput && rule.input == input;
  });
}

TEST_P(OpTest, KernelMatchesReference) {
  for (const OpCase* op_case : CasesOf(op().name)) {
    SCOPED_TRACE(op_case->label);
    const ConcreteCase concrete(*op_case);
    const std::vector<HeapTensor> inputs = concrete.inputs();
    const std::vector<HeapTensor> outputs = concrete.Run(inputs);
    const ReferenceOutputs expected = concrete.Reference();
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(IsClose(outputs[i].ToDoubles(), expected[i], op_case->tolerance))
          << "output " << i;
    }
    const std::vector<HeapTensor> originals = concrete.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (IsOverwritten(concrete.call(), static_cast<int>(i))) continue;
      EXPECT_TRUE(SameBits(inputs[i], originals[i])) << "input " << i << " was written to";
    }
  }
}

TEST_P(OpTest, InPlaceGivesTheSameBits) {
  if (op().aliases == nullptr) return;
  for (const OpCase* op_case : CasesOf(op().name)) {
    SCOPED_TRACE(op_case->label);
    ExpectSameBitsInPlace(ConcreteCase(*op_case));
  }
}

HeapTensor Reversed(const HeapTensor& tensor) {
  std::vector<double> values = tensor.ToDoubles();
  std::reverse(values.begin(), values.end());
  return HeapTensor::FromDoubles(tensor.type(), values);
}

// An element's bits depend neither on its position nor on its neighbours: vector bodies and tails
// agree.
TEST_P(OpTest, ElementwiseOpsTreatAllPositionsAlike) {
  if (!op().traits.is_elementwise) return;
  for (const OpCase* op_case : CasesOf(op().name)) {
    SCOPED_TRACE(op_case->label);
    const ConcreteCase concrete(*op_case);
    std::vector<HeapTensor> reversed_inputs;
    for (const HeapTensor& input : concrete.inputs()) reversed_inputs.push_back(Reversed(input));
    const std::vector<HeapTensor> outputs = concrete.Run(concrete.inputs());
    const std::vector<HeapTensor> reversed_outputs = concrete.Run(reversed_inputs);
    ASSERT_EQ(outputs.size(), 1u);
    ASSERT_EQ(reversed_outputs.size(), 1u);
    EXPECT_TRUE(SameBits(Reversed(reversed_outputs[0]), outputs[0]));
  }
}

}  // namespace
}  // namespace zg::testing
