// HeapTensor: a tensor of a test, on the heap. Copies share memory; Clone() does not.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/ir/op_def.h"

namespace zg::testing {

class HeapTensor {
 public:
  HeapTensor() = default;
  // All bytes are 0xFF, a NaN in every float type, so that memory that nobody wrote is not mistaken
  // for a result.
  explicit HeapTensor(TensorType type);
  // Floating-point types, to which values are rounded (by way of f32), i64 and bool.
  static HeapTensor FromDoubles(const TensorType& type, const std::vector<double>& values);

  const TensorType& type() const { return type_; }
  void* data() const { return data_.get(); }
  std::vector<double> ToDoubles() const;

  HeapTensor Clone() const;
  // A tensor of `type` that begins at `offset_elements` of this one, in the same memory.
  HeapTensor View(const TensorType& type, int64_t offset_elements) const;

 private:
  TensorType type_;
  std::shared_ptr<char> data_;
};

bool SameBits(const HeapTensor& a, const HeapTensor& b);

}  // namespace zg::testing
