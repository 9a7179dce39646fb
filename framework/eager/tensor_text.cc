#include "framework/eager/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "framework/tensor/half.h"

namespace zg::eager {
namespace {

constexpr int64_t kAllElements = 1000;
constexpr int64_t kShownAtEnds = 3;

class Text {
 public:
  Text(const TensorType& type, const std::byte* data)
      : type_(type), data_(data), shows_all_(type.shape.num_elements() <= kAllElements) {
    std::vector<int64_t> elements;
    Collect(0, 0, &elements);
    for (const int64_t element : elements) Widen(element);
    for (const int64_t element : elements) width_ = std::max(width_, Number(element).size());
  }

  std::string Of(int dim, int64_t begin) const {
    if (dim == type_.shape.num_dims()) return fmt::format("{:>{}}", Number(begin), width_);
    const bool is_last = dim + 1 == type_.shape.num_dims();
    const std::string between = is_last ? ", " : ",\n" + std::string(dim + 1, ' ');
    std::string text = "[";
    int64_t next = 0;
    for (const int64_t i : Shown(dim)) {
      if (i > 0) text += between;
      if (i > next) text += "..." + between;
      text += Of(dim + 1, begin * type_.shape.dim(dim) + i);
      next = i + 1;
    }
    return text + "]";
  }

 private:
  std::vector<int64_t> Shown(int dim) const {
    const int64_t size = type_.shape.dim(dim);
    std::vector<int64_t> shown;
    for (int64_t i = 0; i < size; ++i) {
      if (shows_all_ || i < kShownAtEnds || i >= size - kShownAtEnds) shown.push_back(i);
    }
    return shown;
  }

  void Collect(int dim, int64_t begin, std::vector<int64_t>* elements) const {
    if (dim == type_.shape.num_dims()) {
      elements->push_back(begin);
      return;
    }
    for (const int64_t i : Shown(dim)) {
      Collect(dim + 1, begin * type_.shape.dim(dim) + i, elements);
    }
  }

  double Value(int64_t element) const {
    const std::byte* const at = data_ + element * SizeOf(type_.dtype);
    if (!IsFloat(type_.dtype)) {
      int64_t number = 0;
      std::memcpy(&number, at, SizeOf(type_.dtype));
      return static_cast<double>(number);
    }
    double value = 0;
    WithFloatType(type_.dtype, [&](auto zero) {
      std::memcpy(&zero, at, sizeof(zero));
      value = ToF32(zero);
    });
    return value;
  }

  // Numbers far from 1 need exponents; then all of them get one.
  void Widen(int64_t element) {
    const double size = std::abs(Value(element));
    if (std::isfinite(size) && size != 0 && (size < 1e-4 || size >= 1e6)) has_exponents_ = true;
  }

  std::string Number(int64_t element) const {
    if (!IsFloat(type_.dtype)) {
      return fmt::format("{}", static_cast<int64_t>(Value(element)));
    }
    const double value = Value(element);
    if (!std::isfinite(value)) return fmt::format("{}", value);
    return has_exponents_ ? fmt::format("{:.4e}", value) : fmt::format("{:.4f}", value);
  }

  const TensorType& type_;
  const std::byte* data_;
  const bool shows_all_;
  bool has_exponents_ = false;
  size_t width_ = 0;
};

}  // namespace

std::string ElementsText(const TensorType& type, const std::byte* data) {
  return Text(type, data).Of(0, 0);
}

}  // namespace zg::eager
