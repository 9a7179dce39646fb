#include <memory>
#include <type_traits>

#include "framework/kernels/cuda/attention_tensor_core.cuh"
#include "framework/kernels/cuda/attention_tiles.cuh"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxHeadSize = 256;
constexpr int64_t kMaxTime = int64_t{65535} * 16;

// Positions of a tile in f32: with larger heads fewer, so that every device has the memory.
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

// Whether tensor cores do it; a 16-bit operand must lie so that 8 channels can be read at once.
template <typename T, typename... Pointers>
bool UsesTensorCores(const AttentionShape& shape, const Pointers*... pointers) {
  return sizeof(T) == 2 && shape.head_size % 8 == 0 && shape.head_size <= 128 &&
         AreAligned(16, pointers...);
}

// How the blocks of a kernel share the work: one for each tile of positions of each head.
struct TileLaunch {
  int positions;
  dim3 block;
  int64_t shared_bytes;
};

// The two sets of kernels: with tiles of kSize channels, how much shared memory `rows` rows of
// channels take, and one tile of scores where it is there.
template <int kSize>
TileLaunch LaunchTiles(int num_tiles) {
  using Geometry = TileGeometry<TileOf(kSize), kSize>;
  const int64_t floats = num_tiles * Geometry::kTileFloats + Geometry::kScoreFloats;
  return {TileOf(kSize), dim3(kSide, kSide), floats * static_cast<int64_t>(sizeof(float))};
}
template <int kSize>
TileLaunch LaunchTensorCores(int num_rows) {
  return {kRowsOfBlock, dim3(kAttentionThreads), num_rows * kHalfStride<kSize> * int64_t{2}};
}

// More shared memory than any device grants unasked has to be asked for.
template <typename Arrays>
Status Run(void (*kernel)(Arrays, AttentionShape), const TileLaunch& tiles, void* stream,
           const Arrays& arrays, const AttentionShape& shape) {
  LaunchShape launch;
  launch.grid = dim3(static_cast<unsigned>(shape.batch * shape.heads),
                     static_cast<unsigned>(CeilDivide(shape.time, tiles.positions)));
  launch.block = tiles.block;
  launch.shared_bytes = tiles.shared_bytes;
  ZG_RETURN_IF_ERROR(
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(tiles.shared_bytes)),
                 "attention needs more shared memory than the device has"));
  return Launch(kernel, launch, stream, arrays, shape);
}

template <typename T>
Status RunForward(const AttentionArrays<T>& arrays, const AttentionShape& shape, void* stream) {
  if constexpr (sizeof(T) == 2) {
    if (UsesTensorCores<T>(shape, arrays.qkv, arrays.out)) {
      return WithTensorCoreHeadSize(shape.head_size, [&](auto size) {
        return Run(AttentionTensorCoreKernel<size(), T>, LaunchTensorCores<size()>(192), stream,
                   arrays, shape);
      });
    }
  }
  return WithPaddedHeadSize(shape.head_size, [&](auto size) {
    return Run(AttentionTileKernel<TileOf(size()), size(), T>, LaunchTiles<size()>(2), stream,
               arrays, shape);
  });
}

template <typename T>
Status RunBackward(const AttentionGradArrays<T>& arrays, const AttentionShape& shape,
                   void* stream) {
  ZG_RETURN_IF_ERROR(Launch(AttentionDotKernel<T>,
                            Threads(shape.batch * shape.heads * shape.time * kWarp), stream, arrays,
                            shape));
  if constexpr (sizeof(T) == 2) {
    if (UsesTensorCores<T>(shape, arrays.dout, arrays.qkv, arrays.dqkv)) {
      return WithTensorCoreHeadSize(shape.head_size, [&](auto size) {
        constexpr int kKeyGradRows =
            2 * kRowsOfBlock + 2 * kStages<size()> * kQueriesOfKeyGrad<size()>;
        constexpr int kQueryGradRows = 2 * kRowsOfBlock + 2 * kStages<size()> * 64;
        ZG_RETURN_IF_ERROR(Run(AttentionKeyGradTensorCoreKernel<size(), T>,
                               LaunchTensorCores<size()>(kKeyGradRows), stream, arrays, shape));
        return Run(AttentionQueryGradTensorCoreKernel<size(), T>,
                   LaunchTensorCores<size()>(kQueryGradRows), stream, arrays, shape);
      });
    }
  }
  return WithPaddedHeadSize(shape.head_size, [&](auto size) {
    constexpr int kTile = TileOf(size());
    ZG_RETURN_IF_ERROR(Run(AttentionKeyGradTileKernel<kTile, size(), T>, LaunchTiles<size()>(4),
                           stream, arrays, shape));
    return Run(AttentionQueryGradTileKernel<kTile, size(), T>, LaunchTiles<size()>(4), stream,
               arrays, shape);
  });
}

class Attention : public Kernel {
 public:
  explicit Attention(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype), shape_(spec.call.inputs[0], spec.call.attributes) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const AttentionArrays<T> arrays = {arguments.input<T>(0), arguments.output<T>(0),
                                         arguments.output<float>(1)};
      return RunForward(arrays, shape_, arguments.stream);
    });
  }

 private:
  const DType dtype_;
  const AttentionShape shape_;
};

class AttentionGrad : public Kernel {
 public:
  explicit AttentionGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype), shape_(spec.call.inputs[1], spec.call.attributes) {}

  // The products of dout and out.
  int64_t workspace_bytes() const override {
    return shape_.batch * shape_.heads * shape_.time * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const AttentionGradArrays<T> arrays = {
          arguments.input<T>(0),  arguments.input<T>(1),
          arguments.input<T>(2),  arguments.input<float>(3),
          arguments.output<T>(0), static_cast<float*>(arguments.workspace)};
      return RunBackward(arrays, shape_, arguments.stream);
    });
  }

 private:
  const DType dtype_;
  const AttentionShape shape_;
};

template <typename KernelType>
StatusOr<std::unique_ptr<Kernel>> MakeAttention(const KernelSpec& spec) {
  const TensorType& qkv = spec.call.inputs[spec.call.inputs.size() == 1 ? 0 : 1];
  const AttentionShape shape(qkv, spec.call.attributes);
  if (shape.head_size > kMaxHeadSize) {
    return InvalidArgument("{}: heads have {} channels, the CUDA kernel takes up to {}",
                           spec.call.op->name, shape.head_size, kMaxHeadSize);
  }
  if (shape.time > kMaxTime) {
    return InvalidArgument("{}: {} positions, the CUDA kernel takes up to {}", spec.call.op->name,
                           shape.time, kMaxTime);
  }
  return MakeKernel<KernelType>(spec);
}

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Register("attention", MakeAttention<Attention>);
  registry.Register("attention_grad", MakeAttention<AttentionGrad>);
}

}  // namespace zg::cuda
