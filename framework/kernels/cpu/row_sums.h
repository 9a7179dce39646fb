// Sums over rows, column by column, for gradients of weights that all rows share. The order depends
// only on the number of rows in each part: rows are summed in blocks, and then the blocks, which
// rounds less than one long sum; and then the parts, pairwise.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "framework/kernels/cpu/row_parts.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {

// Computes `num_sums` sums of each column.
class RowSums {
 public:
  RowSums(const RowParts& parts, int64_t columns, int num_sums, int threads)
      : parts_(parts),
        columns_(columns),
        block_floats_(num_sums * columns),
        num_sharing_(NumSharing(threads, parts.rows(), kBlockRows, columns)) {}

  // Scratch for the sums of one block of rows, or of all blocks of a part if threads share them; and
  // for those of the parts, if there are several.
  int64_t workspace_floats() const {
    return block_floats_ * ((num_sharing_ > 1 ? num_blocks() : 1) +
                            (parts_.num_parts() > 1 ? parts_.num_parts() : 0));
  }

  // Sets each of `sums` (`columns` floats) to its sum. `add_rows(begin, end, block)` adds the terms
  // of these rows, in order, to `block`, which holds the sums one after the other.
  template <size_t kSums, typename AddRows>
  void Run(const std::array<float*, kSums>& sums, float* workspace, Threads* threads,
           const AddRows& add_rows) const {
    if (parts_.num_parts() == 1) return RunPart(0, sums, workspace, threads, add_rows);
    float* const of_parts = workspace;
    float* const blocks = of_parts + parts_.num_parts() * block_floats_;
    for (int64_t part = 0; part < parts_.num_parts(); ++part) {
      std::array<float*, kSums> own;
      for (size_t i = 0; i < kSums; ++i) {
        own[i] = of_parts + part * block_floats_ + static_cast<int64_t>(i) * columns_;
      }
      RunPart(part, own, blocks, threads, add_rows);
    }
    AddPairwise(parts_.num_parts(), block_floats_, block_floats_, of_parts);
    for (size_t i = 0; i < kSums; ++i) {
      std::copy_n(of_parts + static_cast<int64_t>(i) * columns_, columns_, sums[i]);
    }
  }

 private:
  static constexpr int64_t kBlockRows = 32;

  int64_t num_blocks() const { return (parts_.rows() + kBlockRows - 1) / kBlockRows; }

  template <size_t kSums, typename AddRows>
  void RunPart(int64_t part, const std::array<float*, kSums>& sums, float* workspace,
               Threads* threads, const AddRows& add_rows) const {
    for (float* const sum : sums) std::fill_n(sum, columns_, 0.0f);
    const int64_t rows = parts_.rows();
    const auto add_block = [&](int64_t begin, float* block) {
      std::fill_n(block, block_floats_, 0.0f);
      parts_.ForRuns(part, begin, std::min(begin + kBlockRows, rows),
                     [&](int64_t first, int64_t end) { add_rows(first, end, block); });
    };
    if (num_sharing_ == 1) {
      for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
        add_block(begin, workspace);
        AddBlock(sums, workspace, 0, columns_);
      }
      return;
    }
    ForEqualRanges(threads, num_sharing_, rows, kBlockRows, [&](int64_t begin, int64_t end, int) {
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

  // For columns [begin, end).
  template <size_t kSums>
  void AddBlock(const std::array<float*, kSums>& sums, const float* block, int64_t begin,
                int64_t end) const {
    for (size_t i = 0; i < kSums; ++i) {
      AddInto(block + static_cast<int64_t>(i) * columns_ + begin, end - begin, sums[i] + begin);
    }
  }

  const RowParts parts_;
  const int64_t columns_;
  const int64_t block_floats_;
  const int num_sharing_;
};

}  // namespace zg
