#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "framework/kernels/cpu/gemm_shared.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/parted_dim.h"

namespace zg {
namespace {

// The rows of each group, in ascending order: those of group g are rows[begins[g]], ...,
// rows[begins[g + 1] - 1].
struct RowLists {
  int64_t* begins;  // groups + 1
  int64_t* rows;

  static int64_t Bytes(int64_t groups, int64_t rows) {
    return WholeLines((groups + 1 + rows) * static_cast<int64_t>(sizeof(int64_t)));
  }
  int64_t count(int64_t group) const { return begins[group + 1] - begins[group]; }
};

// In `scratch`, of RowLists::Bytes(). Rows of groups in other parts are in no list.
StatusOr<RowLists> ListRows(const char* op, const int64_t* ids, int64_t num_rows,
                            const PartedDim& groups, void* scratch) {
  RowLists lists;
  lists.begins = static_cast<int64_t*>(scratch);
  lists.rows = lists.begins + groups.size + 1;
  std::fill_n(lists.begins, groups.size + 1, 0);
  for (int64_t i = 0; i < num_rows; ++i) {
    if (ids[i] < 0 || ids[i] >= groups.Total()) {
      return InvalidArgument("{}: the id of row {} is {}, there are matrices 0 to {}", op, i,
                             ids[i], groups.Total() - 1);
    }
    const int64_t group = groups.Find(ids[i]);
    if (group >= 0) ++lists.begins[group];
  }
  // First the end of each list, then, from the last row on, its begin.
  for (int64_t group = 1; group <= groups.size; ++group) {
    lists.begins[group] += lists.begins[group - 1];
  }
  for (int64_t i = num_rows - 1; i >= 0; --i) {
    const int64_t group = groups.Find(ids[i]);
    if (group >= 0) lists.rows[--lists.begins[group]] = i;
  }
  return lists;
}

// Products with any number of rows up to `most`, some of which take a few more, so that few are made
// beforehand. The bits of a product do not depend on that.
class GemmsByRows {
 public:
  // `rows` is the size that varies.
  GemmsByRows(GemmSizes sizes, int64_t GemmSizes::*rows, int64_t most, int threads) {
    for (int64_t count = 1; counts_.empty() || counts_.back() < most; count += Step(count)) {
      sizes.*rows = count;
      counts_.push_back(count);
      gemms_.emplace_back(sizes, threads);
      workspace_bytes_ = std::max(workspace_bytes_, gemms_.back().workspace_bytes());
    }
  }

  int64_t most() const { return counts_.back(); }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // The number of rows of the product that takes `count`.
  int64_t CountFor(int64_t count) const { return counts_[IndexOf(count)]; }
  const SharedGemm& For(int64_t count) const { return gemms_[IndexOf(count)]; }

 private:
  // At most an eighth more than needed.
  static int64_t Step(int64_t count) {
    int64_t step = 1;
    while (16 * step <= count) step *= 2;
    return step;
  }
  size_t IndexOf(int64_t count) const {
    return std::lower_bound(counts_.begin(), counts_.end(), count) - counts_.begin();
  }

  std::vector<int64_t> counts_;
  std::vector<SharedGemm> gemms_;
  int64_t workspace_bytes_ = 0;
};

// Copies `count` rows side by side, then zeros up to `filled` rows.
void GatherRows(const char* from, const int64_t* rows, int64_t count, int64_t filled,
                int64_t row_bytes, char* to) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * row_bytes, from + rows[i] * row_bytes, row_bytes);
  }
  std::memset(to + count * row_bytes, 0, (filled - count) * row_bytes);
}

GemmSizes SizesOfRows(const ir::OpCall& call, int64_t columns) {
  GemmSizes sizes;
  sizes.k = call.inputs[0].shape.dim(1);
  sizes.n = columns;
  sizes.transpose_b = call.attributes.Bool("transposed");
  sizes.dtype = call.inputs[0].dtype;
  return sizes;
}

// The rows of a group are gathered, multiplied, and scattered; at most kMostRows at a time.
class GroupedMatmul : public Kernel {
 public:
  explicit GroupedMatmul(const KernelSpec& spec)
      : groups_(PartedDim::Of(spec.call, 3, spec.call.inputs[1].shape.dim(0))),
        rows_(spec.call.inputs[0].shape.dim(0)),
        depth_(spec.call.inputs[0].shape.dim(1)),
        columns_(spec.outputs[0].shape.dim(1)),
        element_bytes_(SizeOf(spec.outputs[0].dtype)),
        transposed_(spec.call.attributes.Bool("transposed")),
        gemms_(SizesOfRows(spec.call, columns_), &GemmSizes::m,
               std::clamp<int64_t>(rows_, 1, kMostRows), spec.threads) {}

  int64_t workspace_bytes() const override {
    return RowLists::Bytes(groups_.size, rows_) + BytesOfX() +
           WholeLines(gemms_.most() * columns_ * element_bytes_) + gemms_.workspace_bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    char* const scratch = static_cast<char*>(arguments.workspace);
    char* const x = scratch + RowLists::Bytes(groups_.size, rows_);
    char* const y = x + BytesOfX();
    char* const of_gemm = y + WholeLines(gemms_.most() * columns_ * element_bytes_);
    ZG_ASSIGN_OR_RETURN(const RowLists lists,
                        ListRows("grouped_matmul", arguments.input<int64_t>(2), rows_,
                                 groups_.At(arguments, 3), scratch));
    const int64_t x_bytes = depth_ * element_bytes_, y_bytes = columns_ * element_bytes_;
    char* const result = arguments.output<char>(0);
    if (groups_.num_parts > 1) std::memset(result, 0, rows_ * y_bytes);
    for (int64_t group = 0; group < groups_.size; ++group) {
      const GemmOperand matrix = {
          arguments.input<char>(1) + group * depth_ * columns_ * element_bytes_,
          transposed_ ? depth_ : columns_};
      for (int64_t done = 0; done < lists.count(group); done += kMostRows) {
        const int64_t* const rows = lists.rows + lists.begins[group] + done;
        const int64_t count = std::min(kMostRows, lists.count(group) - done);
        GatherRows(arguments.input<char>(0), rows, count, gemms_.CountFor(count), x_bytes, x);
        gemms_.For(count).Run({x, depth_}, matrix, nullptr, y, columns_, of_gemm,
                              arguments.threads);
        for (int64_t i = 0; i < count; ++i) {
          std::memcpy(result + rows[i] * y_bytes, y + i * y_bytes, y_bytes);
        }
      }
    }
    return Status::Ok();
  }

 private:
  static constexpr int64_t kMostRows = 1024;

  int64_t BytesOfX() const { return WholeLines(gemms_.most() * depth_ * element_bytes_); }

  const PartedDim groups_;
  const int64_t rows_;
  const int64_t depth_;
  const int64_t columns_;
  const int64_t element_bytes_;
  const bool transposed_;
  const GemmsByRows gemms_;
};

GemmSizes SizesOfSums(const ir::OpCall& call) {
  GemmSizes sizes;
  sizes.m = call.inputs[0].shape.dim(1);
  sizes.n = call.inputs[1].shape.dim(1);
  sizes.transpose_a = true;
  sizes.dtype = call.inputs[0].dtype;
  return sizes;
}

// All rows of a group are gathered, so that each sum is rounded once.
class GroupedMatmulGrad : public Kernel {
 public:
  explicit GroupedMatmulGrad(const KernelSpec& spec)
      : groups_(PartedDim::Of(spec.call, 3, spec.outputs[0].shape.dim(0))),
        rows_(spec.call.inputs[0].shape.dim(0)),
        a_bytes_(spec.call.inputs[0].shape.dim(1) * SizeOf(spec.outputs[0].dtype)),
        b_bytes_(spec.call.inputs[1].shape.dim(1) * SizeOf(spec.outputs[0].dtype)),
        sizes_(SizesOfSums(spec.call)),
        gemms_(sizes_, &GemmSizes::k, std::max<int64_t>(1, rows_), spec.threads) {}

  int64_t workspace_bytes() const override {
    return RowLists::Bytes(groups_.size, rows_) + WholeLines(gemms_.most() * a_bytes_) +
           WholeLines(gemms_.most() * b_bytes_) + gemms_.workspace_bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    char* const scratch = static_cast<char*>(arguments.workspace);
    char* const a = scratch + RowLists::Bytes(groups_.size, rows_);
    char* const b = a + WholeLines(gemms_.most() * a_bytes_);
    char* const of_gemm = b + WholeLines(gemms_.most() * b_bytes_);
    ZG_ASSIGN_OR_RETURN(const RowLists lists,
                        ListRows("grouped_matmul_grad", arguments.input<int64_t>(2), rows_,
                                 groups_.At(arguments, 3), scratch));
    const int64_t matrix_bytes = sizes_.m * b_bytes_;
    for (int64_t group = 0; group < groups_.size; ++group) {
      char* const y = arguments.output<char>(0) + group * matrix_bytes;
      const int64_t count = lists.count(group);
      if (count == 0) {
        std::memset(y, 0, matrix_bytes);
        continue;
      }
      const int64_t* const rows = lists.rows + lists.begins[group];
      const int64_t filled = gemms_.CountFor(count);
      GatherRows(arguments.input<char>(0), rows, count, filled, a_bytes_, a);
      GatherRows(arguments.input<char>(1), rows, count, filled, b_bytes_, b);
      gemms_.For(count).Run({a, sizes_.m}, {b, sizes_.n}, nullptr, y, sizes_.n, of_gemm,
                            arguments.threads);
    }
    return Status::Ok();
  }

 private:
  const PartedDim groups_;
  const int64_t rows_;
  const int64_t a_bytes_;
  const int64_t b_bytes_;
  const GemmSizes sizes_;
  const GemmsByRows gemms_;
};

}  // namespace

void RegisterGroupedMatmulKernels(KernelRegistry& registry) {
  registry.Register("grouped_matmul", MakeKernel<GroupedMatmul>);
  registry.Register("grouped_matmul_grad", MakeKernel<GroupedMatmulGrad>);
}

}  // namespace zg
