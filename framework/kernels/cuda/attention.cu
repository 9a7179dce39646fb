#include <memory>
#include <type_traits>

#include "framework/kernels/cuda/attention_tiles.cuh"
#include "framework/kernels/cuda/families.h"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxHeadSize = 256;

// Positions of a tile: with larger heads fewer, so that every device has the memory.
constexpr int TileOf(int size) { return size <= 128 ? 32 : 16; }
constexpr int64_t kMaxTime = int64_t{65535} * 16;

// Calls f(std::integral_constant) with the smallest padded head size.
template <typename F>
Status WithPaddedHeadSize(int64_t head_size, const F& f) {
  if (head_size <= 32) return f(std::integral_constant<int, 32>());
  if (head_size <= 64) return f(std::integral_constant<int, 64>());
  if (head_size <= 128) return f(std::integral_constant<int, 128>());
  return f(std::integral_constant<int, 256>());
}

// A block for each tile of positions of each head. Blocks that ask for more shared memory than any
// device grants unasked have to say so first.
template <typename... Parameters, typename... Arguments>
Status LaunchTiles(void (*kernel)(Parameters...), const AttentionShape& shape, int tile,
                   int num_floats, void* stream, const Arguments&... arguments) {
  LaunchShape launch;
  launch.grid = dim3(static_cast<unsigned>(shape.batch * shape.heads),
                     static_cast<unsigned>(CeilDivide(shape.time, tile)));
  launch.block = dim3(kSide, kSide);
  launch.shared_bytes = num_floats * static_cast<int64_t>(sizeof(float));
  ZG_RETURN_IF_ERROR(
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(launch.shared_bytes)),
                 "attention needs more shared memory than the device has"));
  return Launch(kernel, launch, stream, arguments...);
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
      return WithPaddedHeadSize(shape_.head_size, [&](auto size) {
        constexpr int kTile = TileOf(size());
        using Geometry = TileGeometry<kTile, size()>;
        return LaunchTiles(AttentionTileKernel<kTile, size(), T>, shape_, kTile,
                           2 * Geometry::kTileFloats + Geometry::kScoreFloats, arguments.stream,
                           arrays, shape_);
      });
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

  int64_t workspace_bytes() const override {
    return num_rows() * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const AttentionGradArrays<T> arrays = {
          arguments.input<T>(0),  arguments.input<T>(1),
          arguments.input<T>(2),  arguments.input<float>(3),
          arguments.output<T>(0), static_cast<float*>(arguments.workspace)};
      ZG_RETURN_IF_ERROR(Launch(AttentionDotKernel<T>, Threads(num_rows() * kWarp),
                                arguments.stream, arrays, shape_));
      return WithPaddedHeadSize(shape_.head_size, [&](auto size) {
        constexpr int kTile = TileOf(size());
        using Geometry = TileGeometry<kTile, size()>;
        constexpr int kFloats = 4 * Geometry::kTileFloats + Geometry::kScoreFloats;
        ZG_RETURN_IF_ERROR(LaunchTiles(AttentionKeyGradTileKernel<kTile, size(), T>, shape_, kTile,
                                       kFloats, arguments.stream, arrays, shape_));
        return LaunchTiles(AttentionQueryGradTileKernel<kTile, size(), T>, shape_, kTile, kFloats,
                           arguments.stream, arrays, shape_);
      });
    });
  }

 private:
  int64_t num_rows() const { return shape_.batch * shape_.heads * shape_.time; }

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
