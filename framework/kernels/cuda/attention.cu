#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "framework/kernels/cuda/attention_dot.cuh"
#include "framework/kernels/cuda/attention_launch.cuh"
#include "framework/kernels/cuda/attention_tiles.cuh"
#include "framework/kernels/cuda/attention_warpgroup.h"
#include "framework/kernels/cuda/fault.cuh"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxHeadSize = 256;
constexpr int64_t kMaxTime = int64_t{65535} * 16;
constexpr int64_t kMaxHeads = std::numeric_limits<int>::max();

// Positions of a tile in f32: fewer for larger heads, so that every device has enough memory.
constexpr int TileOf(int size) { return size <= 128 ? 32 : 16; }

// Calls f(std::integral_constant) with the smallest padded head size.
template <typename F>
Status WithPaddedHeadSize(int64_t head_size, const F& f) {
  if (head_size <= 32) return f(std::integral_constant<int, 32>());
  if (head_size <= 64) return f(std::integral_constant<int, 64>());
  if (head_size <= 128) return f(std::integral_constant<int, 128>());
  return f(std::integral_constant<int, 256>());
}
template <typename F>
Status WithTensorCoreHeadSize(int64_t head_size, const F& f) {
  if (head_size <= 32) return f(std::integral_constant<int, 32>());
  if (head_size <= 64) return f(std::integral_constant<int, 64>());
  return f(std::integral_constant<int, 128>());
}

// Whether tensor cores are used: they support no option except causality, and a 16-bit operand must
// be aligned so that 8 channels can be read at once.
template <typename T, typename... Pointers>
bool UsesTensorCores(const AttentionShape& shape, const Pointers*... pointers) {
  return sizeof(T) == 2 && shape.is_plain && shape.head_size % 8 == 0 && shape.head_size <= 128 &&
         AreAligned(16, pointers...);
}

bool UsesWarpgroups(const AttentionCall& call) {
  return call.head_size > 32 && call.head_size <= 64 && HasWarpgroupProducts();
}

// Tiles of kSize channels in f32, and one tile of scores if there is one.
template <int kSize>
TileLaunch LaunchTiles(int num_tiles) {
  using Geometry = TileGeometry<TileOf(kSize), kSize>;
  const int64_t floats = num_tiles * Geometry::kTileFloats + Geometry::kScoreFloats;
  return {TileOf(kSize), dim3(kSide, kSide), floats * static_cast<int64_t>(sizeof(float))};
}

template <typename T>
Status RunForward(const AttentionArrays<T>& arrays, const AttentionShape& shape,
                  bool uses_warpgroups, void* stream) {
  if constexpr (sizeof(T) == 2) {
    if (UsesTensorCores<T>(shape, arrays.q, arrays.k, arrays.v, arrays.out)) {
      if (uses_warpgroups) return RunAttentionOfWarpgroups(arrays, shape, stream);
      return WithTensorCoreHeadSize(shape.head_size, [&](auto size) {
        return RunForwardOnTensorCores<WarpTiles<size(), T>>(arrays, shape, stream);
      });
    }
  }
  return WithPaddedHeadSize(shape.head_size, [&](auto size) {
    return Run(AttentionTileKernel<TileOf(size()), size(), T>, LaunchTiles<size()>(2),
               Queries(shape), stream, arrays, shape);
  });
}

template <typename T>
Status RunDots(const AttentionGradArrays<T>& arrays, const AttentionShape& shape, void* stream) {
  LaunchShape launch;
  launch.grid =
      BlocksOfHeads(shape.batch * shape.heads, CeilDivide(shape.queries, kRowsOfDotBlock));
  const bool is_aligned =
      shape.head_size % kPackOf<T> == 0 && AreAligned(16, arrays.dout, arrays.out);
  return Launch(is_aligned ? AttentionDotKernel<true, T> : AttentionDotKernel<false, T>, launch,
                stream, arrays, shape);
}

template <typename T>
Status RunBackward(const AttentionGradArrays<T>& arrays, const AttentionShape& shape,
                   bool uses_warpgroups, void* stream) {
  ZG_RETURN_IF_ERROR(RunDots(arrays, shape, stream));
  if constexpr (sizeof(T) == 2) {
    if (UsesTensorCores<T>(shape, arrays.dout, arrays.q, arrays.k, arrays.v, arrays.dq, arrays.dk,
                           arrays.dv)) {
      if (uses_warpgroups) return RunAttentionGradOfWarpgroups(arrays, shape, stream);
      return WithTensorCoreHeadSize(shape.head_size, [&](auto size) {
        return RunBackwardOnTensorCores<WarpTiles<size(), T>>(arrays, shape, stream);
      });
    }
  }
  return WithPaddedHeadSize(shape.head_size, [&](auto size) {
    constexpr int kTile = TileOf(size());
    ZG_RETURN_IF_ERROR(Run(AttentionKeyGradTileKernel<kTile, size(), T>, LaunchTiles<size()>(4),
                           Keys(shape), stream, arrays, shape));
    return Run(AttentionQueryGradTileKernel<kTile, size(), T>, LaunchTiles<size()>(4),
               Queries(shape), stream, arrays, shape);
  });
}

template <typename T>
OptionOperands<T> OptionsIn(const AttentionCall& call, const KernelArguments& arguments) {
  return {call.mask_input < 0 ? nullptr : arguments.input<int64_t>(call.mask_input),
          call.bias_input < 0 ? nullptr : arguments.input<T>(call.bias_input),
          call.sinks_input < 0 ? nullptr : arguments.input<T>(call.sinks_input),
          call.part_input < 0 ? nullptr : arguments.input<int64_t>(call.part_input),
          arguments.device_step};
}

// For q, k and v from input 1 on, and their gradients in the outputs from `dq` on.
template <typename T>
AttentionGradArrays<T> GradArrays(const AttentionCall& call, const KernelArguments& arguments) {
  const int step = call.part_step;
  AttentionGradArrays<T> arrays = {};
  arrays.dout = arguments.input<T>(0);
  arrays.q = arguments.input<T>(1);
  arrays.k = arguments.input<T>(1 + step);
  arrays.v = arguments.input<T>(1 + 2 * step);
  arrays.out = arguments.input<T>(2 + 2 * step);
  arrays.log_sum_exp = arguments.input<float>(3 + 2 * step);
  arrays.options = OptionsIn<T>(call, arguments);
  arrays.dot = static_cast<float*>(arguments.workspace);
  return arrays;
}

__global__ void CheckNumKeysKernel(const int64_t* counts, int64_t batch, int64_t keys,
                                   FaultSink faults) {
  const int64_t b = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (b < batch && (counts[b] < 0 || counts[b] > keys)) faults.Record(counts[b], keys);
}

class Attention : public Kernel {
 public:
  explicit Attention(const KernelSpec& spec)
      : call_(spec.call, /*is_gradient=*/false), uses_warpgroups_(UsesWarpgroups(call_)) {}

  Status Run(const KernelArguments& arguments) override {
    if (call_.mask_input >= 0 && call_.mask_counts) {  // the gradient has the same
      ZG_RETURN_IF_ERROR(Launch(CheckNumKeysKernel, Threads(call_.batch), arguments.stream,
                                arguments.input<int64_t>(call_.mask_input), call_.batch, call_.keys,
                                FaultSinkOf(arguments)));
    }
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int step = call_.part_step;
      const AttentionArrays<T> arrays = {
          arguments.input<T>(0),          arguments.input<T>(step), arguments.input<T>(2 * step),
          OptionsIn<T>(call_, arguments), arguments.output<T>(0),   arguments.output<float>(1)};
      return RunForward(arrays, AttentionShape(call_), uses_warpgroups_, arguments.stream);
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return NumKeysOutside(fault.got, call_.keys);
  }

 private:
  const AttentionCall call_;
  const bool uses_warpgroups_;
};

class AttentionGrad : public Kernel {
 public:
  explicit AttentionGrad(const KernelSpec& spec)
      : call_(spec.call, /*is_gradient=*/true), uses_warpgroups_(UsesWarpgroups(call_)) {}

  // The products of dout and out.
  int64_t workspace_bytes() const override {
    return call_.batch * call_.heads * call_.queries * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      AttentionGradArrays<T> arrays = GradArrays<T>(call_, arguments);
      arrays.dq = arguments.output<T>(0);
      arrays.dk = arguments.output<T>(call_.part_step);
      arrays.dv = arguments.output<T>(2 * call_.part_step);
      return RunBackward(arrays, AttentionShape(call_), uses_warpgroups_, arguments.stream);
    });
  }

 private:
  const AttentionCall call_;
  const bool uses_warpgroups_;
};

class AttentionBiasGrad : public Kernel {
 public:
  explicit AttentionBiasGrad(const KernelSpec& spec)
      : call_(spec.call, /*is_gradient=*/true), bias_(spec.outputs[0].shape) {}

  int64_t workspace_bytes() const override {
    return call_.batch * call_.heads * call_.queries * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const AttentionShape shape(call_);
      const AttentionGradArrays<T> arrays = GradArrays<T>(call_, arguments);
      ZG_RETURN_IF_ERROR(RunDots(arrays, shape, arguments.stream));
      return Launch(AttentionBiasGradKernel<T>, Threads(bias_.num_elements()), arguments.stream,
                    arrays, shape, arguments.output<T>(0), bias_.dim(0), bias_.dim(1));
    });
  }

 private:
  const AttentionCall call_;
  const Shape bias_;
};

template <typename KernelType>
StatusOr<std::unique_ptr<Kernel>> MakeAttention(const KernelSpec& spec) {
  const AttentionCall call(spec.call, !std::is_same_v<KernelType, Attention>);
  if (call.head_size > kMaxHeadSize) {
    return InvalidArgument("{}: heads have {} channels, the CUDA kernel takes up to {}",
                           spec.call.op->name, call.head_size, kMaxHeadSize);
  }
  if (const int64_t positions = std::max(call.queries, call.keys); positions > kMaxTime) {
    return InvalidArgument("{}: {} positions, the CUDA kernel takes up to {}", spec.call.op->name,
                           positions, kMaxTime);
  }
  if (call.heads > kMaxHeads) {
    return InvalidArgument("{}: {} heads, the CUDA kernel takes up to {}", spec.call.op->name,
                           call.heads, kMaxHeads);
  }
  return MakeKernel<KernelType>(spec);
}

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Register("attention", MakeAttention<Attention>);
  registry.Register("attention_grad", MakeAttention<AttentionGrad>);
  for (const std::string name : {"dot_product_attention", "dropout_attention"}) {
    registry.Register(name, MakeAttention<Attention>);
    registry.Register(name + "_grad", MakeAttention<AttentionGrad>);
    registry.Register(name + "_bias_grad", MakeAttention<AttentionBiasGrad>);
  }
}

}  // namespace zg::cuda
