// Speed of the CPU kernels on the bench cases of the families, on one thread, in f32 and bf16.
//
//   bazel run //tests/ops:kernel_bench -- --benchmark_filter=adam
//   bazel run //tests/ops:kernel_bench -- --benchmark_filter=linear.*gpt  # f32 beside bf16
//
// GB/s counts every operand once: the bytes that the op must move, regardless of caches. A "cold"
// case cycles through more memory than the caches hold; a "warm" one stays in place.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "tests/ops/op_suite.h"

namespace zg::testing {
namespace {

constexpr int64_t kColdBytes = int64_t{256} << 20;
constexpr int64_t kWarmBytes = int64_t{1} << 23;  // held by a core's caches

// One set of operands. Outputs are in the memory of inputs if the op requires that.
struct Operands {
  std::vector<HeapTensor> tensors;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

class Runner {
 public:
  Runner(const OpCase& op_case, bool is_cold) : concrete_(op_case) {
    KernelSpec spec{concrete_.call(), {}};
    for (const ir::Value* output : concrete_.node().outputs) spec.outputs.push_back(output->type);
    auto kernel = Kernels().Make(spec);
    ZG_CHECK(kernel.ok(), "{}", kernel.status().message());
    kernel_ = *std::move(kernel);
    for (const TensorType& type : spec.call.inputs) bytes_ += type.bytes();
    for (const TensorType& type : spec.outputs) bytes_ += type.bytes();
    const int64_t copies = is_cold ? std::max<int64_t>(1, kColdBytes / bytes_) : 1;
    for (int64_t i = 0; i < copies; ++i) sets_.push_back(MakeOperands(spec));
    workspace_ = HeapTensor({DType::kU8, {kernel_->workspace_bytes()}});
  }

  void Run() {
    const Operands& set = sets_[next_];
    next_ = (next_ + 1) % sets_.size();
    const Status status =
        kernel_->Run({set.inputs.data(), set.outputs.data(), workspace_.data(), &step_});
    ZG_CHECK(status.ok(), "{}", status.message());
  }

  int64_t bytes() const { return bytes_; }
  size_t num_sets() const { return sets_.size(); }
  double flops() const {
    const auto& flops = concrete_.call().op->flops;
    return flops == nullptr ? 0.0 : static_cast<double>(flops(concrete_.call()));
  }

 private:
  Operands MakeOperands(const KernelSpec& spec) const {
    Operands operands;
    operands.tensors = concrete_.inputs();
    for (const HeapTensor& input : operands.tensors) operands.inputs.push_back(input.data());
    for (const TensorType& type : spec.outputs) {
      operands.tensors.emplace_back(type);
      operands.outputs.push_back(operands.tensors.back().data());
    }
    if (spec.call.op->aliases == nullptr) return operands;
    for (const ir::AliasRule& rule : spec.call.op->aliases(spec.call)) {
      if (rule.kind != ir::AliasRule::Kind::kOutputInsideInput) continue;
      operands.outputs[rule.output] = const_cast<void*>(operands.inputs[rule.input]);
    }
    return operands;
  }

  const ConcreteCase concrete_;
  std::unique_ptr<Kernel> kernel_;
  int64_t bytes_ = 0;
  std::vector<Operands> sets_;
  size_t next_ = 0;
  HeapTensor workspace_;
  const StepContext step_ = SuiteStep();
};

void Measure(benchmark::State& state, const OpCase& op_case, bool is_cold) {
  Runner runner(op_case, is_cold);
  for (size_t i = 0; i < runner.num_sets(); ++i) runner.Run();
  for (auto _ : state) runner.Run();
  state.SetBytesProcessed(state.iterations() * runner.bytes());
  if (runner.flops() > 0.0) {
    state.counters["flops"] =
        benchmark::Counter(runner.flops(), benchmark::Counter::kIsIterationInvariantRate);
  }
}

void Register(const OpCase& op_case, DType dtype) {
  const OpCase typed = InHalf(op_case, dtype);
  const bool fits_caches = typed.inputs.empty() || typed.inputs[0].type.bytes() <= kWarmBytes;
  for (const bool is_cold : {true, false}) {
    if (!is_cold && !fits_caches) continue;
    const std::string name = fmt::format("{}/{}/{}/{}", op_case.op, op_case.label, DTypeName(dtype),
                                         is_cold ? "cold" : "warm");
    benchmark::RegisterBenchmark(name.c_str(), [typed, is_cold](benchmark::State& state) {
      Measure(state, typed, is_cold);
    })->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace zg::testing

int main(int argc, char** argv) {
  for (const std::string& op : zg::testing::KernelOpNames()) {
    for (const zg::testing::OpCase* op_case : zg::testing::BenchCasesOf(op)) {
      for (const zg::DType dtype : {zg::DType::kF32, zg::DType::kBF16}) {
        zg::testing::Register(*op_case, dtype);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
