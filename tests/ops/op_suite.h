// The op suite: properties of every op, checked for each op under test. The checks are the files
// beside this one (op_definition_check.cc, ...). They share the declarations here: all cases, a
// case made concrete (node, random inputs, reference results), and a fixture that visits the
// compute ops one by one.
//
// The program that links the checks determines the ops under test: zerograph_families.cc for the
// ops of framework/ops; a project with its own ops defines the same two functions in a file of its
// own (op_suite.bzl).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "tests/ops/op_case.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {

// Defined by the program. The ops that it registers are those under test; their kernels are those
// of CpuKernels().
void RegisterOpsUnderTest();
std::vector<FamilyCases> FamiliesUnderTest();

// The kernels under test.
const KernelRegistry& Kernels();

std::vector<const OpCase*> CasesOf(const std::string& op);
std::vector<const OpCase*> LargeCasesOf(const std::string& op);
std::vector<const OpCase*> BenchCasesOf(const std::string& op);
bool IsExactOnGpu(const std::string& op);
std::vector<const Rejection*> RejectionsOf(const std::string& op);

// Not the first step, nor the first micro-batch, nor a trivial learning rate.
StepContext SuiteStep();

// A node in a graph of its own, whose inputs are variables, and their values.
class ConcreteCase {
 public:
  explicit ConcreteCase(const OpCase& op_case);

  const OpCase& op_case() const { return op_case_; }
  ir::Graph& graph() { return graph_; }
  const ir::Node& node() const { return *node_; }
  ir::OpCall call() const { return node_->Call(); }
  // Copies, because updates overwrite their inputs.
  std::vector<HeapTensor> inputs() const;
  // Runs the kernel on `inputs`; a test failure and no outputs if it cannot.
  std::vector<HeapTensor> Run(const std::vector<HeapTensor>& inputs) const;
  ReferenceOutputs Reference() const { return op_case_.reference(reference_call_); }
  // The reference for other inputs (a rank's part) and another step.
  ReferenceOutputs Reference(const std::vector<HeapTensor>& inputs, StepContext step) const;

 private:
  const OpCase& op_case_;
  ir::Graph graph_;
  ir::Node* node_ = nullptr;
  ReferenceCall reference_call_;
  std::vector<HeapTensor> inputs_;
};

// The case with floating-point inputs of `dtype`, except its f32_inputs.
OpCase InHalf(const OpCase& op_case, DType dtype);

// Runs the kernel with outputs in the memory of inputs, as the op's alias rules allow, and expects
// the same bits as elsewhere.
void ExpectSameBitsInPlace(const ConcreteCase& concrete);

// Fails, with the first offender, unless |got - want| <= tolerance * max(1, largest finite |want|),
// or both are the same infinity, or NaN.
::testing::AssertionResult IsClose(const std::vector<double>& got, const std::vector<double>& want,
                                   double tolerance);

std::vector<double> RandomValues(const InputSpec& spec, unsigned seed);

// Parameter: the name of a compute op.
class OpSuite : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  const ir::OpDef& op() const;
};

// The ops under test.
std::vector<std::string> ComputeOpNames();  // without ops for structure and communication
std::vector<std::string> KernelOpNames();   // all that have a kernel

}  // namespace zg::testing

#define ZG_INSTANTIATE_OP_SUITE(fixture)                                                       \
  INSTANTIATE_TEST_SUITE_P(Ops, fixture, ::testing::ValuesIn(::zg::testing::ComputeOpNames()), \
                           [](const auto& info) { return info.param; })
