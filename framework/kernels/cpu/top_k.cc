#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/cumulative_math.h"
#include "framework/kernels/math/top_k_order.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The first element of a row in the order of top_k; `sign` is -1 for the smallest. Searches by
// blocks: first the largest element of each, then the position of the overall largest.
template <typename T>
RankedElement FirstOfRow(const T* row, int64_t count, float sign) {
  constexpr int64_t kBlock = 1024;
  float block[kBlock];
  RankedElement best = {0.0f, -1};
  int64_t best_block = -1;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    float* const values = block;
    const auto [largest, num_nan] = Multiversion([=]() ZG_VERSION {
      int32_t nans = 0;
      for (int64_t i = 0; i < size; ++i) {
        const float value = ToF32(row[begin + i]) * sign;
        values[i] = value;
        nans += value != value ? 1 : 0;
      }
      return std::pair<float, int32_t>(MaximumOf(values, size), nans);
    });
    if (num_nan > 0) {
      for (int64_t i = begin;; ++i) {
        const float value = ToF32(row[i]);
        if (value != value) return {value, i};
      }
    }
    if (best_block < 0 || largest > best.value) {
      best.value = largest;
      best_block = begin;
    }
  }
  best.index = best_block;
  while (ToF32(row[best.index]) * sign != best.value) ++best.index;
  return best;
}

// The same for rows of a few elements, which are not worth the blocks.
constexpr int64_t kShortRow = 32;
template <typename T>
int64_t FirstOfShortRow(const T* row, int64_t count, float sign) {
  float largest = ToF32(row[0]) * sign;
  int64_t index = 0;
  for (int64_t i = 1; i < count; ++i) {
    const float value = ToF32(row[i]) * sign;
    const bool takes = IsNewMaximum(value, largest);
    largest = takes ? value : largest;
    index = takes ? i : index;
  }
  return index;
}

// The same for `count` columns at once: row i of them is at offset i * count.
template <typename T>
void FirstOfColumns(const T* x, int64_t rows, int64_t count, float sign, float* best, int32_t* at) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t i = 0; i < rows; ++i) {
      const T* const row = x + i * count;
      const int32_t index = static_cast<int32_t>(i);
      ZG_INDEPENDENT
      for (int64_t k = 0; k < count; ++k) {
        const float value = ToF32(row[k]) * sign;
        const float old = best[k];
        const bool takes = index == 0 || value > old || (value != value && old == old);
        best[k] = takes ? value : old;
        at[k] = takes ? index : at[k];
      }
    }
  });
}

// An element with its value as a number that is smaller the earlier it comes.
struct KeyedElement {
  uint32_t key;
  int32_t index;
};

// In the order of ComesBefore: NaN has the smallest key, and both zeros have the same.
uint32_t KeyOf(float value) {
  if (value != value) return 0;
  value += 0.0f;  // of -0: 0
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  constexpr uint32_t kSign = uint32_t{1} << 31;
  return ~((bits & kSign) != 0 ? ~bits : bits | kSign);
}

// Sorts by the keys, and keeps the order of equal ones: by one byte of the keys after the other, from
// the lowest. Returns where the sorted elements are: in either array.
KeyedElement* SortByKey(KeyedElement* elements, KeyedElement* other, int64_t count) {
  constexpr int kBytes = 4, kValues = 256;
  int32_t counts[kBytes][kValues] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int byte = 0; byte < kBytes; ++byte) {
      ++counts[byte][elements[i].key >> (8 * byte) & 0xff];
    }
  }
  for (int byte = 0; byte < kBytes; ++byte) {
    const int shift = 8 * byte;
    if (counts[byte][elements[0].key >> shift & 0xff] == count) continue;  // all are equal
    int32_t place = 0;
    for (int32_t& of_value : counts[byte]) place += std::exchange(of_value, place);
    for (int64_t i = 0; i < count; ++i) {
      other[counts[byte][elements[i].key >> shift & 0xff]++] = elements[i];
    }
    std::swap(elements, other);
  }
  return elements;
}

class TopK : public Kernel {
 public:
  explicit TopK(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        x_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        k_(spec.call.attributes.Int("k")),
        sign_(spec.call.attributes.Bool("largest") ? 1.0f : -1.0f) {}

  int64_t workspace_bytes() const override {
    if (k_ > 1 || (x_.inner > 1 && !by_columns())) {
      return x_.size * static_cast<int64_t>(sizeof(RankedElement));
    }
    return by_columns() ? x_.inner * static_cast<int64_t>(sizeof(float) + sizeof(int32_t)) : 0;
  }

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = arguments.input<T>(0);
      T* values = arguments.output<T>(0);
      int64_t* indices = arguments.output<int64_t>(1);
      for (int64_t outer = 0; outer < x_.outer; ++outer) {
        RunOne(x, arguments.workspace, values, indices);
        x += x_.size * x_.inner;
        values += k_ * x_.inner;
        indices += k_ * x_.inner;
      }
    });
    return Status::Ok();
  }

 private:
  // A heap finds a few elements faster, and short rows are not worth the counting.
  bool sorts_by_key() const { return k_ * 16 >= x_.size && x_.size >= 128 && x_.size < INT32_MAX; }
  bool by_columns() const { return x_.inner > 1 && x_.size < INT32_MAX; }

  // For one index of the dims before `dim`.
  template <typename T>
  void RunOne(const T* x, void* workspace, T* values, int64_t* indices) const {
    if (k_ == 1 && x_.inner == 1) {
      indices[0] = x_.size <= kShortRow ? FirstOfShortRow(x, x_.size, sign_)
                                        : FirstOfRow(x, x_.size, sign_).index;
      values[0] = x[indices[0]];
    } else if (k_ == 1 && by_columns()) {
      float* const best = static_cast<float*>(workspace);
      int32_t* const at = reinterpret_cast<int32_t*>(best + x_.inner);
      FirstOfColumns(x, x_.size, x_.inner, sign_, best, at);
      for (int64_t column = 0; column < x_.inner; ++column) {
        indices[column] = at[column];
        values[column] = x[at[column] * x_.inner + column];
      }
    } else if (sorts_by_key()) {
      static_assert(2 * sizeof(KeyedElement) == sizeof(RankedElement), "the workspace has room");
      auto* const elements = static_cast<KeyedElement*>(workspace);
      for (int64_t column = 0; column < x_.inner; ++column) {
        for (int64_t i = 0; i < x_.size; ++i) {
          const float value = ToF32(x[i * x_.inner + column]) * sign_;
          elements[i] = {KeyOf(value), static_cast<int32_t>(i)};
        }
        const KeyedElement* const sorted = SortByKey(elements, elements + x_.size, x_.size);
        for (int64_t i = 0; i < k_; ++i) {
          indices[i * x_.inner + column] = sorted[i].index;
          values[i * x_.inner + column] = x[sorted[i].index * x_.inner + column];
        }
      }
    } else {
      auto* const elements = static_cast<RankedElement*>(workspace);
      for (int64_t column = 0; column < x_.inner; ++column) {
        for (int64_t i = 0; i < x_.size; ++i) {
          elements[i] = {ToF32(x[i * x_.inner + column]) * sign_, i};
        }
        std::partial_sort(elements, elements + k_, elements + x_.size, ComesBefore);
        for (int64_t i = 0; i < k_; ++i) {
          indices[i * x_.inner + column] = elements[i].index;
          values[i * x_.inner + column] = x[elements[i].index * x_.inner + column];
        }
      }
    }
  }

  const DType dtype_;
  const DimView x_;
  const int64_t k_;
  const float sign_;
};

}  // namespace

void RegisterTopKKernels(KernelRegistry& registry) { registry.Register("top_k", MakeKernel<TopK>); }

}  // namespace zg
