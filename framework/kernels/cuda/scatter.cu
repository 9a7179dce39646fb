#include "framework/kernels/cuda/index_fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/vector_math.h"

namespace zg::cuda {
namespace {

// While elements arrive, a place holds the largest of their keys, whatever their order; 0 is the key
// of none.
using Key = unsigned long long;

// Keys of the last position.
struct LastPosition {
  __device__ Key KeyOf(int64_t, int64_t i) const { return static_cast<Key>(i) + 1; }
  __device__ int64_t PositionOf(Key key) const { return static_cast<int64_t>(key) - 1; }
};

// Keys of the largest element, in the order of top_k_order.h: its value above its position, of which
// a lower one is larger. There are less than 2^32 elements along a dim.
template <typename T>
struct LargestElement {
  const T* x;

  __device__ Key KeyOf(int64_t at, int64_t i) const {
    const float value = Widen(x[at]);
    const uint32_t bits = BitCast<uint32_t>(value + 0.0f);  // of -0: 0
    uint32_t order = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    if (value != value) order = ~0u;
    return static_cast<Key>(order) << 32 | (~static_cast<Key>(i) & 0xffffffffu);
  }
  __device__ int64_t PositionOf(Key key) const {
    return key == 0 ? -1 : static_cast<int64_t>(~key & 0xffffffffu);
  }
};

struct NoKeys {
  Key* keys;
  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) keys[begin + i] = 0;
  }
};

// A thread sends an element to its place.
template <typename Order>
struct Arrival {
  Order order;
  const int64_t* index;
  Key* keys;
  int64_t from_size, to_size, inner;
  FaultSink faults;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      const int64_t at = begin + c;
      const int64_t to = index[at];
      if (to < 0 || to >= to_size) {
        faults.Record(to, to_size);
        continue;
      }
      const int64_t outer = at / inner / from_size;
      atomicMax(&keys[(outer * to_size + to) * inner + at % inner],
                order.KeyOf(at, at / inner % from_size));
    }
  }
};

template <typename Order>
struct Positions {
  Order order;
  Key* keys;  // and the positions
  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      keys[begin + i] = static_cast<Key>(order.PositionOf(keys[begin + i]));
    }
  }
};

class ScatterPositions : public Kernel {
 public:
  std::string FaultText(const DeviceFault& fault) const override {
    return IndexFaultText(op_, fault);
  }

 protected:
  // The index is operand `index`.
  ScatterPositions(const KernelSpec& spec, int index)
      : op_(spec.call.op->name),
        index_(index),
        from_(spec.call.inputs[static_cast<size_t>(index)].shape, spec.call.attributes.Int("dim")),
        to_(spec.outputs[0].shape, spec.call.attributes.Int("dim")) {}

  template <typename Order>
  Status Run(const KernelArguments& arguments, const Order& order) const {
    static_assert(sizeof(Key) == sizeof(int64_t));
    Key* const keys = reinterpret_cast<Key*>(arguments.output<int64_t>(0));
    const int64_t num_places = to_.outer * to_.size * to_.inner;
    ZG_RETURN_IF_ERROR(RunPacks<1>(NoKeys{keys}, true, num_places, arguments.stream));
    const Arrival<Order> arrival = {order,
                                    arguments.input<int64_t>(index_),
                                    keys,
                                    from_.size,
                                    to_.size,
                                    from_.inner,
                                    FaultSinkOf(arguments)};
    ZG_RETURN_IF_ERROR(
        RunPacks<1>(arrival, true, from_.outer * from_.size * from_.inner, arguments.stream));
    return RunPacks<1>(Positions<Order>{order, keys}, true, num_places, arguments.stream);
  }

 private:
  const std::string op_;
  const int index_;
  const DimView from_;
  const DimView to_;
};

class ScatterLast : public ScatterPositions {
 public:
  explicit ScatterLast(const KernelSpec& spec) : ScatterPositions(spec, 0) {}
  Status Run(const KernelArguments& arguments) override {
    return ScatterPositions::Run(arguments, LastPosition());
  }
};

class ScatterArgmax : public ScatterPositions {
 public:
  explicit ScatterArgmax(const KernelSpec& spec)
      : ScatterPositions(spec, 1), dtype_(spec.call.inputs[0].dtype) {}
  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return ScatterPositions::Run(arguments, LargestElement<T>{arguments.input<T>(0)});
    });
  }

 private:
  const DType dtype_;
};

}  // namespace

void RegisterScatterKernels(KernelRegistry& registry) {
  registry.Register("scatter_last", MakeKernel<ScatterLast>);
  registry.Register("scatter_argmax", MakeKernel<ScatterArgmax>);
}

}  // namespace zg::cuda
