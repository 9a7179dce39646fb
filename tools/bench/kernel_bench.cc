// Speed of the CPU kernels at the sizes of the demo models, on one thread.
//
//   bazel run //tools/bench:kernel_bench -- --benchmark_filter=adam
//   bazel run //tools/bench:kernel_bench -- --benchmark_filter=linear.*gpt  # f32 beside bf16
//
// GB/s counts every operand once: what the op must move, not what the caches make of it. A "cold"
// case walks over more memory than the caches hold; a "warm" one stays in place.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/cpu_kernels.h"

namespace {

using zg::DType;
using zg::Shape;
using zg::TensorType;
using zg::ir::Attributes;

constexpr int64_t kColdBytes = int64_t{256} << 20;
constexpr int64_t kAlignment = 4096;

struct Case {
  std::string name;
  std::string op;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  Attributes attributes;
  double flops = 0.0;
  int64_t max_id = 1;            // ids are below it
  bool update_in_place = false;  // outputs are inputs 0, 2, 3, ..., as in optimizer updates
  bool onto_first = false;       // output 0 is input 0
  bool cold = true;
};

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
TensorType I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

int64_t Padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

// One set of operands.
struct Operands {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

class Runner {
 public:
  explicit Runner(const Case& test) : test_(test) {
    op_.name = test.op;
    zg::KernelSpec spec{{&op_, test.inputs, test.attributes}, test.outputs};
    auto kernel = zg::CpuKernels().Make(spec);
    ZG_CHECK(kernel.ok(), "{}", kernel.status().message());
    kernel_ = std::move(*kernel);
    for (const TensorType& type : test.inputs) bytes_ += type.bytes();
    for (const TensorType& type : test.outputs) bytes_ += type.bytes();
    const int64_t copies = test.cold ? std::max<int64_t>(1, kColdBytes / bytes_) : 1;
    for (int64_t i = 0; i < copies; ++i) sets_.push_back(MakeOperands());
    workspace_ = Allocate(kernel_->workspace_bytes());
  }

  void Run() {
    const Operands& set = sets_[next_];
    next_ = (next_ + 1) % sets_.size();
    const zg::Status status =
        kernel_->Run({set.inputs.data(), set.outputs.data(), workspace_.get(), &step_});
    ZG_CHECK(status.ok(), "{}", status.message());
  }

  int64_t bytes() const { return bytes_; }
  size_t num_sets() const { return sets_.size(); }

 private:
  static Memory Allocate(int64_t bytes) {
    const int64_t padded = Padded(std::max<int64_t>(bytes, 1));
    char* const memory = static_cast<char*>(std::aligned_alloc(kAlignment, padded));
    std::fill_n(memory, padded, 0);
    return Memory(memory);
  }

  Operands MakeOperands() {
    Operands operands;
    for (const TensorType& type : test_.inputs) {
      memory_.push_back(Allocate(type.bytes()));
      Fill(type, memory_.back().get());
      operands.inputs.push_back(memory_.back().get());
    }
    for (size_t i = 0; i < test_.outputs.size(); ++i) {
      if (test_.update_in_place || (test_.onto_first && i == 0)) {
        operands.outputs.push_back(const_cast<void*>(operands.inputs[i == 0 ? 0 : i + 1]));
        continue;
      }
      memory_.push_back(Allocate(test_.outputs[i].bytes()));
      operands.outputs.push_back(memory_.back().get());
    }
    return operands;
  }

  void Fill(const TensorType& type, char* memory) {
    const int64_t count = type.shape.num_elements();
    if (type.dtype == DType::kI64) {
      int64_t* const ids = reinterpret_cast<int64_t*>(memory);
      for (int64_t i = 0; i < count; ++i) ids[i] = static_cast<int64_t>(random_() % test_.max_id);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(random_() >> 8) * 0x1p-24f + 0.1f;
      zg::ConvertFloats(DType::kF32, &value, type.dtype, memory + i * zg::SizeOf(type.dtype), 1);
    }
  }

  const Case test_;
  zg::ir::OpDef op_;
  std::unique_ptr<zg::Kernel> kernel_;
  int64_t bytes_ = 0;
  std::minstd_rand random_{1};
  std::vector<Memory> memory_;
  std::vector<Operands> sets_;
  size_t next_ = 0;
  Memory workspace_;
  zg::StepContext step_{1, 2, 0, false, 1.0};
};

void Measure(benchmark::State& state, const Case& test) {
  Runner runner(test);
  for (size_t i = 0; i < runner.num_sets(); ++i) runner.Run();
  for (auto _ : state) runner.Run();
  state.SetBytesProcessed(state.iterations() * runner.bytes());
  if (test.flops > 0.0) {
    state.counters["flops"] =
        benchmark::Counter(test.flops, benchmark::Counter::kIsIterationInvariantRate);
  }
}

// In 16 bits the states of optimizers, the accumulators and the statistics stay in f32.
std::vector<Case> MemoryBoundCases(DType dtype) {
  const int64_t bucket = 4 << 20;  // 16 MB
  const int64_t rows = 2048;
  const TensorType state = F32({bucket});
  const TensorType flat = {dtype, {bucket}};
  const TensorType hidden = {dtype, {rows, 384}};
  const TensorType wide = {dtype, {rows, 1536}};
  const TensorType logits = {dtype, {rows, 256}};
  const TensorType table = {dtype, {256, 384}};
  const TensorType sequences = {dtype, {8, 256, 384}};
  const TensorType targets = I64({rows});
  const TensorType per_row = F32({rows});
  const TensorType vector = {dtype, {384}};
  const TensorType scalar = F32({});
  const Attributes adam = {{"lr", 1e-3},      {"beta1", 0.9},         {"beta2", 0.999},
                           {"epsilon", 1e-8}, {"weight_decay", 0.01}, {"decoupled", true}};
  const Attributes sgd = {
      {"lr", 1e-3}, {"momentum", 0.9}, {"weight_decay", 0.0}, {"nesterov", false}};
  const Attributes dropout = {{"probability", 0.1}, {"stream", int64_t{3}}};
  const Attributes divisor = {{"divisor", 2048.0}};
  std::vector<Case> cases = {
      {"adam_update/bucket",
       "adam_update",
       {state, flat, state, state},
       {state, state, state},
       adam},
      {"sgd_update/bucket", "sgd_update", {state, flat}, {state}, sgd},
      {"sgd_momentum_update/bucket",
       "sgd_momentum_update",
       {state, flat, state},
       {state, state},
       sgd},
      {"accumulate/bucket", "accumulate", {state, flat}, {state}, {}},
      {"bucket_pack/copy",
       "bucket_pack",
       {flat},
       {flat},
       {{"offsets", std::vector<int64_t>{0}}, {"size", bucket}}},
      {"cast/bucket", "cast", {state}, {flat}, {}},
      {"add/bucket", "add", {flat, flat}, {flat}, {}},
      {"add/hidden", "add", {hidden, hidden}, {hidden}, {}},
      {"scale/hidden", "scale", {hidden}, {hidden}, {{"factor", 0.5}}},
      {"relu/wide", "relu", {wide}, {wide}, {}},
      {"relu_grad/wide", "relu_grad", {wide, wide}, {wide}, {}},
      {"gelu/wide", "gelu", {wide}, {wide}, {}},
      {"gelu_grad/wide", "gelu_grad", {wide, wide}, {wide}, {}},
      {"layer_norm/hidden",
       "layer_norm",
       {hidden, vector, vector},
       {hidden, per_row, per_row},
       {{"epsilon", 1e-5}}},
      {"layer_norm_grad/hidden",
       "layer_norm_grad",
       {hidden, hidden, vector, per_row, per_row},
       {hidden, vector, vector},
       {}},
      {"softmax_cross_entropy/256",
       "softmax_cross_entropy",
       {logits, targets},
       {scalar, per_row},
       divisor},
      {"softmax_cross_entropy_grad/256",
       "softmax_cross_entropy_grad",
       {scalar, logits, targets, per_row},
       {logits},
       divisor},
      {"mse_loss/wide", "mse_loss", {wide, wide}, {scalar}, divisor},
      {"mse_loss_grad/wide", "mse_loss_grad", {scalar, wide, wide}, {wide}, divisor},
      {"embedding/256", "embedding", {table, targets}, {hidden}, {}},
      {"embedding_grad/256", "embedding_grad", {hidden, targets}, {table}, {}},
      {"dropout/hidden", "dropout", {hidden}, {hidden}, dropout},
      {"add_broadcast/position", "add_broadcast", {sequences, table}, {sequences}, {}},
      {"sum_leading/position", "sum_leading", {sequences}, {table}, {}},
      {"linear_grad_bias/wide", "linear_grad_bias", {wide}, {{dtype, {1536}}}, {}},
      {"fused_elementwise/add,gelu",
       "fused_elementwise",
       {wide, wide},
       {wide},
       {{"program", std::string("t0=add(i0,i1);t1=gelu(t0)")}}},
  };
  for (Case& test : cases) {
    test.name += fmt::format("/{}", zg::DTypeName(dtype));
    test.max_id = 256;
    test.update_in_place = test.op.find("_update") != std::string::npos;
    test.onto_first = test.op == "accumulate";
  }
  return cases;
}

// A linear layer of `inputs` x `outputs` parameters over `rows` rows, forward and backward.
void AddLinear(const std::string& model, DType dtype, int64_t rows, int64_t inputs, int64_t outputs,
               std::vector<Case>& cases) {
  const std::string size =
      fmt::format("{}/{}x{}x{}/{}", model, rows, inputs, outputs, zg::DTypeName(dtype));
  const TensorType x = {dtype, {rows, inputs}};
  const TensorType y = {dtype, {rows, outputs}};
  const TensorType weight = {dtype, {outputs, inputs}};
  const TensorType bias = {dtype, {outputs}};
  const double flops = 2.0 * rows * inputs * outputs;
  cases.push_back({"linear/" + size, "linear", {x, weight, bias}, {y}, {}, flops});
  cases.push_back({"linear_grad_input/" + size, "linear_grad_input", {y, weight}, {x}, {}, flops});
  cases.push_back(
      {"linear_grad_weight/" + size, "linear_grad_weight", {y, x}, {weight}, {}, flops});
}

void AddAttention(const std::string& model, DType dtype, std::vector<Case>& cases) {
  const int64_t batch = 8, time = 256, channels = 384, heads = 6;
  const TensorType qkv = {dtype, {batch, time, 3 * channels}};
  const TensorType out = {dtype, {batch, time, channels}};
  const TensorType per_query = F32({batch, heads, time});
  const Attributes causal = {{"heads", heads}, {"causal", true}};
  const double product = 2.0 * batch * channels * time * (time + 1) / 2;
  const std::string name = fmt::format("{}/{}", model, zg::DTypeName(dtype));
  cases.push_back({"attention/" + name, "attention", {qkv}, {out, per_query}, causal, 2 * product});
  cases.push_back({"attention_grad/" + name,
                   "attention_grad",
                   {out, qkv, out, per_query},
                   {qkv},
                   causal,
                   5 * product});
}

std::vector<Case> ComputeBoundCases() {
  std::vector<Case> cases;
  for (const auto& [inputs, outputs] : std::vector<std::pair<int64_t, int64_t>>{
           {384, 1152}, {384, 384}, {384, 1536}, {1536, 384}, {384, 256}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      AddLinear("gpt", dtype, 2048, inputs, outputs, cases);
    }
  }
  AddLinear("recipe", DType::kF32, 20, 2000, 2000, cases);
  for (const DType dtype : {DType::kF32, DType::kBF16}) AddAttention("gpt", dtype, cases);
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (Case& test : MemoryBoundCases(dtype)) {
      cases.push_back(test);
      cases.back().name += "/cold";
      if (test.inputs[0].bytes() > (1 << 23)) continue;  // larger than what a core keeps near
      cases.push_back(test);
      cases.back().name += "/warm";
      cases.back().cold = false;
    }
  }
  for (Case& test : ComputeBoundCases()) cases.push_back(test);
  for (const Case& test : cases) {
    benchmark::RegisterBenchmark(test.name.c_str(), [&test](benchmark::State& state) {
      Measure(state, test);
    })->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
