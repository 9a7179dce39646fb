// For every differentiable compute op: the gradient rule's nodes, run by their kernels, agree with
// finite differences of the forward kernel, and the rule appends only the requested gradients.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/ops/op_suite.h"
#include "tests/testing/finite_differences.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

constexpr double kStep = 1.0 / 16;

using OpGradientTest = OpSuite;
ZG_INSTANTIATE_OP_SUITE(OpGradientTest);

// What the rule says if the loss depends on the first `count` outputs of a case.
Status GradientOfFirst(const OpCase& op_case, size_t count) {
  ConcreteCase concrete(op_case);
  ir::Graph& graph = concrete.graph();
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kBackward));
  const ir::Node& node = concrete.node();
  std::vector<ir::Value*> of_the_right_types(node.outputs.size(), nullptr);
  std::copy_n(node.outputs.begin(), count, of_the_right_types.begin());
  ir::GradientContext context(node, &builder, of_the_right_types,
                              std::vector<bool>(node.inputs.size(), true));
  return node.op->gradient(context);
}

// How many outputs, from the first on, the loss may depend on: of some ops not on all of them.
size_t NumDifferentiable(const OpCase& op_case, size_t num_outputs) {
  size_t count = num_outputs;
  while (count > 1 && !GradientOfFirst(op_case, count).ok()) --count;
  return count;
}

// The backward graph of one node, and its values for given values of the inputs.
class Backward {
 public:
  Backward(ConcreteCase* concrete, std::vector<bool> needed)
      : builder_(&concrete->graph(), concrete->graph().section(ir::SectionKind::kBackward)),
        inputs_(concrete->inputs()),
        context_(concrete->node(), &builder_, Seeds(*concrete), std::move(needed)) {
    EXPECT_TRUE(concrete->node().op->gradient(context_).ok());
    EXPECT_TRUE(builder_.status().ok()) << builder_.status().ToString();
  }

  const std::vector<ir::Node*>& nodes() { return builder_.section()->nodes; }
  const ir::Value* gradient(int input) const { return context_.input_gradients()[input]; }

  // The dot product of outputs and seeds.
  double Loss(const std::vector<HeapTensor>& outputs) const {
    double loss = 0.0;
    for (size_t i = 0; i < seeds_.size(); ++i) {
      const std::vector<double> y = outputs[i].ToDoubles();
      const std::vector<double> seed = seeds_[i].ToDoubles();
      loss += std::inner_product(y.begin(), y.end(), seed.begin(), 0.0);
    }
    return loss;
  }

  // The gradient of `input` for that loss.
  StatusOr<HeapTensor> Run(int input) {
    Interpreter interpreter(Kernels(), SuiteStep());
    const ir::Node& node = context_.node();
    for (size_t i = 0; i < inputs_.size(); ++i) interpreter.Bind(node.inputs[i], inputs_[i]);
    for (size_t i = 0; i < seeds_.size(); ++i) {
      interpreter.Bind(context_.output_gradient(static_cast<int>(i)), seeds_[i]);
    }
    ZG_RETURN_IF_ERROR(interpreter.Run(node.section->nodes));
    ZG_RETURN_IF_ERROR(interpreter.Run(nodes()));
    return interpreter.Get(gradient(input));
  }

 private:
  // Also gives seeds_ their values.
  std::vector<ir::Value*> Seeds(const ConcreteCase& concrete) {
    const ir::Node& node = concrete.node();
    const size_t num_seeds = NumDifferentiable(concrete.op_case(), node.outputs.size());
    std::vector<ir::Value*> values(node.outputs.size(), nullptr);
    for (size_t i = 0; i < num_seeds; ++i) {
      const TensorType& type = node.outputs[i]->type;
      values[i] =
          builder_.Variable(fmt::format("seed{}", i), type, Initializer::Zeros(), Role::kGradient);
      seeds_.push_back(
          HeapTensor::FromDoubles(type, RandomValues({type}, /*seed=*/99 + static_cast<int>(i))));
    }
    return values;
  }

  ir::Builder builder_;
  std::vector<HeapTensor> inputs_;
  std::vector<HeapTensor> seeds_;
  ir::GradientContext context_;
};

bool HasGradient(const ConcreteCase& concrete, int input) {
  return IsFloat(concrete.node().inputs[input]->type.dtype) &&
         IsFloat(concrete.node().outputs[0]->type.dtype);
}

std::vector<bool> NeededOf(const ConcreteCase& concrete) {
  std::vector<bool> needed;
  for (size_t i = 0; i < concrete.node().inputs.size(); ++i) {
    needed.push_back(HasGradient(concrete, static_cast<int>(i)));
  }
  return needed;
}

TEST_P(OpGradientTest, MatchesFiniteDifferences) {
  if (op().gradient == nullptr) return;
  int num_checked = 0;
  for (const OpCase* op_case : CasesOf(op().name)) {
    if (!op_case->check_gradient) continue;
    ++num_checked;
    SCOPED_TRACE(op_case->label);
    ConcreteCase concrete(*op_case);
    const int num_inputs = static_cast<int>(op_case->inputs.size());
    Backward backward(&concrete, NeededOf(concrete));
    for (int i = 0; i < num_inputs; ++i) {
      if (!HasGradient(concrete, i)) continue;
      SCOPED_TRACE(fmt::format("input {}", i));
      std::vector<HeapTensor> inputs = concrete.inputs();
      const TensorType type = inputs[i].type();
      const auto loss = [&](const std::vector<double>& x) {
        inputs[i] = HeapTensor::FromDoubles(type, x);
        const std::vector<HeapTensor> outputs = concrete.Run(inputs);
        return outputs.empty() ? 0.0 : backward.Loss(outputs);
      };
      const std::vector<double> expected = NumericalGradient(loss, inputs[i].ToDoubles(), kStep);
      ASSERT_NE(backward.gradient(i), nullptr);
      const StatusOr<HeapTensor> gradient = backward.Run(i);
      ASSERT_TRUE(gradient.ok()) << gradient.status().ToString();
      EXPECT_EQ(gradient->type(), type);
      EXPECT_TRUE(IsClose(gradient->ToDoubles(), expected, op_case->gradient_tolerance));
    }
  }
  EXPECT_GT(num_checked, 0) << "no case of this op checks the gradient";
}

TEST_P(OpGradientTest, AppendsOnlyWhatIsNeeded) {
  if (op().gradient == nullptr) return;
  for (const OpCase* op_case : CasesOf(op().name)) {
    SCOPED_TRACE(op_case->label);
    const int num_inputs = static_cast<int>(op_case->inputs.size());
    ConcreteCase for_none(*op_case);
    Backward none(&for_none, std::vector<bool>(num_inputs, false));
    EXPECT_TRUE(none.nodes().empty());
    ConcreteCase for_all(*op_case);
    Backward all(&for_all, NeededOf(for_all));
    for (int i = 0; i < num_inputs; ++i) {
      EXPECT_EQ(all.gradient(i) != nullptr, HasGradient(for_all, i)) << "input " << i;
      if (!HasGradient(for_all, i)) continue;
      std::vector<bool> needed(num_inputs, false);
      needed[i] = true;
      ConcreteCase for_one(*op_case);
      Backward one(&for_one, needed);
      for (int j = 0; j < num_inputs; ++j) EXPECT_EQ(one.gradient(j) != nullptr, i == j);
      const StatusOr<HeapTensor> gradient_of_one = one.Run(i);
      const StatusOr<HeapTensor> gradient_of_all = all.Run(i);
      ASSERT_TRUE(gradient_of_one.ok()) << gradient_of_one.status().ToString();
      ASSERT_TRUE(gradient_of_all.ok()) << gradient_of_all.status().ToString();
      EXPECT_TRUE(SameBits(*gradient_of_one, *gradient_of_all)) << "input " << i;
    }
  }
}

TEST_P(OpGradientTest, GradientsHaveTheTypesOfInputsIn16Bits) {
  if (op().gradient == nullptr) return;
  for (const OpCase* op_case : CasesOf(op().name)) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(fmt::format("{}, {}", op_case->label, DTypeName(dtype)));
      const OpCase half = InHalf(*op_case, dtype);
      ConcreteCase concrete(half);
      Backward backward(&concrete, NeededOf(concrete));
      for (size_t i = 0; i < half.inputs.size(); ++i) {
        if (!HasGradient(concrete, static_cast<int>(i))) continue;
        ASSERT_NE(backward.gradient(static_cast<int>(i)), nullptr);
        EXPECT_EQ(backward.gradient(static_cast<int>(i))->type.ToString(),
                  half.inputs[i].type.ToString())
            << "input " << i;
      }
    }
  }
}

TEST_P(OpGradientTest, RefusesGradientsOfFurtherOutputs) {
  if (op().gradient == nullptr || op().num_outputs == 1) return;
  const OpCase& op_case = *CasesOf(op().name).front();
  const ConcreteCase concrete(op_case);
  const std::vector<ir::Value*>& outputs = concrete.node().outputs;
  const size_t count = NumDifferentiable(op_case, outputs.size());
  if (count == outputs.size()) return;  // MatchesFiniteDifferences has them
  EXPECT_EQ(GradientOfFirst(op_case, count + 1).message(),
            fmt::format("{} %{}: the loss depends on output {}, which has no gradient", op().name,
                        outputs[0]->name, count));
}

}  // namespace
}  // namespace zg::testing
