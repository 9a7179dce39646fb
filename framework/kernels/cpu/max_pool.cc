#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/pool_shape.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr float kLowest = -__builtin_inff();

// Below this number of windows in a row vectors are hardly filled.
constexpr int64_t kNarrow = 4;

// The largest elements of a row of windows, and their indices in the plane: -1 where all elements
// are -infinity, or for windows that are not looked at.
struct Maxima {
  float* values;
  int32_t* indices;
};

// The candidates of a row of windows for its largest elements.
template <typename T>
struct Candidates {
  const T* values;
  const int32_t* indices;
  int32_t first_index;  // is added to the others

  // Candidates come in the order of PoolShape::LargestOf, under whose conditions they replace the
  // largest so far; padding, -infinity, never does.
  template <bool kWithIndices>
  ZG_INLINE void Take(int64_t j, float* largest, int32_t* index) const {
    const float value = ToF32(values[j]);
    const bool replaces = (value > *largest) | (value != value);
    *largest = replaces ? value : *largest;
    if constexpr (kWithIndices) *index = replaces ? first_index + indices[j] : *index;
  }
};

// Computes the maxima of `width` windows; at(i) are their candidates number i in [begin, end).
template <bool kWithIndices, typename At>
ZG_INLINE void Reduce(int64_t begin, int64_t end, const At& at, int64_t width, Maxima maxima) {
  float* const values = maxima.values;
  int32_t* const indices = maxima.indices;
  if (begin >= end) {
    std::fill_n(values, width, kLowest);
    if constexpr (kWithIndices) std::fill_n(indices, width, -1);
  }
  // Three at a time stay in registers; it does not matter if the last ones are taken again.
  for (int64_t i = begin; i < end; i += 3) {
    const auto a = at(i);
    const auto b = at(std::min(i + 1, end - 1));
    const auto c = at(std::min(i + 2, end - 1));
    ZG_INDEPENDENT
    for (int64_t j = 0; j < width; ++j) {
      float largest = i == begin ? kLowest : values[j];
      int32_t index = i == begin || !kWithIndices ? -1 : indices[j];
      a.template Take<kWithIndices>(j, &largest, &index);
      b.template Take<kWithIndices>(j, &largest, &index);
      c.template Take<kWithIndices>(j, &largest, &index);
      values[j] = largest;
      if constexpr (kWithIndices) indices[j] = index;
    }
  }
}

// The largest elements of the windows of a plane, by rows of windows.
//
// Without indices the rows of x in a row of windows are reduced to one, and that along the columns.
// With indices it is the other way around, so that a window's elements keep their order and the same
// one of equal ones counts: each row of x is reduced along the columns, then its neighbours are.
//
// Loops run over the windows of a row. They read neighbouring elements because a row is split: part
// p has the columns p, p + stride, ... of the padded row, where the padding is -infinity. All are
// whole vectors: what is behind the last window is not used.
class WindowMaxima {
 public:
  // The arrays of a thread.
  struct Scratch {
    float* padded;  // a row of x, (stride * size_)
    float* parts;   // (num_parts_ * size_), and a vector
    Maxima held;    // of the rows of x that are in a window, (held_, width_); only with indices
    Maxima row;     // (width_)
  };

  explicit WindowMaxima(const PoolShape& shape)
      : shape_(shape),
        is_plain_(shape.out[1] < kNarrow || shape.in[0] * shape.in[1] > INT32_MAX),
        width_(WholeLanes(shape.out[1])) {
    if (is_plain_) return;
    const int64_t stride = shape.stride[1];
    const int64_t reach = (shape.kernel[1] - 1) * shape.dilation[1];
    held_ = std::min(shape.in[0], (shape.kernel[0] - 1) * shape.dilation[0] + 1);
    size_ = WholeLanes(shape.out[1] + reach / stride);
    num_parts_ = std::min(stride, reach + 1);
    for (int64_t p = 0; p < num_parts_; ++p) {
      for (int64_t i = 0; i < size_; ++i) {
        columns_.push_back(static_cast<int32_t>(p + i * stride - shape.padding[1]));
      }
    }
    columns_.resize(columns_.size() + kLanes);
    for (int64_t l = 0; l <= reach; l += shape.dilation[1]) {
      taps_.push_back(l % stride * size_ + l / stride);
    }
  }

  // Floats and indices have the same size.
  int64_t scratch_floats() const { return borders() + 2 * (held_ + 1) * width_; }
  Scratch MakeScratch(float* workspace) const {
    std::fill_n(workspace, borders(), kLowest);
    float* const values = workspace + borders();
    auto* const indices = reinterpret_cast<int32_t*>(values + (held_ + 1) * width_);
    return {workspace,
            workspace + shape_.stride[1] * size_,
            {values, indices},
            {values + held_ * width_, indices + held_ * width_}};
  }

  // Calls visit(i) for each row of windows, when scratch.row has its maxima.
  template <bool kWithIndices, typename T, typename Visit>
  ZG_INLINE void ForEachRow(const T* x, const Scratch& scratch, const Visit& visit) const {
    int64_t next = 0;  // the first row of x that is not reduced yet
    for (int64_t i = 0; i < shape_.out[0]; ++i) {
      if (is_plain_) {
        Look<kWithIndices>(x, i, scratch.row);
      } else if constexpr (kWithIndices) {
        ReduceColumnsFirst(x, i, scratch, &next);
      } else {
        ReduceRowsFirst(x, i, scratch);
      }
      visit(i);
    }
  }

 private:
  // The floats before the values: the padded row and the parts, -infinity where x has nothing.
  int64_t borders() const {
    return is_plain_ ? 0 : (shape_.stride[1] + num_parts_) * size_ + kLanes;
  }

  // The rows of x in row i of windows: `step` apart from `first` on, numbers [begin, end) of which
  // are inside.
  struct Rows {
    int64_t first, step, begin, end;
  };
  Rows RowsOf(int64_t i) const {
    const int64_t first = i * shape_.stride[0] - shape_.padding[0];
    const int64_t step = shape_.dilation[0];
    return {first, step, first < 0 ? (-first + step - 1) / step : 0,
            std::min(shape_.kernel[0], (shape_.in[0] - first + step - 1) / step)};
  }
  // The columns of x that have a place in the padded row.
  int64_t columns_inside() const {
    return std::min(shape_.in[1], shape_.stride[1] * size_ - shape_.padding[1]);
  }

  template <bool kWithIndices, typename T>
  void Look(const T* x, int64_t i, Maxima row) const {
    for (int64_t j = 0; j < shape_.out[1]; ++j) {
      if constexpr (kWithIndices) row.indices[j] = -1;
      if constexpr (!kWithIndices) row.values[j] = shape_.LargestOf(x, i, j).value;
    }
  }

  ZG_INLINE void Split(const float* padded, float* parts) const {
    const int64_t stride = shape_.stride[1];
    if (stride == 2 && num_parts_ == 2) {  // both in one loop, which is faster
      float* const odd = parts + size_;
      ZG_INDEPENDENT
      for (int64_t i = 0; i < size_; ++i) {
        parts[i] = padded[2 * i];
        odd[i] = padded[2 * i + 1];
      }
      return;
    }
    for (int64_t p = 0; p < num_parts_; ++p) {
      float* const part = parts + p * size_;
      ZG_INDEPENDENT
      for (int64_t i = 0; i < size_; ++i) part[i] = padded[i * stride + p];
    }
  }
  // Reduces the row in scratch.padded along the columns.
  template <bool kWithIndices>
  ZG_INLINE void ReduceColumns(const Scratch& scratch, Maxima maxima) const {
    const bool splits = shape_.stride[1] > 1;
    if (splits) Split(scratch.padded, scratch.parts);
    const float* const parts = splits ? scratch.parts : scratch.padded;
    Reduce<kWithIndices>(
        0, static_cast<int64_t>(taps_.size()),
        [&](int64_t tap) __attribute__((always_inline)) {
          return Candidates<float>{parts + taps_[tap], columns_.data() + taps_[tap], 0};
        },
        width_, maxima);
  }

  template <typename T>
  ZG_INLINE void ReduceRowsFirst(const T* x, int64_t i, const Scratch& scratch) const {
    const Rows rows = RowsOf(i);
    Reduce<false>(
        rows.begin, rows.end,
        [&](int64_t tap) __attribute__((always_inline)) {
          return Candidates<T>{x + (rows.first + tap * rows.step) * shape_.in[1], nullptr, 0};
        },
        columns_inside(), Maxima{scratch.padded + shape_.padding[1], nullptr});
    ReduceColumns<false>(scratch, scratch.row);
  }

  ZG_INLINE Maxima HeldOf(int64_t row, const Scratch& scratch) const {
    const int64_t at = row % held_ * width_;
    return {scratch.held.values + at, scratch.held.indices + at};
  }
  template <typename T>
  ZG_INLINE void ReduceColumnsFirst(const T* x, int64_t i, const Scratch& scratch,
                                    int64_t* next) const {
    const Rows rows = RowsOf(i);
    const int64_t columns = columns_inside();
    float* const inside = scratch.padded + shape_.padding[1];
    for (*next = std::max(*next, rows.first); *next <= rows.first + (rows.end - 1) * rows.step;
         ++*next) {
      const T* const row = x + *next * shape_.in[1];
      ZG_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) inside[j] = ToF32(row[j]);
      ReduceColumns<true>(scratch, HeldOf(*next, scratch));
    }
    Reduce<true>(
        rows.begin, rows.end,
        [&](int64_t tap) __attribute__((always_inline)) {
          const int64_t row = rows.first + tap * rows.step;
          const Maxima held = HeldOf(row, scratch);
          return Candidates<float>{held.values, held.indices,
                                   static_cast<int32_t>(row * shape_.in[1])};
        },
        width_, scratch.row);
  }

  const PoolShape shape_;
  const bool is_plain_;  // narrow, or with indices beyond int32_t: goes window by window
  const int64_t width_;  // windows in a row, in whole vectors
  int64_t held_ = 0;
  int64_t size_ = 0;  // of a part
  int64_t num_parts_ = 0;
  std::vector<int32_t> columns_;  // of all parts
  std::vector<int64_t> taps_;     // where the windows' columns begin among the parts
};

template <bool kIsGradient>
class MaxPool2d : public Kernel {
 public:
  explicit MaxPool2d(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(spec.call.attributes, spec.call.inputs[kIsGradient ? 1 : 0].shape,
               kIsGradient ? spec.call.inputs[0].shape : spec.outputs[0].shape),
        maxima_(shape_),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, shape_.planes, 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, shape_.planes, 1, Cost(),
              [&](int64_t begin, int64_t end, int thread) {
                void* const workspace = WorkspaceOf(thread, arguments.workspace, BytesOfThread());
                WithFloatType(dtype_, [&](auto zero) {
                  RunPlanes<decltype(zero)>(arguments, begin, end, static_cast<float*>(workspace));
                });
              });
    return Status::Ok();
  }

 private:
  int64_t in_pixels() const { return shape_.in[0] * shape_.in[1]; }
  int64_t out_pixels() const { return shape_.out[0] * shape_.out[1]; }
  // The cost of a plane, pixel by pixel.
  int64_t Cost() const { return 16 * out_pixels(); }
  // The sums of a plane are in f32.
  bool HasSums() const { return kIsGradient && dtype_ != DType::kF32; }
  int64_t BytesOfThread() const {
    return (maxima_.scratch_floats() + (HasSums() ? in_pixels() : 0)) *
           static_cast<int64_t>(sizeof(float));
  }

  template <typename T>
  void RunPlanes(const KernelArguments& arguments, int64_t begin, int64_t end,
                 float* workspace) const {
    const WindowMaxima::Scratch scratch = maxima_.MakeScratch(workspace);
    for (int64_t plane = begin; plane < end; ++plane) {
      if constexpr (!kIsGradient) {
        WriteMaxima(arguments.input<T>(0) + plane * in_pixels(), scratch,
                    arguments.output<T>(0) + plane * out_pixels());
      } else {
        T* const dx = arguments.output<T>(0) + plane * in_pixels();
        float* const sums = HasSums() ? workspace + maxima_.scratch_floats()
                                      : arguments.output<float>(0) + plane * in_pixels();
        std::fill_n(sums, in_pixels(), 0.0f);
        AddGradients(arguments.input<T>(0) + plane * out_pixels(),
                     arguments.input<T>(1) + plane * in_pixels(), scratch, sums);
        if (HasSums()) ConvertFloats(DType::kF32, sums, dtype_, dx, in_pixels());
      }
    }
  }

  template <typename T>
  void WriteMaxima(const T* x, const WindowMaxima::Scratch& scratch, T* y) const {
    Multiversion([=]() ZG_VERSION {
      const int64_t columns = shape_.out[1];
      const float* const largest = scratch.row.values;
      maxima_.ForEachRow<false>(
          x, scratch, [=](int64_t i) __attribute__((always_inline)) {
            T* const row = y + i * columns;
            ZG_INDEPENDENT
            for (int64_t j = 0; j < columns; ++j) row[j] = FromF32<T>(largest[j]);
          });
    });
  }

  template <typename T>
  void AddGradients(const T* dy, const T* x, const WindowMaxima::Scratch& scratch,
                    float* sums) const {
    Multiversion([=]() ZG_VERSION {
      const int64_t columns = shape_.out[1];
      const int32_t* const indices = scratch.row.indices;
      maxima_.ForEachRow<true>(
          x, scratch, [=](int64_t i) __attribute__((always_inline)) {
            const T* const row = dy + i * columns;
            for (int64_t j = 0; j < columns; ++j) {
              int64_t index = indices[j];
              if (index < 0) index = LookForIndex(x, i, j);
              if (index < 0) continue;  // a dilated window may be entirely outside
              sums[index] += ToF32(row[j]);
            }
          });
    });
  }
  // Which of many -infinities is the first, is rarely asked: not inlined, so that the variables of
  // the loop that asks are in registers.
  template <typename T>
  __attribute__((noinline)) int64_t LookForIndex(const T* x, int64_t i, int64_t j) const {
    return shape_.LargestOf(x, i, j).index;
  }

  const DType dtype_;
  const PoolShape shape_;
  const WindowMaxima maxima_;
  const int threads_;
};

}  // namespace

void RegisterMaxPoolKernels(KernelRegistry& registry) {
  registry.Register("max_pool2d", MakeKernel<MaxPool2d<false>>);
  registry.Register("max_pool2d_grad", MakeKernel<MaxPool2d<true>>);
}

}  // namespace zg
