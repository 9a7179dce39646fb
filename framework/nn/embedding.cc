#include "framework/nn/embedding.h"

#include <limits>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/extremes.h"
#include "framework/nn/reductions.h"
#include "framework/nn/shapes.h"

namespace zg::nn {

Embedding::Embedding(const Module* parent, const std::string& name, int64_t rows, int64_t channels,
                     const EmbeddingOptions& options)
    : Module(parent, name),
      weight(this, "weight", {rows, channels},
             Initializer::Normal(options.std).WithZeroRow(options.padding_idx.value_or(-1))),
      padding_idx_(options.padding_idx) {}

namespace {

Status CheckPadding(const Parameter& weight, int64_t padding_idx) {
  const int64_t num_rows = weight.shape().dim(0);
  if (padding_idx >= 0 && padding_idx < num_rows) return Status::Ok();
  return InvalidArgument("padding_idx: got {}, expected one of the rows 0 to {}", padding_idx,
                         num_rows - 1);
}

Var IsPadding(Var ids, int64_t padding_idx) { return equal(ids, static_cast<double>(padding_idx)); }

}  // namespace

Var Embedding::forward(Var ids) {
  const Var rows = embedding(ids, weight);
  if (!padding_idx_) return rows;
  if (const Status fits = CheckPadding(weight, *padding_idx_); !fits.ok()) return fail(fits);
  return where(unsqueeze(IsPadding(ids, *padding_idx_), -1), stop_gradient(rows), rows);
}

EmbeddingBag::EmbeddingBag(const Module* parent, const std::string& name, int64_t rows,
                           int64_t channels, BagMode mode, const EmbeddingOptions& options)
    : Module(parent, name),
      weight(this, "weight", {rows, channels},
             Initializer::Normal(options.std).WithZeroRow(options.padding_idx.value_or(-1))),
      mode_(mode),
      padding_idx_(options.padding_idx) {}

Var EmbeddingBag::operator()(Var ids, Var weights) {
  Scope scope(*this);
  return forward(ids, weights);
}

Var EmbeddingBag::forward(Var ids, Var weights) {
  return Checked("EmbeddingBag", ids, [&]() -> StatusOr<Var> {
    if (ids.shape().num_dims() == 0 || ids.dim(-1) == 0) {
      return InvalidArgument("{}: expected bags of at least one id", Caller("EmbeddingBag", ids));
    }
    if (!weights.empty() && (mode_ != BagMode::kSum || weights.shape() != ids.shape())) {
      return InvalidArgument(
          "{}: got weights {}, expected them for a sum only, and one for each id",
          Caller("EmbeddingBag", ids), weights.shape().ToString());
    }
    Var rows = embedding(ids, weight);
    if (!weights.empty()) rows = rows * unsqueeze(weights, -1);
    if (!padding_idx_) {
      if (mode_ == BagMode::kMax) return max(rows, -2);
      return mode_ == BagMode::kMean ? mean(rows, -2) : sum(rows, -2);
    }
    ZG_RETURN_IF_ERROR(CheckPadding(weight, *padding_idx_));
    const Var is_padding = unsqueeze(IsPadding(ids, *padding_idx_), -1);
    const Var count = sum(to(logical_not(is_padding), DType::kF32), -2);
    if (mode_ == BagMode::kMax) {
      constexpr double kLowest = -std::numeric_limits<float>::infinity();
      return where(count > 0.0, max(masked_fill(rows, is_padding, kLowest), -2), 0.0);
    }
    const Var total = sum(masked_fill(rows, is_padding, 0.0), -2);
    return mode_ == BagMode::kMean ? total / clamp_min(count, 1.0) : total;
  });
}

}  // namespace zg::nn
