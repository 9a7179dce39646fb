#include "tests/testing/cache_rows.h"

#include <algorithm>
#include <cstring>

namespace zg::testing {
namespace {

// `count` rows of the tensor from row `first` of a text on.
HeapTensor RowsOf(const HeapTensor& tensor, int64_t text, int64_t first, int64_t count) {
  const Shape& shape = tensor.type().shape;
  const int64_t channels = shape.dim(2);
  return tensor.View({tensor.type().dtype, {count, channels}},
                     (text * shape.dim(1) + first) * channels);
}

void Copy(const HeapTensor& from, const HeapTensor& to) {
  std::memcpy(to.data(), from.data(), from.type().bytes());
}

}  // namespace

void MoveTexts(const NumbersOfTexts& parents, const NumbersOfTexts& starts, HeapTensor* cache) {
  const HeapTensor before = cache->Clone();
  for (int64_t b = 0; b < cache->type().shape.dim(0); ++b) {
    const int64_t count = std::min(NumberOf(starts, b), cache->type().shape.dim(1));
    if (count < 1) continue;
    Copy(RowsOf(before, NumberOf(parents, b), 0, count), RowsOf(*cache, b, 0, count));
  }
}

Status WriteRows(const HeapTensor& rows, const NumbersOfTexts& starts, HeapTensor* cache) {
  const int64_t count = rows.type().shape.dim(1), size = cache->type().shape.dim(1);
  for (int64_t b = 0; b < rows.type().shape.dim(0); ++b) {
    const int64_t start = NumberOf(starts, b);
    if (start < 0 || start + count > size) {
      return InvalidArgument("rows from {} on in a cache of {}", start, size);
    }
    Copy(RowsOf(rows, b, 0, count), RowsOf(*cache, b, start, count));
  }
  return Status::Ok();
}

void ClearBegun(const NumbersOfTexts& starts, HeapTensor* state) {
  for (int64_t b = 0; b < state->type().shape.dim(0); ++b) {
    if (NumberOf(starts, b) != 0) continue;
    const HeapTensor row = RowsOf(*state, b, 0, 1);
    std::memset(row.data(), 0, row.type().bytes());
  }
}

}  // namespace zg::testing
