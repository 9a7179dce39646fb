#include "framework/nn/embedding.h"

#include "framework/nn/conditions.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

Embedding::Embedding(const Module* parent, const std::string& name, int64_t rows, int64_t channels,
                     const EmbeddingOptions& options)
    : Module(parent, name),
      weight(this, "weight", {rows, channels}, Initializer::Normal(options.std)),
      padding_idx_(options.padding_idx) {}

Var Embedding::forward(Var ids) {
  const Var rows = embedding(ids, weight);
  if (!padding_idx_) return rows;
  const int64_t num_rows = weight.shape().dim(0);
  if (*padding_idx_ < 0 || *padding_idx_ >= num_rows) {
    return fail(InvalidArgument("padding_idx: got {}, expected one of the rows 0 to {}",
                                *padding_idx_, num_rows - 1));
  }
  const Var is_padding = equal(ids, static_cast<double>(*padding_idx_));
  return masked_fill(rows, unsqueeze(is_padding, -1), 0.0);
}

}  // namespace zg::nn
