// What the kernels of recurrent layers have in common: from element to element, a product of the
// states with weight, and then the gates of each sample. Threads share the samples.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/kernel.h"
#include "framework/kernels/recurrence_call.h"

namespace zg {

// What a thread takes along from element to element: a row for each of its samples.
struct CarriedRows {
  char* products;  // (G H): of the states before the element with weight; not in a gradient
  char* state;     // (H): in a gradient, that of h; else one row of zeros
  char* direct;    // (H): in a GRU's gradient, what of it passes without a product
  float* cells;    // (H): c, or its gradient
};

class RecurrenceKernel : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return weight_bytes_ + static_cast<int64_t>(ranges_.size()) * range_bytes_;
  }
  Status Run(const KernelArguments& arguments) override;

 protected:
  struct Range {
    int64_t begin;
    int64_t samples;
    Gemm product;
  };

  RecurrenceKernel(const KernelSpec& spec, bool is_gradient);

  virtual void RunRange(const KernelArguments& arguments, const Range& range, GemmOperand weight,
                        const CarriedRows& carried, void* scratch) const = 0;

  // Where, in elements, the row of a sample's element begins in a sequence (B, T, rows x H).
  int64_t At(int64_t sample, int64_t t, int64_t rows = 1) const {
    return (sample * call_.steps + t) * rows * call_.hidden;
  }
  // A sample's state at element t of `states`; at -1, it is in `first`. Null, for zeros, if that is.
  template <typename T>
  const T* StateAt(const T* states, const T* first, int64_t sample, int64_t t) const {
    if (t >= 0) return states + At(sample, t);
    return first == nullptr ? nullptr : first + sample * call_.hidden;
  }
  // The element before the i-th that is read; -1: there is none.
  int64_t StepBefore(int64_t i) const { return i == 0 ? -1 : call_.StepAt(i - 1); }

  int64_t columns() const { return call_.gates * call_.hidden; }
  int64_t row_bytes() const { return call_.hidden * element_bytes_; }

  const RecurrenceCall call_;
  const int64_t element_bytes_;

 private:
  std::vector<Range> ranges_;
  int64_t range_bytes_ = 0;
  int64_t weight_bytes_ = 0;  // of weight, packed once for all elements; 0: it is not packed
};

class RecurrentLayer : public RecurrenceKernel {
 protected:
  explicit RecurrentLayer(const KernelSpec& spec);

  // Element t of a sample, whose state has been multiplied; it was that of element `before`.
  virtual void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
                      const CarriedRows& row) const = 0;

  // States before the first element; null: zeros.
  template <typename T>
  const T* First(const KernelArguments& arguments, size_t input) const {
    return num_inputs_ > input ? arguments.input<T>(static_cast<int>(input)) : nullptr;
  }

 private:
  void RunRange(const KernelArguments& arguments, const Range& range, GemmOperand weight,
                const CarriedRows& carried, void* scratch) const override;
  GemmOperand StatesAt(const KernelArguments& arguments, const Range& range, int64_t t,
                       const CarriedRows& carried) const;

  const size_t num_inputs_;
};

// Its outputs are the gradients of x; then, unless they are the same, those of the products; then
// those of the states before the first element.
class RecurrentGradient : public RecurrenceKernel {
 protected:
  RecurrentGradient(const KernelSpec& spec, int products_output);

  // Element t of a sample, from what the element behind it has carried; `before` is the one before.
  virtual void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
                      const CarriedRows& row) const = 0;

 private:
  void RunRange(const KernelArguments& arguments, const Range& range, GemmOperand weight,
                const CarriedRows& carried, void* scratch) const override;

  const int products_output_;
  const bool has_cells_;
};

}  // namespace zg
