#include "framework/tensor/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/check.h"

namespace zg {
namespace {

int Resolve(int i, int num_dims) {
  const int resolved = i < 0 ? i + num_dims : i;
  ZG_CHECK(resolved >= 0 && resolved < num_dims, "dim {} of a shape with {} dims", i, num_dims);
  return resolved;
}

}  // namespace

int64_t Shape::dim(int i) const { return dims_[Resolve(i, num_dims())]; }

void Shape::set_dim(int i, int64_t size) { dims_[Resolve(i, num_dims())] = size; }

int64_t Shape::num_elements() const {
  int64_t product = 1;
  for (int64_t dim : dims_) product *= dim;
  return product;
}

bool Shape::IsValid() const {
  if (num_dims() > kMaxDims) return false;
  int64_t product = 1;
  for (int64_t dim : dims_) {
    if (dim < 0) return false;
    // Treats zero dims as one, so that no order of the dims overflows.
    if (__builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product) ||
        product > kMaxElements) {
      return false;
    }
  }
  return true;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (const int64_t dim : dims_) {
    if (text.size() > 1) text += ',';
    text += fmt::format_int(dim).c_str();
  }
  return text + ']';
}

int64_t SizeProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &product);
  return overflows ? Shape::kMaxElements + 1 : std::min(product, Shape::kMaxElements + 1);
}

bool IsFirstLongDim(const Shape& shape, int dim) {
  for (int i = 0; i < dim; ++i) {
    if (shape.dim(i) != 1) return false;
  }
  return true;
}

}  // namespace zg
