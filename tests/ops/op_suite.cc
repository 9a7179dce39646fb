#include "tests/ops/op_suite.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/interpreter.h"

namespace zg::testing {
namespace {

const std::vector<FamilyCases>& AllFamilies() {
  static const auto& families = *new std::vector<FamilyCases>(FamiliesUnderTest());
  return families;
}

// The ops that the program registers before all others.
const std::vector<const ir::OpDef*>& OpsUnderTest() {
  static const auto& ops = *new std::vector<const ir::OpDef*>([] {
    RegisterOpsUnderTest();
    std::vector<const ir::OpDef*> registered = ir::OpRegistry::Global().All();
    RegisterAllOps();  // gradient rules may use them
    return registered;
  }());
  return ops;
}

std::vector<const OpCase*> Select(const std::string& op, std::vector<OpCase> FamilyCases::*list) {
  std::vector<const OpCase*> found;
  for (const FamilyCases& family : AllFamilies()) {
    for (const OpCase& op_case : family.*list) {
      if (op_case.op == op) found.push_back(&op_case);
    }
  }
  return found;
}

}  // namespace

const KernelRegistry& Kernels() { return CpuKernels(); }

std::vector<const OpCase*> CasesOf(const std::string& op) {
  return Select(op, &FamilyCases::cases);
}

std::vector<const OpCase*> LargeCasesOf(const std::string& op) {
  return Select(op, &FamilyCases::large);
}

std::vector<const OpCase*> BenchCasesOf(const std::string& op) {
  return Select(op, &FamilyCases::bench);
}

bool IsExactOnGpu(const std::string& op) {
  for (const FamilyCases& family : AllFamilies()) {
    const std::vector<std::string>& exact = family.exact_on_gpu;
    if (std::find(exact.begin(), exact.end(), op) != exact.end()) return true;
  }
  return false;
}

std::vector<const Rejection*> RejectionsOf(const std::string& op) {
  std::vector<const Rejection*> found;
  for (const FamilyCases& family : AllFamilies()) {
    for (const Rejection& rejection : family.rejections) {
      if (rejection.op == op) found.push_back(&rejection);
    }
  }
  return found;
}

StepContext SuiteStep() {
  StepContext step;
  step.seed = 17;
  step.step = 3;
  step.micro_batch = 2;
  step.first_micro_step = false;
  step.lr_factor = 0.5;
  return step;
}

std::vector<double> RandomValues(const InputSpec& spec, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> distribution(spec.low, spec.high);
  std::vector<double> values(spec.type.shape.num_elements());
  for (double& value : values) {
    value = distribution(random);
    if (!IsFloat(spec.type.dtype)) value = std::floor(value);
  }
  // As the kernels see them.
  return HeapTensor::FromDoubles(spec.type, values).ToDoubles();
}

ConcreteCase::ConcreteCase(const OpCase& op_case) : op_case_(op_case) {
  ir::Builder builder(&graph_, graph_.section(ir::SectionKind::kForward));
  std::vector<ir::Value*> values;
  unsigned seed = 1;
  for (const InputSpec& spec : op_case.inputs) {
    values.push_back(builder.Variable(fmt::format("input{}", seed), spec.type, Initializer::Zeros(),
                                      Role::kParameter));
    reference_call_.inputs.push_back({spec.type.shape, RandomValues(spec, seed)});
    ++seed;
  }
  const std::vector<ir::Value*> outputs = builder.Ops(op_case.op, values, op_case.attributes);
  ZG_CHECK(builder.status().ok(), "case '{}': {}", op_case.label, builder.status().ToString());
  node_ = outputs[0]->producer;
  reference_call_.attributes = node_->attributes;
  reference_call_.step = SuiteStep();
  if (op_case.prepare != nullptr) op_case.prepare(reference_call_);
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<double>& input = reference_call_.inputs[i].values;
    inputs_.push_back(HeapTensor::FromDoubles(values[i]->type, input));
    input = inputs_.back().ToDoubles();
  }
}

std::vector<HeapTensor> ConcreteCase::inputs() const {
  std::vector<HeapTensor> copies;
  for (const HeapTensor& input : inputs_) copies.push_back(input.Clone());
  return copies;
}

std::vector<HeapTensor> ConcreteCase::Run(const std::vector<HeapTensor>& inputs) const {
  StatusOr<std::vector<HeapTensor>> outputs = Execute(Kernels(), call(), inputs, SuiteStep());
  if (outputs.ok()) return *outputs;
  ADD_FAILURE() << outputs.status().ToString();
  return {};
}

ReferenceOutputs ConcreteCase::Reference(const std::vector<HeapTensor>& inputs,
                                         StepContext step) const {
  ReferenceCall call = {{}, reference_call_.attributes, step};
  for (const HeapTensor& input : inputs) {
    call.inputs.push_back({input.type().shape, input.ToDoubles()});
  }
  return op_case_.reference(call);
}

OpCase InHalf(const OpCase& op_case, DType dtype) {
  OpCase half = op_case;
  if (op_case.is_f32_only) return half;
  for (size_t i = 0; i < half.inputs.size(); ++i) {
    const bool stays = std::count(half.f32_inputs.begin(), half.f32_inputs.end(), i) > 0;
    if (IsFloat(half.inputs[i].type.dtype) && !stays) half.inputs[i].type.dtype = dtype;
  }
  return half;
}

void ExpectSameBitsInPlace(const ConcreteCase& concrete) {
  const ir::OpDef& op = *concrete.node().op;
  const std::vector<HeapTensor> expected = concrete.Run(concrete.inputs());
  for (const ir::AliasRule& rule : op.aliases(concrete.call())) {
    if (rule.kind != ir::AliasRule::Kind::kInPlace) continue;
    SCOPED_TRACE(fmt::format("output {} over input {}", rule.output, rule.input));
    const std::vector<HeapTensor> inputs = concrete.inputs();
    // The memory plan does not share operands of different sizes, which f32 inputs in 16 bits may
    // have.
    if (inputs[rule.input].type().bytes() != expected[rule.output].type().bytes()) continue;
    std::vector<HeapTensor> outputs;
    for (const HeapTensor& output : expected) outputs.emplace_back(output.type());
    outputs[rule.output] = inputs[rule.input].View(outputs[rule.output].type(), 0);
    const Status status = ExecuteInto(Kernels(), concrete.call(), inputs, SuiteStep(), outputs);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(SameBits(outputs[i], expected[i])) << "output " << i;
    }
  }
}

::testing::AssertionResult IsClose(const std::vector<double>& got, const std::vector<double>& want,
                                   double tolerance) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << got.size() << " elements, expected " << want.size();
  }
  double largest = 1.0;
  for (double value : want) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    if (std::abs(got[i] - want[i]) <= tolerance * largest) continue;  // false for NaN
    return ::testing::AssertionFailure()
           << "element " << i << " of " << got.size() << ": got " << got[i] << ", expected "
           << want[i] << " within " << tolerance * largest;
  }
  return ::testing::AssertionSuccess();
}

void OpSuite::SetUp() { OpsUnderTest(); }

const ir::OpDef& OpSuite::op() const { return *ir::OpRegistry::Global().Find(GetParam()); }

std::vector<std::string> ComputeOpNames() {
  std::vector<std::string> names;
  for (const ir::OpDef* op : OpsUnderTest()) {
    const ir::OpKind kind = op->traits.kind;
    if (kind == ir::OpKind::kCompute || kind == ir::OpKind::kCast || kind == ir::OpKind::kUpdate) {
      names.push_back(op->name);
    }
  }
  return names;
}

std::vector<std::string> KernelOpNames() {
  std::vector<std::string> names;
  for (const ir::OpDef* op : OpsUnderTest()) {
    if (Kernels().Has(op->name)) names.push_back(op->name);
  }
  return names;
}

}  // namespace zg::testing
