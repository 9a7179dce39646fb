#include "tests/testing/heap_tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "framework/base/check.h"
#include "framework/tensor/half.h"

namespace zg::testing {
namespace {

// Exactly `bytes` long, so that the address sanitizer sees the first byte beyond.
std::shared_ptr<char> Allocate(int64_t bytes) {
  void* memory = nullptr;
  const int error = posix_memalign(&memory, 64, std::max<int64_t>(bytes, 1));
  ZG_CHECK(error == 0, "no memory for {} bytes", bytes);
  return std::shared_ptr<char>(static_cast<char*>(memory), std::free);
}

}  // namespace

HeapTensor::HeapTensor(TensorType type) : type_(std::move(type)), data_(Allocate(type_.bytes())) {
  std::memset(data_.get(), 0xFF, type_.bytes());
}

HeapTensor HeapTensor::FromDoubles(const TensorType& type, const std::vector<double>& values) {
  ZG_CHECK(static_cast<int64_t>(values.size()) == type.shape.num_elements(), "{} values for {}",
           values.size(), type.ToString());
  HeapTensor tensor(type);
  if (type.dtype == DType::kBool) {
    std::transform(values.begin(), values.end(), static_cast<uint8_t*>(tensor.data()),
                   [](double value) { return static_cast<uint8_t>(value != 0.0); });
    return tensor;
  }
  if (type.dtype == DType::kU8) {
    std::transform(values.begin(), values.end(), static_cast<uint8_t*>(tensor.data()),
                   [](double value) { return static_cast<uint8_t>(value); });
    return tensor;
  }
  if (!IsFloat(type.dtype)) {
    ZG_CHECK(type.dtype == DType::kI64, "{} is not supported here", type.ToString());
    std::transform(values.begin(), values.end(), static_cast<int64_t*>(tensor.data()),
                   [](double value) { return static_cast<int64_t>(value); });
    return tensor;
  }
  WithFloatType(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::transform(values.begin(), values.end(), static_cast<T*>(tensor.data()),
                   [](double value) { return FromF32<T>(static_cast<float>(value)); });
  });
  return tensor;
}

std::vector<double> HeapTensor::ToDoubles() const {
  const int64_t num_elements = type_.shape.num_elements();
  if (type_.dtype == DType::kBool || type_.dtype == DType::kU8) {
    const auto* const elements = static_cast<const uint8_t*>(data());
    return std::vector<double>(elements, elements + num_elements);
  }
  if (!IsFloat(type_.dtype)) {
    ZG_CHECK(type_.dtype == DType::kI64, "{} is not supported here", type_.ToString());
    const auto* const elements = static_cast<const int64_t*>(data());
    return std::vector<double>(elements, elements + num_elements);
  }
  return WithFloatType(type_.dtype, [&](auto zero) {
    const auto* const elements = static_cast<const decltype(zero)*>(data());
    std::vector<double> values(num_elements);
    std::transform(elements, elements + num_elements, values.begin(),
                   [](auto element) { return double{ToF32(element)}; });
    return values;
  });
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
