#include "tests/testing/heap_tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "framework/base/check.h"

namespace zg::testing {
namespace {

// Exactly `bytes` long, so that the address sanitizer sees the first byte beyond.
std::shared_ptr<char> Allocate(int64_t bytes) {
  void* memory = nullptr;
  const int error = posix_memalign(&memory, 64, std::max<int64_t>(bytes, 1));
  ZG_CHECK(error == 0, "no memory for {} bytes", bytes);
  return std::shared_ptr<char>(static_cast<char*>(memory), std::free);
}

template <typename T>
void CopyFrom(const std::vector<double>& values, void* data) {
  std::transform(values.begin(), values.end(), static_cast<T*>(data),
                 [](double value) { return static_cast<T>(value); });
}

template <typename T>
std::vector<double> CopyTo(const void* data, int64_t num_elements) {
  const T* const elements = static_cast<const T*>(data);
  return std::vector<double>(elements, elements + num_elements);
}

}  // namespace

HeapTensor::HeapTensor(TensorType type) : type_(std::move(type)), data_(Allocate(type_.bytes())) {
  std::memset(data_.get(), 0xFF, type_.bytes());
}

HeapTensor HeapTensor::FromDoubles(const TensorType& type, const std::vector<double>& values) {
  ZG_CHECK(static_cast<int64_t>(values.size()) == type.shape.num_elements(), "{} values for {}",
           values.size(), type.ToString());
  HeapTensor tensor(type);
  if (type.dtype == DType::kF32) {
    CopyFrom<float>(values, tensor.data());
  } else {
    ZG_CHECK(type.dtype == DType::kI64, "{} is not supported here", type.ToString());
    CopyFrom<int64_t>(values, tensor.data());
  }
  return tensor;
}

std::vector<double> HeapTensor::ToDoubles() const {
  if (type_.dtype == DType::kF32) return CopyTo<float>(data(), type_.shape.num_elements());
  ZG_CHECK(type_.dtype == DType::kI64, "{} is not supported here", type_.ToString());
  return CopyTo<int64_t>(data(), type_.shape.num_elements());
}

HeapTensor HeapTensor::Clone() const {
  HeapTensor copy(type_);
  std::memcpy(copy.data(), data(), type_.bytes());
  return copy;
}

HeapTensor HeapTensor::View(const TensorType& type, int64_t offset_elements) const {
  const int64_t offset_bytes = offset_elements * SizeOf(type.dtype);
  ZG_CHECK(offset_bytes >= 0 && offset_bytes + type.bytes() <= type_.bytes(),
           "{} at element {} is not inside {}", type.ToString(), offset_elements, type_.ToString());
  HeapTensor view;
  view.type_ = type;
  view.data_ = std::shared_ptr<char>(data_, data_.get() + offset_bytes);
  return view;
}

bool SameBits(const HeapTensor& a, const HeapTensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), a.type().bytes()) == 0;
}

}  // namespace zg::testing
