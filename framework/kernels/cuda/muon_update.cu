#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cuda/exact_blocks.cuh"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/matmul.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/muon_call.h"

namespace zg::cuda {
namespace {

constexpr int64_t kAlignmentBytes = 256;
constexpr int kTermElements = kSquareSumTermElements;

int64_t AlignedBytes(int64_t bytes) { return CeilDivide(bytes, kAlignmentBytes) * kAlignmentBytes; }

// If the control's factor is 0, everything stays unchanged.
template <typename T>
struct DirectionBody {
  const T* g;
  const float* control;  // null: no control
  float one_minus_momentum;
  bool nesterov;
  float* m;
  float* x;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    const float factor = control == nullptr ? 1.0f : control[0];
    const Floats<kCount> gradient = LoadFloats<kCount>(g + begin);
    Floats<kCount> momentum = LoadFloats<kCount>(m + begin);
    Floats<kCount> direction;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const MuonMomentum next =
          MuonMomentumStep(factor * gradient[i], momentum[i], one_minus_momentum, nesterov);
      direction[i] = next.direction;
      if (factor != 0.0f) momentum[i] = next.m;
    }
    StoreFloats(momentum, m + begin);
    StoreFloats(direction, x + begin);
  }
};

// Adds the exact square sum of x to `words`.
__global__ void MuonSquareSumKernel(const float* x, int64_t count, int64_t* words) {
  ExactSum sum;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x * kTermElements;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t begin = thread * kTermElements; begin < count; begin += stride) {
    Floats<kTermElements> term;
#pragma unroll
    for (int i = 0; i < kTermElements; ++i) term[i] = begin + i < count ? x[begin + i] : 0.0f;
    sum.Add(SumOfSquares(term));
  }
  WriteBlockSum(sum, [&](int word, int64_t total) { AtomicAdd(words + word, total); });
}

struct NormaliseBody {
  const int64_t* words;  // of the square sum
  float epsilon;
  float* x;

  struct Prepared {
    float divisor;
  };
  __device__ Prepared Prepare() const {
    ExactSum sum;
    sum.AddWords(words);
    return {std::max(static_cast<float>(std::sqrt(sum.Value())), epsilon)};
  }
  template <int kCount>
  __device__ void Run(int64_t begin, const Prepared& prepared) const {
    Floats<kCount> values = LoadFloats<kCount>(x + begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = values[i] / prepared.divisor;
    StoreFloats(values, x + begin);
  }
};

// x = of_x x + of_y y.
struct CombineBody {
  float* x;
  const float* y;
  float of_x;
  float of_y;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Floats<kCount> values = LoadFloats<kCount>(x + begin);
    const Floats<kCount> others = LoadFloats<kCount>(y + begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = of_x * values[i] + of_y * others[i];
    StoreFloats(values, x + begin);
  }
};

struct NextBody {
  float* p;
  const float* x;
  const float* control;
  const StepContext* step;
  MuonOptions options;
  double scale;
  FaultSink faults;

  using Prepared = MuonFactors;
  __device__ Prepared Prepare() const { return MuonFactorsOf(options, step->lr_factor, scale); }

  template <int kCount>
  __device__ void Run(int64_t begin, const Prepared& factors) const {
    if (control != nullptr && control[0] == 0.0f) return;
    Floats<kCount> values = LoadFloats<kCount>(p + begin);
    const Floats<kCount> steps = LoadFloats<kCount>(x + begin);
    bool is_finite = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = MuonNext(values[i], steps[i], factors);
      is_finite = is_finite && std::isfinite(values[i]);
    }
    if (!is_finite && step->stop_on_non_finite) faults.Record(0, 0);
    StoreFloats(values, p + begin);
  }
};

// The products of a Newton-Schulz step for matrices of one shape, as on the CPU.
struct StepProducts {
  bool is_tall = false;
  std::unique_ptr<Matmul> gram;
  std::unique_ptr<Matmul> square;
  std::unique_ptr<Matmul> with_x;

  static StatusOr<StepProducts> Make(const MuonMatrix& matrix, bool tf32, GemmChoices* choices) {
    StepProducts products;
    products.is_tall = matrix.rows > matrix.columns;
    const int64_t side = matrix.side();
    MatmulShape shape;
    shape.tf32 = tf32;
    shape.rows = shape.columns = shape.depth = side;
    ZG_ASSIGN_OR_RETURN(products.square, Matmul::Make(shape, choices));
    shape.depth = std::max(matrix.rows, matrix.columns);
    shape.transpose_a = products.is_tall;
    shape.transpose_b = !products.is_tall;
    ZG_ASSIGN_OR_RETURN(products.gram, Matmul::Make(shape, choices));
    shape.transpose_a = shape.transpose_b = false;
    shape.rows = matrix.rows;
    shape.columns = matrix.columns;
    shape.depth = side;
    ZG_ASSIGN_OR_RETURN(products.with_x, Matmul::Make(shape, choices));
    return StatusOr<StepProducts>(std::move(products));
  }

  int64_t workspace_bytes() const {
    return std::max(
        {gram->workspace_bytes(), square->workspace_bytes(), with_x->workspace_bytes()});
  }
};

// Queues the matrices of this rank one after the other.
class MuonUpdate : public Kernel {
 public:
  using Products = std::map<std::pair<int64_t, int64_t>, StepProducts>;  // by rows and columns

  MuonUpdate(MuonCall call, Products products)
      : call_(std::move(call)), products_(std::move(products)) {
    for (const MuonMatrix& matrix : call_.matrices) {
      const auto bytes = static_cast<int64_t>(sizeof(float));
      x_bytes_ = std::max(x_bytes_, AlignedBytes(matrix.size() * bytes));
      gram_bytes_ = std::max(gram_bytes_, AlignedBytes(matrix.side() * matrix.side() * bytes));
    }
    for (const auto& [shape, made] : products_) {
      product_bytes_ = std::max(product_bytes_, made.workspace_bytes());
    }
  }

  int64_t workspace_bytes() const override {
    return 2 * (x_bytes_ + gram_bytes_) + kSumBytes + product_bytes_;
  }

  Status Run(const KernelArguments& arguments) override {
    for (int i : {0, 1}) {  // everything outside of matrices is padding, and stays unchanged
      const auto* const old_values = arguments.input<float>(i == 0 ? 0 : 2);
      auto* const out = arguments.output<float>(i);
      if (out == old_values) continue;
      ZG_RETURN_IF_ERROR(CudaStatus(
          cudaMemcpyAsync(out, old_values, call_.num_elements * sizeof(float),
                          cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(arguments.stream)),
          "a bucket could not be copied"));
    }
    for (const MuonMatrix& matrix : call_.matrices) {
      if (matrix.part == arguments.part) ZG_RETURN_IF_ERROR(Update(arguments, matrix));
    }
    return Status::Ok();
  }

  std::string FaultText(const DeviceFault&) const override {
    return "an updated parameter is not finite";
  }

 private:
  static constexpr int64_t kSumBytes = 256;
  static_assert(kExactSumWords * sizeof(int64_t) <= kSumBytes, "the sum of squares has room");

  Status Update(const KernelArguments& arguments, const MuonMatrix& matrix) const {
    float* const p = arguments.output<float>(0) + matrix.begin;
    float* const m = arguments.output<float>(1) + matrix.begin;
    auto* const x = static_cast<float*>(arguments.workspace);
    const float* const control = call_.has_control ? arguments.input<float>(3) : nullptr;
    const MuonOptions& options = call_.options;
    void* const stream = arguments.stream;
    const int64_t size = matrix.size();
    ZG_RETURN_IF_ERROR(WithFloatType(call_.gradient_dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* const g = arguments.input<T>(1) + matrix.begin;
      const DirectionBody<T> body = {g, control, options.one_minus_momentum, options.nesterov,
                                     m, x};
      return RunPacks<4>(body, AreAligned(16, g, m, x), size, stream);
    }));
    ZG_RETURN_IF_ERROR(Normalise(size, x, stream));
    const StepProducts& products = products_.at({matrix.rows, matrix.columns});
    for (int64_t step = 0; step < call_.num_steps; ++step) {
      ZG_RETURN_IF_ERROR(NewtonSchulz(products, matrix, x, stream));
    }
    const NextBody body = {p,
                           x,
                           control,
                           arguments.device_step,
                           options,
                           MuonScale(options.match_rms_adamw, matrix.rows, matrix.columns),
                           FaultSinkOf(arguments)};
    return RunPreparedPacks<4>(body, AreAligned(16, p, x), size, stream);
  }

  // x and the rest of the workspace after it: y, the Gram matrix, its square, the sum of squares,
  // and the products' scratch memory.
  Status Normalise(int64_t size, float* x, void* stream) const {
    auto* const words = reinterpret_cast<int64_t*>(Bytes(x) + 2 * (x_bytes_ + gram_bytes_));
    ZG_RETURN_IF_ERROR(
        CudaStatus(cudaMemsetAsync(words, 0, kSumBytes, static_cast<cudaStream_t>(stream)),
                   "a sum of squares could not be cleared"));
    const int64_t blocks =
        std::clamp<int64_t>(CeilDivide(size, kTermElements * kThreads), 1, kMaxPreparedBlocks);
    ZG_RETURN_IF_ERROR(Launch(MuonSquareSumKernel, Threads(blocks * kThreads), stream,
                              static_cast<const float*>(x), size, words));
    return RunPreparedPacks<4>(NormaliseBody{words, call_.options.epsilon, x}, AreAligned(16, x),
                               size, stream);
  }

  Status NewtonSchulz(const StepProducts& products, const MuonMatrix& matrix, float* x,
                      void* stream) const {
    std::byte* const bytes = Bytes(x);
    auto* const y = reinterpret_cast<float*>(bytes + x_bytes_);
    auto* const gram = reinterpret_cast<float*>(bytes + 2 * x_bytes_);
    auto* const square = reinterpret_cast<float*>(bytes + 2 * x_bytes_ + gram_bytes_);
    void* const scratch = bytes + 2 * (x_bytes_ + gram_bytes_) + kSumBytes;
    const MuonOptions& options = call_.options;
    ZG_RETURN_IF_ERROR(products.gram->Run({x, x, nullptr, gram}, scratch, stream));
    ZG_RETURN_IF_ERROR(products.square->Run({gram, gram, nullptr, square}, scratch, stream));
    ZG_RETURN_IF_ERROR(RunPacks<4>(CombineBody{gram, square, options.b, options.c},
                                   AreAligned(16, gram, square), matrix.side() * matrix.side(),
                                   stream));
    const float* const left = products.is_tall ? x : gram;
    const float* const right = products.is_tall ? gram : x;
    ZG_RETURN_IF_ERROR(products.with_x->Run({left, right, nullptr, y}, scratch, stream));
    return RunPacks<4>(CombineBody{x, y, options.a, 1.0f}, AreAligned(16, x, y), matrix.size(),
                       stream);
  }

  static std::byte* Bytes(float* x) { return reinterpret_cast<std::byte*>(x); }

  const MuonCall call_;
  const Products products_;
  int64_t x_bytes_ = 0;  // of the largest matrix; likewise of the largest Gram matrix
  int64_t gram_bytes_ = 0;
  int64_t product_bytes_ = 0;
};

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  ZG_ASSIGN_OR_RETURN(MuonCall call, MuonCall::Of(spec));
  MuonUpdate::Products products;
  for (const MuonMatrix& matrix : call.matrices) {
    const std::pair<int64_t, int64_t> shape = {matrix.rows, matrix.columns};
    if (products.count(shape) != 0) continue;
    ZG_ASSIGN_OR_RETURN(products[shape], StepProducts::Make(matrix, kTf32, spec.gemm_choices));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<MuonUpdate>(std::move(call), std::move(products)));
}

}  // namespace

void RegisterMuonUpdateKernels(KernelRegistry& registry) {
  registry.Register("muon_update", registry.options().tf32 ? Make<true> : Make<false>);
}

}  // namespace zg::cuda
