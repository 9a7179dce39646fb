// Sums over rows, column by column, for gradients of weights that all rows share. The order depends
// only on the number of rows: rows are summed in blocks, and then the blocks, which rounds less
// than one long sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {

inline void AddInto(const float* x, int64_t count, float* sum) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
  });
}

// Computes `num_sums` sums of each column.
class RowSums {
 public:
  RowSums(int64_t rows, int64_t columns, int num_sums, int threads)
      : rows_(rows),
        columns_(columns),
        block_floats_(num_sums * columns),
        num_sharing_(NumSharing(threads, rows, kBlockRows, columns)) {}

  // Scratch for the sums of one block of rows; of all blocks if threads share them.
  int64_t workspace_floats() const { return (num_sharing_ > 1 ? num_blocks() : 1) * block_floats_; }

  // Sets each of `sums` (`columns` floats) to its sum. `add_rows(begin, end, block)` adds the terms
  // of these rows, in order, to `block`, which holds the sums one after the other.
  template <size_t kSums, typename AddRows>
  void Run(const std::array<float*, kSums>& sums, float* workspace, Threads* threads,
           const AddRows& add_rows) const {
    for (float* const sum : sums) std::fill_n(sum, columns_, 0.0f);
    const auto add_block = [&](int64_t begin, float* block) {
      std::fill_n(block, block_floats_, 0.0f);
      add_rows(begin, std::min(begin + kBlockRows, rows_), block);
    };
    if (num_sharing_ == 1) {
      for (int64_t begin = 0; begin < rows_; begin += kBlockRows) {
        add_block(begin, workspace);
        AddBlock(sums, workspace, 0, columns_);
      }
      return;
    }
    ForEqualRanges(threads, num_sharing_, rows_, kBlockRows, [&](int64_t begin, int64_t end, int) {
      for (; begin < end; begin += kBlockRows) {
        add_block(begin, workspace + begin / kBlockRows * block_floats_);
      }
    });
    ForRanges(threads, columns_, kElementUnit, num_blocks(), [&](int64_t begin, int64_t end, int) {
      for (int64_t block = 0; block < num_blocks(); ++block) {
        AddBlock(sums, workspace + block * block_floats_, begin, end);
      }
    });
  }

 private:
  static constexpr int64_t kBlockRows = 32;

  int64_t num_blocks() const { return (rows_ + kBlockRows - 1) / kBlockRows; }

  // For columns [begin, end).
  template <size_t kSums>
  void AddBlock(const std::array<float*, kSums>& sums, const float* block, int64_t begin,
                int64_t end) const {
    for (size_t i = 0; i < kSums; ++i) {
      AddInto(block + static_cast<int64_t>(i) * columns_ + begin, end - begin, sums[i] + begin);
    }
  }

  const int64_t rows_;
  const int64_t columns_;
  const int64_t block_floats_;
  const int num_sharing_;
};

}  // namespace zg
