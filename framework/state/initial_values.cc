#include "framework/state/initial_values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "framework/io/float_values.h"

namespace zg {
namespace {

// If the bound is so narrow that a draw seldom falls within it, the nearest end is used after this
// many draws.
constexpr uint64_t kMaxDraws = 1000;

float TruncatedNormalAt(RandomKey key, uint64_t element, float deviation, float bound) {
  float value = 0.0f;
  for (uint64_t draw = 0; draw < kMaxDraws; ++draw) {
    value = deviation * NormalAt(FoldIn(key, draw), element);
    if (std::abs(value) <= bound) return value;
  }
  return std::clamp(value, -bound, bound);
}

// Subtracts from row `row` its components along the previous rows, and scales it to length 1.
void Orthonormalise(std::vector<double>* matrix, int64_t row, int64_t columns) {
  double* const own = matrix->data() + row * columns;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t before = 0; before < row; ++before) {
      const double* const other = matrix->data() + before * columns;
      double dot = 0.0;
      for (int64_t i = 0; i < columns; ++i) dot += own[i] * other[i];
      for (int64_t i = 0; i < columns; ++i) own[i] -= dot * other[i];
    }
  }
  double squares = 0.0;
  for (int64_t i = 0; i < columns; ++i) squares += own[i] * own[i];
  for (int64_t i = 0; i < columns; ++i) own[i] /= std::sqrt(squares);
}

}  // namespace

std::vector<float> OrthogonalMatrix(RandomKey key, int64_t rows, int64_t columns, double gain) {
  const int64_t vectors = std::min(rows, columns);
  const int64_t length = std::max(rows, columns);
  std::vector<double> matrix(vectors * length);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = NormalAt(key, i);
  for (int64_t row = 0; row < vectors; ++row) Orthonormalise(&matrix, row, length);
  std::vector<float> result(matrix.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t from = rows <= columns ? row * length + column : column * length + row;
      result[row * columns + column] = static_cast<float>(gain * matrix[from]);
    }
  }
  return result;
}

StatusOr<InitialValues> InitialValues::Of(const Initializer& initializer, const std::string& name,
                                          RandomKey key, const Shape& shape) {
  InitialValues values(initializer, key);
  if (initializer.kind == Initializer::Kind::kFile) {
    ZG_RETURN_IF_ERROR(
        values.OpenFile(name, shape).WithContext(fmt::format("initial values of '{}'", name)));
  }
  if (initializer.kind == Initializer::Kind::kRow) {
    const auto size = static_cast<int64_t>(initializer.row.size());
    if (shape.num_dims() == 0 || shape.dim(-1) != size) {
      return InvalidArgument("initial values of '{}': got a row of {}, expected one that fits {}",
                             name, size, shape.ToString());
    }
  }
  if (initializer.zero_row >= 0) {
    if (shape.num_dims() == 0 || initializer.zero_row >= shape.dim(0)) {
      return InvalidArgument("initial values of '{}': got zeros in row {}, expected a row of {}",
                             name, initializer.zero_row, shape.ToString());
    }
    values.row_size_ = shape.num_elements() / shape.dim(0);
  }
  if (initializer.kind == Initializer::Kind::kOrthogonal && shape.num_elements() > 0) {
    const int64_t rows = shape.num_dims() == 0 ? 1 : shape.dim(0);
    values.whole_ = OrthogonalMatrix(key, rows, shape.num_elements() / rows, initializer.scale);
  }
  return values;
}

Status InitialValues::OpenFile(const std::string& name, const Shape& shape) {
  ZG_ASSIGN_OR_RETURN(file_, SafetensorsFile::Open(initializer_.path));
  const std::string& tensor = initializer_.tensor.empty() ? name : initializer_.tensor;
  in_file_ = file_->Find(tensor);
  if (in_file_ == nullptr) {
    return InvalidArgument("{}: no tensor '{}' among its {}", initializer_.path, tensor,
                           file_->entries().size());
  }
  if (!IsFloatValue(in_file_->dtype) || in_file_->shape != shape.dims()) {
    return InvalidArgument("{}: '{}' is {}{}, expected F32, F16 or BF16 {}", initializer_.path,
                           tensor, SafetensorsDTypeName(in_file_->dtype),
                           Shape(in_file_->shape).ToString(), shape.ToString());
  }
  return Status::Ok();
}

void InitialValues::Fill(int64_t begin, int64_t end, float* data) const {
  FillAllRows(begin, end, data);
  if (initializer_.zero_row < 0) return;
  const int64_t row_begin = std::max(begin, initializer_.zero_row * row_size_);
  const int64_t row_end = std::min(end, (initializer_.zero_row + 1) * row_size_);
  if (row_begin < row_end) std::fill(data + row_begin - begin, data + row_end - begin, 0.0f);
}

void InitialValues::FillAllRows(int64_t begin, int64_t end, float* data) const {
  const auto scale = static_cast<float>(initializer_.scale);
  const auto mean = static_cast<float>(initializer_.mean);
  switch (initializer_.kind) {
    case Initializer::Kind::kZeros:
      std::fill_n(data, end - begin, 0.0f);
      return;
    case Initializer::Kind::kOnes:
      std::fill_n(data, end - begin, 1.0f);
      return;
    case Initializer::Kind::kConstant:
      std::fill_n(data, end - begin, scale);
      return;
    case Initializer::Kind::kRow:
      for (int64_t i = begin; i < end; ++i) {
        const auto size = static_cast<int64_t>(initializer_.row.size());
        data[i - begin] = static_cast<float>(initializer_.row[i % size]);
      }
      return;
    case Initializer::Kind::kNormal:
      FillNormal(key_, begin, end, mean, scale, data);
      return;
    case Initializer::Kind::kTruncatedNormal:
      for (int64_t i = begin; i < end; ++i) {
        data[i - begin] = TruncatedNormalAt(key_, i, scale, static_cast<float>(initializer_.bound));
      }
      return;
    case Initializer::Kind::kUniform:
      FillUniform(key_, begin, end, mean - scale, mean + scale, data);
      return;
    case Initializer::Kind::kOrthogonal:
      std::copy(whole_.begin() + begin, whole_.begin() + end, data);
      return;
    case Initializer::Kind::kFile:
      ReadMappedFloatValues(in_file_->dtype, file_->Data(*in_file_), begin, end, data);
      return;
  }
}

}  // namespace zg
