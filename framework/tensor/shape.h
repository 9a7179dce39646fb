// Shape: the dims of a tensor, outermost first; row-major layout everywhere. A scalar has no dims
// and one element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace zg {

class Shape {
 public:
  static constexpr int64_t kMaxElements = int64_t{1} << 56;
  static constexpr int kMaxDims = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int num_dims() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const;  // negative i counts from the end
  void set_dim(int i, int64_t size);
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t num_elements() const;
  // At most kMaxDims dims >= 0, and at most kMaxElements: sizes in bytes fit an int64_t.
  bool IsValid() const;
  std::string ToString() const;  // "[20,2000]"

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return a.dims_ != b.dims_; }

 private:
  std::vector<int64_t> dims_;
};

// The product of two sizes >= 0, or, where no tensor is as large, a size that IsValid refuses: of
// numbers that nobody has checked yet.
int64_t SizeProduct(int64_t a, int64_t b);

// Whether the dims before this one have one element: equal parts along it are ranges of elements.
bool IsFirstLongDim(const Shape& shape, int dim);

}  // namespace zg
