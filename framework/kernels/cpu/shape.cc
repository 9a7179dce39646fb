#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "framework/kernels/cpu/gather_elements.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/transposed_copy.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/element_bits.h"
#include "framework/kernels/strided_dims.h"

namespace zg {
namespace {

int64_t CostOfBytes(int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(float)) + 1; }

// Copies `count` runs of elements whose begins are `x_step` and `y_step` apart.
template <int kRun, typename T>
void CopyShortRuns(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < kRun; ++k) y[i * y_step + k] = x[i * x_step + k];
  }
}
template <typename T>
void CopyRuns(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t run, int64_t count) {
  if (run == 1) return CopyShortRuns<1>(x, x_step, y, y_step, count);
  if (run == 2) return CopyShortRuns<2>(x, x_step, y, y_step, count);
  if (run == 3) return CopyShortRuns<3>(x, x_step, y, y_step, count);
  if (run == 4) return CopyShortRuns<4>(x, x_step, y, y_step, count);
  for (int64_t i = 0; i < count; ++i) std::memcpy(y + i * y_step, x + i * x_step, run * sizeof(T));
}

class Permute : public Kernel {
 public:
  explicit Permute(const KernelSpec& spec)
      : bytes_(SizeOf(spec.outputs[0].dtype)), num_elements_(spec.outputs[0].shape.num_elements()) {
    const Shape& x = spec.call.inputs[0].shape;
    std::vector<int64_t> steps(x.num_dims());
    int64_t step = 1;
    for (int dim = x.num_dims(); dim-- > 0;) {
      steps[dim] = step;
      step *= x.dim(dim);
    }
    for (const int64_t dim : spec.call.attributes.Ints("order")) {
      dims_.Add(x.dim(static_cast<int>(dim)), {steps[dim]});
    }
    dims_.Finish();
    for (int dim = 0; dim + 1 < dims_.num_dims; ++dim) {
      if (dims_.strides[0][dim] == 1) near_ = dim;
    }
  }

  Status Run(const KernelArguments& arguments) override {
    if (num_elements_ == 0) return Status::Ok();
    WithElements(bytes_, [&](auto zero) {
      using T = decltype(zero);
      const T* const x = arguments.input<T>(0);
      T* const y = arguments.output<T>(0);
      if (near_ < 0) {
        ForRanges(arguments.threads, num_elements_, kElementUnit, 1,
                  [&](int64_t begin, int64_t end, int) {
                    GatherElements(dims_, 0, x, begin, end - begin, y + begin);
                  });
        return;
      }
      const int64_t rows = dims_.sizes[near_], columns = dims_.sizes[dims_.num_dims - 1];
      const int64_t tiles = NumTiles(rows, kTileRows<T>) * NumTiles(columns, kTileColumns<T>);
      const int64_t cost = std::min(rows, kTileRows<T>) * std::min(columns, kTileColumns<T>);
      ForRanges(arguments.threads, num_elements_ / (rows * columns) * tiles, 1, cost,
                [&](int64_t begin, int64_t end, int) {
                  for (; begin < end; ++begin) CopyTransposed(TileAt(begin, x, y));
                });
    });
    return Status::Ok();
  }

 private:
  static int64_t NumTiles(int64_t size, int64_t of_tile) { return (size + of_tile - 1) / of_tile; }

  // Tiles of the dims `near_` and the last, for each index of the others.
  template <typename T>
  TransposedTile<T> TileAt(int64_t index, const T* x, T* y) const {
    const int last = dims_.num_dims - 1;
    const auto take = [&](int64_t size) {
      const int64_t i = index % size;
      index /= size;
      return i;
    };
    // Tiles beside each other in y first, so that its rows are written in long runs.
    const int64_t column = take(NumTiles(dims_.sizes[last], kTileColumns<T>)) * kTileColumns<T>;
    const int64_t row = take(NumTiles(dims_.sizes[near_], kTileRows<T>)) * kTileRows<T>;
    const int64_t x_step = dims_.strides[0][last];
    TransposedTile<T> tile = {};
    tile.x = x + column * x_step;
    tile.x_step = x_step;
    tile.y = y + column;
    tile.rows = std::min(kTileRows<T>, dims_.sizes[near_] - row);
    tile.columns = std::min(kTileColumns<T>, dims_.sizes[last] - column);
    int64_t y_step = dims_.sizes[last];
    for (int dim = last; dim-- > 0;) {
      const int64_t i = dim == near_ ? row : take(dims_.sizes[dim]);
      if (dim == near_) tile.y_step = y_step;
      tile.x += i * dims_.strides[0][dim];
      tile.y += i * y_step;
      y_step *= dims_.sizes[dim];
    }
    return tile;
  }

  const int64_t bytes_;
  const int64_t num_elements_;
  StridedDims<1> dims_;
  int near_ = -1;  // the dim of y along which x is contiguous, if that is not the last
};

class Slice : public Kernel {
 public:
  explicit Slice(const KernelSpec& spec)
      : x_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        start_(spec.call.attributes.Int("start")),
        size_(spec.call.attributes.Int("size")),
        step_(spec.call.attributes.Int("step")) {}

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, x_.outer, 1, CostOfBytes(size_ * x_.inner * bytes_),
              [&](int64_t begin, int64_t end, int) {
                WithElements(bytes_, [&](auto zero) {
                  using T = decltype(zero);
                  RunRange(arguments.input<T>(0), begin, end, arguments.output<T>(0));
                });
              });
    return Status::Ok();
  }

 private:
  // For indices [begin, end) of the dims before `dim`.
  template <typename T>
  void RunRange(const T* x, int64_t begin, int64_t end, T* y) const {
    const int64_t x_step = x_.size * x_.inner, y_step = size_ * x_.inner;
    x += begin * x_step + start_ * x_.inner;
    y += begin * y_step;
    if (step_ == 1) return CopyRuns(x, x_step, y, y_step, y_step, end - begin);
    for (; begin < end; ++begin, x += x_step, y += y_step) {
      CopyRuns(x, step_ * x_.inner, y, x_.inner, x_.inner, size_);
    }
  }

  const DimView x_;
  const int64_t bytes_;
  const int64_t start_;
  const int64_t size_;
  const int64_t step_;
};

class Pad : public Kernel {
 public:
  explicit Pad(const KernelSpec& spec)
      : y_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        before_(spec.call.attributes.Int("before")),
        step_(spec.call.attributes.Int("step")),
        value_(ElementBits(spec.outputs[0].dtype, spec.call.attributes.Float("value"))) {
    const DimView x(spec.call.inputs[0].shape, spec.call.attributes.Int("dim"));
    num_runs_ = step_ == 1 ? 1 : x.size;
    run_ = step_ == 1 ? x.size * x.inner : x.inner;
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, y_.outer, 1, CostOfBytes(y_.size * y_.inner * bytes_),
              [&](int64_t begin, int64_t end, int) { RunRange(arguments, begin, end); });
    return Status::Ok();
  }

 private:
  // For indices [begin, end) of the dims before `dim`.
  void RunRange(const KernelArguments& arguments, int64_t begin, int64_t end) const {
    WithElements(bytes_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = arguments.input<T>(0) + begin * num_runs_ * run_;
      T* y = arguments.output<T>(0) + begin * y_.size * y_.inner;
      const T value = static_cast<T>(value_);
      for (int64_t outer = begin; outer < end; ++outer) {
        T* const y_end = y + y_.size * y_.inner;
        T* const to = y + before_ * y_.inner;
        if (num_runs_ == 1) {
          std::fill(y, to, value);
          std::fill(std::copy_n(x, run_, to), y_end, value);
        } else {
          std::fill(y, y_end, value);
          CopyRuns(x, run_, to, step_ * y_.inner, run_, num_runs_);
        }
        x += num_runs_ * run_;
        y = y_end;
      }
    });
  }

  const DimView y_;
  const int64_t bytes_;
  const int64_t before_;
  const int64_t step_;
  const uint64_t value_;
  // The elements of x that stay neighbours, for one index of the dims before `dim`.
  int64_t num_runs_;
  int64_t run_;
};

class Concat : public Kernel {
 public:
  explicit Concat(const KernelSpec& spec)
      : outer_(DimView(spec.outputs[0].shape, spec.call.attributes.Int("dim")).outer),
        bytes_(SizeOf(spec.outputs[0].dtype)) {
    for (const TensorType& input : spec.call.inputs) {
      const DimView x(input.shape, spec.call.attributes.Int("dim"));
      runs_.push_back(x.size * x.inner);
      row_ += runs_.back();
    }
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, outer_, 1, CostOfBytes(row_ * bytes_),
              [&](int64_t begin, int64_t end, int) {
                WithElements(bytes_, [&](auto zero) { RunRange(arguments, begin, end, zero); });
              });
    return Status::Ok();
  }

 private:
  // For indices [begin, end) of the dims before `dim`. Short rows are written a few at a time, so that
  // they stay in the caches from one input to the next.
  template <typename T>
  void RunRange(const KernelArguments& arguments, int64_t begin, int64_t end, T) const {
    constexpr int64_t kElements = 4096;
    const int64_t at_once = std::max<int64_t>(1, kElements / std::max<int64_t>(1, row_));
    for (; begin < end; begin += at_once) {
      T* y = arguments.output<T>(0) + begin * row_;
      for (size_t i = 0; i < runs_.size(); ++i) {
        CopyRuns(arguments.input<T>(static_cast<int>(i)) + begin * runs_[i], runs_[i], y, row_,
                 runs_[i], std::min(at_once, end - begin));
        y += runs_[i];
      }
    }
  }

  const int64_t outer_;
  const int64_t bytes_;
  std::vector<int64_t> runs_;  // of each input, for one index of the dims before `dim`
  int64_t row_ = 0;            // of the result
};

class Flip : public Kernel {
 public:
  explicit Flip(const KernelSpec& spec)
      : x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        bytes_(SizeOf(spec.outputs[0].dtype)) {}

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, x_.outer * x_.size, x_.inner == 1 ? x_.size : 1,
              CostOfBytes(x_.inner * bytes_), [&](int64_t begin, int64_t end, int) {
                WithElements(bytes_, [&](auto zero) {
                  using T = decltype(zero);
                  RunRange(arguments.input<T>(0), begin, end, arguments.output<T>(0));
                });
              });
    return Status::Ok();
  }

 private:
  template <typename T>
  void RunRange(const T* x, int64_t begin, int64_t end, T* y) const {
    if (x_.inner == 1) {  // of whole rows
      for (; begin < end; begin += x_.size) Reverse(x + begin, x_.size, y + begin);
      return;
    }
    for (int64_t row = begin; row < end; ++row) {
      const int64_t to = row / x_.size * x_.size + (x_.size - 1 - row % x_.size);
      std::memcpy(y + to * x_.inner, x + row * x_.inner, x_.inner * sizeof(T));
    }
  }

  template <typename T>
  static void Reverse(const T* x, int64_t count, T* y) {
    Multiversion([=]() ZG_VERSION {
      ZG_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) y[i] = x[count - 1 - i];
    });
  }

  const DimView x_;
  const int64_t bytes_;
};

}  // namespace

void RegisterShapeKernels(KernelRegistry& registry) {
  registry.Register("permute", MakeKernel<Permute>);
  registry.Register("slice", MakeKernel<Slice>);
  registry.Register("pad", MakeKernel<Pad>);
  registry.Register("concat", MakeKernel<Concat>);
  registry.Register("flip", MakeKernel<Flip>);
}

}  // namespace zg
