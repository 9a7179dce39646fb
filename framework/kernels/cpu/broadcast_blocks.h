// The operands of a result that is computed block by block: broadcast operands are expanded into a
// block, the others are read in place. A number is repeated in its block once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/gather_elements.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/kernel.h"
#include "framework/kernels/strided_dims.h"

namespace zg {

template <int kOperands>
class BroadcastBlocks {
 public:
  // `bytes`: sizes of the operands' elements.
  BroadcastBlocks(const Shape& result, const Shape* const (&operands)[kOperands],
                  const int64_t (&bytes)[kOperands])
      : dims_(BroadcastDims<kOperands>(result, operands)), num_elements_(result.num_elements()) {
    std::copy_n(bytes, kOperands, bytes_);
    for (int i = 0; i < kOperands; ++i) {
      own_dims_[i] = dims_.Of(i);
      const int64_t* const strides = dims_.strides[i];
      is_number_[i] = std::all_of(strides, strides + dims_.num_dims,
                                  [](int64_t stride) { return stride == 0; });
      is_whole_[i] = true;
      int64_t contiguous = 1;
      for (int dim = dims_.num_dims - 1; dim >= 0; contiguous *= dims_.sizes[dim--]) {
        is_whole_[i] &= strides[dim] == contiguous;
      }
    }
  }

  // For so many threads.
  int64_t workspace_bytes(int threads) const {
    return WorkspaceBytes(NumSharing(threads, num_elements_, kElementUnit, 1), BytesOfOne());
  }

  // Calls run(operands, begin, count) for each block [begin, begin + count) of the result.
  template <typename Run>
  void ForEach(const KernelArguments& arguments, const Run& run) const {
    ForRanges(arguments.threads, num_elements_, kElementUnit, 1,
              [&](int64_t begin, int64_t end, int thread) {
                ForEachIn(begin, end, arguments.inputs,
                          WorkspaceOf(thread, arguments.workspace, BytesOfOne()), run);
              });
  }

 private:
  // Contiguous elements of a result: rows of at least this length are computed directly from the
  // operands, shorter ones are first gathered into blocks.
  static constexpr int64_t kLongRow = 256;

  int64_t BytesOfOne() const {
    int64_t bytes = 0;
    for (const int64_t of_element : bytes_) bytes += kElementwiseBlock * of_element;
    return bytes;
  }

  template <typename Run>
  void ForEachIn(int64_t begin, int64_t end, const void* const* inputs, void* workspace,
                 const Run& run) const {
    const int last = dims_.num_dims - 1;
    const int64_t row = dims_.sizes[last];
    const bool by_rows = row >= kLongRow;
    int64_t repeated[kOperands] = {};  // how often a number is in its block
    while (begin < end) {
      int64_t count = std::min(kElementwiseBlock, end - begin);
      if (by_rows) count = std::min(count, row - begin % row);
      const void* operands[kOperands];
      char* block = static_cast<char*>(workspace);
      for (int i = 0; i < kOperands; ++i) {
        // It is contiguous everywhere, or inside a row.
        if (is_whole_[i] || (by_rows && dims_.strides[i][last] == 1)) {
          operands[i] = static_cast<const char*>(inputs[i]) + dims_.OffsetOf(i, begin) * bytes_[i];
        } else {
          if (repeated[i] < count) Gather(i, inputs[i], begin, count, block);
          if (is_number_[i]) repeated[i] = std::max(repeated[i], count);
          operands[i] = block;
        }
        block += kElementwiseBlock * bytes_[i];
      }
      run(operands, begin, count);
      begin += count;
    }
  }

  void Gather(int operand, const void* data, int64_t begin, int64_t count, char* block) const {
    WithElements(bytes_[operand], [&](auto zero) {
      using T = decltype(zero);
      GatherElements(own_dims_[operand], 0, static_cast<const T*>(data), begin, count,
                     reinterpret_cast<T*>(block));
    });
  }

  const StridedDims<kOperands> dims_;
  StridedDims<1> own_dims_[kOperands];
  const int64_t num_elements_;
  int64_t bytes_[kOperands];
  bool is_number_[kOperands];  // one element that is repeated everywhere
  bool is_whole_[kOperands];   // all elements of the result, in its order
};

}  // namespace zg
