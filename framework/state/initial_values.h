// InitialValues: the initial values of a variable's elements, for any range of them, with the same
// bits for every cut into parts, on every rank and processor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/random.h"
#include "framework/base/status.h"
#include "framework/io/safetensors.h"
#include "framework/ir/initializer.h"
#include "framework/tensor/shape.h"

namespace zg {

class InitialValues {
 public:
  // For the tensor `name`. Errors about a file with the values: it cannot be read, has no such
  // tensor, or one of another shape or of whole numbers.
  static StatusOr<InitialValues> Of(const Initializer& initializer, const std::string& name,
                                    RandomKey key, const Shape& shape);

  // Elements [begin, end) of the tensor.
  void Fill(int64_t begin, int64_t end, float* data) const;

 private:
  InitialValues(const Initializer& initializer, RandomKey key)
      : initializer_(initializer), key_(key) {}

  void FillAllRows(int64_t begin, int64_t end, float* data) const;
  Status OpenFile(const std::string& name, const Shape& shape);

  Initializer initializer_;
  RandomKey key_;
  int64_t row_size_ = 0;      // of a row of zeros
  std::vector<float> whole_;  // for initializers whose elements depend on each other
  std::optional<SafetensorsFile> file_;
  const SafetensorsEntry* in_file_ = nullptr;
};

// A (rows, columns) matrix with orthonormal rows, or columns where these are fewer: normal random
// numbers, orthogonalised one row after the other (Gram and Schmidt, twice), so that the matrix is
// uniformly distributed among those (Mezzadri 2007, "How to generate random matrices from the
// classical compact groups").
std::vector<float> OrthogonalMatrix(RandomKey key, int64_t rows, int64_t columns, double gain);

}  // namespace zg
