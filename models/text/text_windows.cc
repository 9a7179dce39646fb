#include "models/text/text_windows.h"

#include <algorithm>
#include <utility>

namespace zg::models {

StatusOr<int64_t> NumValidationWindows(const TokenDataset& data, int64_t context, int64_t wanted) {
  const auto available = static_cast<int64_t>(data.num_windows(static_cast<int>(context)));
  if (available > 0) return std::min(wanted, available);
  return InvalidArgument(
      "--data: {}: {} tokens for validation, expected at least one context of {} tokens and the token "
      "after it; give more data, a larger --validation-fraction or a smaller --context",
      data.name(), data.size(), context);
}

Var WindowLosses(Var logits, Var targets, const ClassLossOptions& options) {
  ClassLossOptions of_tokens = options;
  of_tokens.reduction = Reduction::kNone;
  const Var losses = cross_entropy(logits, targets, of_tokens);
  const Var counted = to(not_equal(targets, options.ignore_index), DType::kF32);
  return sum(losses, {1}) / sum(counted, {1});
}

StatusOr<TextWindows> TextWindows::Create(const Job& job, TokenSplit data, int64_t context,
                                          int64_t eval_windows) {
  ZG_ASSIGN_OR_RETURN(const int64_t windows,
                      NumValidationWindows(data.validation, context, eval_windows));
  return TextWindows(job, std::move(data), context, windows);
}

TextWindows::TextWindows(const Job& job, TokenSplit data, int64_t context,
                         int64_t validation_windows)
    : job_(&job),
      data_(std::move(data)),
      context_(static_cast<int>(context)),
      training_context_(context_),
      batch_(job.options().batch),
      validation_windows_(validation_windows) {}

void TextWindows::ResizeRows(int context) {
  x_.resize(batch_ * context);
  y_.resize(batch_ * context);
}

Status TextWindows::Draw(int64_t step, int64_t micro_batch) {
  ResizeRows(training_context_);
  return data_.train.FillBatch(job_->options().seed, FirstDraw(step, micro_batch) / batch_,
                               static_cast<int>(batch_), training_context_, x_.data(), y_.data());
}

int64_t TextWindows::FirstDraw(int64_t step, int64_t micro_batch) const {
  return ((step - 1) * job_->options().compile.micro_batches + micro_batch) * batch_;
}

Status TextWindows::TakeFrom(int64_t first_window) {
  ResizeRows(context_);
  for (int64_t row = 0; row < batch_; ++row) {
    const int64_t window = std::min(first_window + row, validation_windows_ - 1);
    const int64_t at = row * context_;
    ZG_RETURN_IF_ERROR(
        data_.validation.FillWindows(window, 1, context_, x_.data() + at, y_.data() + at));
  }
  return Status::Ok();
}

Status TextWindows::Feed(Trainer& trainer, int64_t step, int64_t micro_batch) {
  ZG_RETURN_IF_ERROR(Draw(step, micro_batch));
  return trainer.feed({{"x", x_}, {"y", y_}});
}

StatusOr<std::vector<double>> TextWindows::Validate(Trainer& trainer,
                                                    const std::vector<std::string>& results,
                                                    const EvalInputs& inputs) {
  std::vector<double> means(results.size(), 0.0);
  const int64_t rows = batch_ * job_->num_data_ranks();
  for (int64_t first = 0; first < validation_windows_; first += rows) {
    const int64_t own = first + job_->data_rank() * batch_;
    ZG_RETURN_IF_ERROR(TakeFrom(own));
    ZG_RETURN_IF_ERROR(trainer.eval("validate", inputs(own)));
    const int64_t counted = std::min(rows, validation_windows_ - first);
    for (size_t i = 0; i < results.size(); ++i) {
      ZG_ASSIGN_OR_RETURN(const std::vector<float> values, trainer.result("validate", results[i]));
      if (values.empty()) continue;  // not on rank 0
      for (int64_t row = 0; row < counted; ++row) means[i] += values[row];
    }
  }
  for (double& mean : means) mean /= static_cast<double>(validation_windows_);
  return means;
}

StatusOr<double> TextWindows::ValidationLoss(Trainer& trainer) {
  ZG_ASSIGN_OR_RETURN(const std::vector<double> means,
                      Validate(trainer, {"result"}, [&](int64_t) -> std::vector<NamedData> {
                        return {{"x", x_}, {"y", y_}};
                      }));
  return means[0];
}

}  // namespace zg::models
