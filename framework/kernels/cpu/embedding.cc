#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

Status IdOutOfRange(const char* op, int64_t position, int64_t id, int64_t rows) {
  return InvalidArgument("{}: the id at position {} is {}, the table has rows 0 to {}", op,
                         position, id, rows - 1);
}

// y[i, :] = table[ids[i], :].
class Embedding : public Kernel {
 public:
  explicit Embedding(const KernelSpec& spec)
      : rows_(spec.call.inputs[0].shape.dim(0)),
        columns_(spec.call.inputs[0].shape.dim(1)),
        num_ids_(spec.call.inputs[1].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const float* const table = arguments.input<float>(0);
    const int64_t* const ids = arguments.input<int64_t>(1);
    float* const y = arguments.output<float>(0);
    for (int64_t i = 0; i < num_ids_; ++i) {
      if (ids[i] < 0 || ids[i] >= rows_) return IdOutOfRange("embedding", i, ids[i], rows_);
      std::memcpy(y + i * columns_, table + ids[i] * columns_, columns_ * sizeof(float));
    }
    return Status::Ok();
  }

 private:
  const int64_t rows_;
  const int64_t columns_;
  const int64_t num_ids_;
};

// dtable[v, :] = sum of dy[i, :] over the positions i with ids[i] = v, in ascending order.
class EmbeddingGrad : public Kernel {
 public:
  explicit EmbeddingGrad(const KernelSpec& spec)
      : rows_(spec.outputs[0].shape.dim(0)),
        columns_(spec.outputs[0].shape.dim(1)),
        num_ids_(spec.call.inputs[1].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const float* const dy = arguments.input<float>(0);
    const int64_t* const ids = arguments.input<int64_t>(1);
    float* const dtable = arguments.output<float>(0);
    std::fill_n(dtable, rows_ * columns_, 0.0f);
    for (int64_t i = 0; i < num_ids_; ++i) {
      if (ids[i] < 0 || ids[i] >= rows_) return IdOutOfRange("embedding_grad", i, ids[i], rows_);
      float* const row = dtable + ids[i] * columns_;
      const float* const inputs[] = {row, dy + i * columns_};
      add_->run(inputs, 0.0f, columns_, row);
    }
    return Status::Ok();
  }

 private:
  const ElementwiseOp* const add_ = FindElementwiseOp("add");
  const int64_t rows_;
  const int64_t columns_;
  const int64_t num_ids_;
};

}  // namespace

void RegisterEmbeddingKernels(KernelRegistry& registry) {
  registry.Register("embedding", MakeKernel<Embedding>);
  registry.Register("embedding_grad", MakeKernel<EmbeddingGrad>);
}

}  // namespace zg
