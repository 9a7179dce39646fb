#include <vector>

#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/element_bits.h"
#include "framework/kernels/strided_dims.h"

namespace zg::cuda {
namespace {

template <typename Body>
__global__ void ElementKernel(Body body, int64_t num_elements) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < num_elements) body(index);
}

// A thread computes an element of the result, or of an operand of concat.
template <typename Body>
Status RunElements(const Body& body, int64_t num_elements, void* stream) {
  return Launch(ElementKernel<Body>, Threads(num_elements), stream, body, num_elements);
}

template <typename T>
struct WalkBody {
  const T* x;
  T* y;
  StridedDims<1> dims;
  __device__ void operator()(int64_t index) const { y[index] = x[dims.OffsetOf(0, index)]; }
};

// Permute and slice: copies the result's elements in order from their positions in x.
class Walk : public Kernel {
 public:
  Walk(const TensorType& type, int64_t start, const StridedDims<1>& dims)
      : type_(type), start_(start), dims_(dims) {}

  Status Run(const KernelArguments& arguments) override {
    return WithElements(SizeOf(type_.dtype), [&](auto zero) {
      using T = decltype(zero);
      return RunElements(WalkBody<T>{arguments.input<T>(0) + start_, arguments.output<T>(0), dims_},
                         type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const int64_t start_;
  const StridedDims<1> dims_;
};

std::vector<int64_t> Steps(const Shape& shape) {
  std::vector<int64_t> steps(shape.num_dims());
  int64_t step = 1;
  for (int dim = shape.num_dims(); dim-- > 0;) {
    steps[dim] = step;
    step *= shape.dim(dim);
  }
  return steps;
}

StatusOr<std::unique_ptr<Kernel>> MakePermute(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const Shape& x = spec.call.inputs[0].shape;
  const std::vector<int64_t> steps = Steps(x);
  StridedDims<1> dims;
  for (const int64_t dim : spec.call.attributes.Ints("order")) {
    dims.Add(x.dim(static_cast<int>(dim)), {steps[dim]});
  }
  dims.Finish();
  return std::unique_ptr<Kernel>(std::make_unique<Walk>(spec.outputs[0], 0, dims));
}

StatusOr<std::unique_ptr<Kernel>> MakeSlice(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const int64_t sliced = spec.call.attributes.Int("dim");
  const std::vector<int64_t> steps = Steps(spec.call.inputs[0].shape);
  const Shape& y = spec.outputs[0].shape;
  StridedDims<1> dims;
  for (int dim = 0; dim < y.num_dims(); ++dim) {
    const int64_t step = dim == sliced ? spec.call.attributes.Int("step") : 1;
    dims.Add(y.dim(dim), {steps[dim] * step});
  }
  dims.Finish();
  const int64_t start = spec.call.attributes.Int("start") * steps[sliced];
  return std::unique_ptr<Kernel>(std::make_unique<Walk>(spec.outputs[0], start, dims));
}

StatusOr<std::unique_ptr<Kernel>> MakeFlip(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const int64_t flipped = spec.call.attributes.Int("dim");
  const Shape& x = spec.outputs[0].shape;
  const std::vector<int64_t> steps = Steps(x);
  StridedDims<1> dims;
  for (int dim = 0; dim < x.num_dims(); ++dim) {
    dims.Add(x.dim(dim), {dim == flipped ? -steps[dim] : steps[dim]});
  }
  dims.Finish();
  const int64_t last = (x.dim(static_cast<int>(flipped)) - 1) * steps[flipped];
  return std::unique_ptr<Kernel>(std::make_unique<Walk>(spec.outputs[0], last, dims));
}

template <typename T>
struct PadBody {
  const T* x;
  T* y;
  int64_t x_size, y_size, inner, before, step;
  T value;

  __device__ void operator()(int64_t index) const {
    const int64_t row = index / inner;
    const int64_t from_start = row % y_size - before;
    const int64_t at = from_start / step;
    const bool is_there = from_start >= 0 && from_start % step == 0 && at < x_size;
    y[index] = is_there ? x[(row / y_size * x_size + at) * inner + index % inner] : value;
  }
};

class Pad : public Kernel {
 public:
  explicit Pad(const KernelSpec& spec)
      : type_(spec.outputs[0]),
        x_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        y_(type_.shape, spec.call.attributes.Int("dim")),
        before_(spec.call.attributes.Int("before")),
        step_(spec.call.attributes.Int("step")),
        value_(ElementBits(type_.dtype, spec.call.attributes.Float("value"))) {}

  Status Run(const KernelArguments& arguments) override {
    return WithElements(SizeOf(type_.dtype), [&](auto zero) {
      using T = decltype(zero);
      return RunElements(PadBody<T>{arguments.input<T>(0), arguments.output<T>(0), x_.size, y_.size,
                                    y_.inner, before_, step_, static_cast<T>(value_)},
                         type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const DimView x_;
  const DimView y_;
  const int64_t before_;
  const int64_t step_;
  const uint64_t value_;
};

template <typename T>
struct ConcatBody {
  const T* x;
  T* y;           // destination of the first element of x
  int64_t x_row;  // elements of x for one index of the dims before `dim`
  int64_t y_row;
  __device__ void operator()(int64_t index) const {
    y[index / x_row * y_row + index % x_row] = x[index];
  }
};

class Concat : public Kernel {
 public:
  explicit Concat(const KernelSpec& spec) : bytes_(SizeOf(spec.outputs[0].dtype)) {
    const int64_t dim = spec.call.attributes.Int("dim");
    const DimView y(spec.outputs[0].shape, dim);
    outer_ = y.outer;
    y_row_ = y.size * y.inner;
    for (const TensorType& input : spec.call.inputs) {
      const DimView x(input.shape, dim);
      x_rows_.push_back(x.size * x.inner);
    }
  }

  Status Run(const KernelArguments& arguments) override {
    return WithElements(bytes_, [&](auto zero) -> Status {
      using T = decltype(zero);
      T* y = arguments.output<T>(0);
      for (size_t i = 0; i < x_rows_.size(); ++i) {
        const ConcatBody<T> body = {arguments.input<T>(static_cast<int>(i)), y, x_rows_[i], y_row_};
        ZG_RETURN_IF_ERROR(RunElements(body, outer_ * x_rows_[i], arguments.stream));
        y += x_rows_[i];
      }
      return Status::Ok();
    });
  }

 private:
  const int64_t bytes_;
  int64_t outer_ = 1;
  int64_t y_row_ = 1;
  std::vector<int64_t> x_rows_;
};

}  // namespace

void RegisterShapeKernels(KernelRegistry& registry) {
  registry.Register("permute", MakePermute);
  registry.Register("slice", MakeSlice);
  registry.Register("pad", MakeKernel<Pad>);
  registry.Register("concat", MakeKernel<Concat>);
  registry.Register("flip", MakeFlip);
}

}  // namespace zg::cuda
