#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/parted_dim.h"

namespace zg {
namespace {

Status IdOutOfRange(const char* op, int64_t position, int64_t id, int64_t rows) {
  return InvalidArgument("{}: the id at position {} is {}, the table has rows 0 to {}", op,
                         position, id, rows - 1);
}

// y[i, :] = table[ids[i], :]; 0 for an id in another part.
class Embedding : public Kernel {
 public:
  explicit Embedding(const KernelSpec& spec)
      : rows_(PartedDim::Of(spec.call, 2, spec.call.inputs[0].shape.dim(0))),
        row_bytes_(spec.call.inputs[0].shape.dim(1) * SizeOf(spec.call.inputs[0].dtype)),
        num_ids_(spec.call.inputs[1].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const char* const table = arguments.input<char>(0);
    const int64_t* const ids = arguments.input<int64_t>(1);
    char* const y = arguments.output<char>(0);
    const PartedDim rows = rows_.At(arguments, 2);
    for (int64_t i = 0; i < num_ids_; ++i) {
      if (ids[i] < 0 || ids[i] >= rows.Total()) {
        return IdOutOfRange("embedding", i, ids[i], rows.Total());
      }
    }
    const int64_t row_floats = row_bytes_ / static_cast<int64_t>(sizeof(float));
    ForRanges(arguments.threads, num_ids_, 1, row_floats, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = rows.Find(ids[i]);
        if (row < 0) {
          std::memset(y + i * row_bytes_, 0, row_bytes_);
        } else {
          std::memcpy(y + i * row_bytes_, table + row * row_bytes_, row_bytes_);
        }
      }
    });
    return Status::Ok();
  }

 private:
  const PartedDim rows_;
  const int64_t row_bytes_;
  const int64_t num_ids_;
};

// dtable[v, :] = sum of dy[i, :] over the positions i with ids[i] = v, in ascending order. In 16
// bits a row's sum is in f32: the workspace holds, for each row of the table, its positions as a
// list, then the sum and one term. Threads share the columns.
class EmbeddingGrad : public Kernel {
 public:
  explicit EmbeddingGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        rows_(PartedDim::Of(spec.call, 2, spec.outputs[0].shape.dim(0))),
        columns_(spec.outputs[0].shape.dim(1)),
        num_ids_(spec.call.inputs[1].shape.num_elements()) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return (rows_.size + num_ids_) * static_cast<int64_t>(sizeof(int64_t)) +
           2 * columns_ * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const ids = arguments.input<int64_t>(1);
    const PartedDim rows = rows_.At(arguments, 2);
    for (int64_t i = 0; i < num_ids_; ++i) {
      if (ids[i] < 0 || ids[i] >= rows.Total()) {
        return IdOutOfRange("embedding_grad", i, ids[i], rows.Total());
      }
    }
    if (dtype_ != DType::kF32) ListPositions(ids, rows, arguments.workspace);
    ForRanges(arguments.threads, columns_, kElementUnit, num_ids_ + rows.size,
              [&](int64_t begin, int64_t end, int) {
                if (dtype_ == DType::kF32) {
                  AddColumns(arguments, ids, rows, begin, end - begin);
                } else {
                  AddHalfColumns(arguments, rows, begin, end - begin);
                }
              });
    return Status::Ok();
  }

 private:
  void AddColumns(const KernelArguments& arguments, const int64_t* ids, const PartedDim& rows,
                  int64_t begin, int64_t count) const {
    const float* const dy = arguments.input<float>(0) + begin;
    float* const dtable = arguments.output<float>(0) + begin;
    if (count == columns_) {
      std::fill_n(dtable, rows.size * columns_, 0.0f);
    } else {
      for (int64_t row = 0; row < rows.size; ++row) {
        std::fill_n(dtable + row * columns_, count, 0.0f);
      }
    }
    for (int64_t i = 0; i < num_ids_; ++i) {
      const int64_t at = rows.Find(ids[i]);
      if (at < 0) continue;
      float* const row = dtable + at * columns_;
      const void* const inputs[] = {row, dy + i * columns_};
      add_(inputs, 0.0f, count, row);
    }
  }

  void ListPositions(const int64_t* ids, const PartedDim& rows, void* workspace) const {
    auto* const first = static_cast<int64_t*>(workspace);  // by row; -1: none
    int64_t* const next = first + rows.size;               // by position
    std::fill_n(first, rows.size, -1);
    for (int64_t i = num_ids_ - 1; i >= 0; --i) {
      const int64_t at = rows.Find(ids[i]);
      if (at < 0) continue;
      next[i] = first[at];
      first[at] = i;
    }
  }

  void AddHalfColumns(const KernelArguments& arguments, const PartedDim& rows, int64_t begin,
                      int64_t count) const {
    const int64_t element_bytes = SizeOf(dtype_);
    const char* const dy = arguments.input<char>(0) + begin * element_bytes;
    char* const dtable = arguments.output<char>(0) + begin * element_bytes;
    const auto* const first = static_cast<const int64_t*>(arguments.workspace);
    const int64_t* const next = first + rows.size;
    auto* const sums =
        static_cast<float*>(arguments.workspace) + 2 * (rows.size + num_ids_);  // after the lists
    float* const sum = sums + begin;
    float* const term = sum + columns_;
    const int64_t row_bytes = columns_ * element_bytes;
    for (int64_t row = 0; row < rows.size; ++row) {
      std::fill_n(sum, count, 0.0f);
      for (int64_t i = first[row]; i >= 0; i = next[i]) {
        ConvertFloats(dtype_, dy + i * row_bytes, DType::kF32, term, count);
        const void* const inputs[] = {sum, term};
        add_(inputs, 0.0f, count, sum);
      }
      ConvertFloats(DType::kF32, sum, dtype_, dtable + row * row_bytes, count);
    }
  }

  const ElementwiseFunction add_ = FunctionOf(ElementwiseCode::kAdd, DType::kF32);
  const DType dtype_;
  const PartedDim rows_;
  const int64_t columns_;
  const int64_t num_ids_;
};

}  // namespace

void RegisterEmbeddingKernels(KernelRegistry& registry) {
  registry.Register("embedding", MakeKernel<Embedding>);
  registry.Register("embedding_grad", MakeKernel<EmbeddingGrad>);
}

}  // namespace zg
