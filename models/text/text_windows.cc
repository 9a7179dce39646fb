#include "models/text/text_windows.h"

#include <algorithm>
#include <utility>

namespace zg::models {

StatusOr<int64_t> ValidationRounds(const TokenDataset& data, int64_t context, int64_t rows,
                                   int64_t windows) {
  const auto available = static_cast<int64_t>(data.num_windows(static_cast<int>(context)));
  if (available < rows) {
    return InvalidArgument(
        "--data: {}: {} validation contexts of {} tokens, expected at least {} (--batch times the "
        "ranks); give more data, a smaller --batch or a smaller --context",
        data.name(), available, context, rows);
  }
  return std::max<int64_t>(1, std::min(windows, available) / rows);
}

StatusOr<TextWindows> TextWindows::Create(const Job& job, TokenSplit data, int64_t context,
                                          int64_t eval_windows) {
  const int64_t rows = job.options().batch * job.num_data_ranks();
  ZG_ASSIGN_OR_RETURN(const int64_t rounds,
                      ValidationRounds(data.validation, context, rows, eval_windows));
  return TextWindows(job, std::move(data), context, rounds);
}

TextWindows::TextWindows(const Job& job, TokenSplit data, int64_t context, int64_t rounds)
    : job_(&job),
      data_(std::move(data)),
      context_(static_cast<int>(context)),
      training_context_(context_),
      batch_(job.options().batch),
      rounds_(rounds) {}

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

Status TextWindows::Take(int64_t round) {
  ResizeRows(context_);
  return data_.validation.FillWindows(FirstWindow(round), static_cast<int>(batch_), context_,
                                      x_.data(), y_.data());
}

int64_t TextWindows::FirstWindow(int64_t round) const {
  return round * rows_per_round() + job_->data_rank() * batch_;
}

Status TextWindows::Feed(Trainer& trainer, int64_t step, int64_t micro_batch) {
  ZG_RETURN_IF_ERROR(Draw(step, micro_batch));
  return trainer.feed({{"x", x_}, {"y", y_}});
}

StatusOr<double> TextWindows::ValidationLoss(Trainer& trainer) {
  double sum = 0.0;
  for (int64_t round = 0; round < rounds_; ++round) {
    ZG_RETURN_IF_ERROR(Take(round));
    ZG_RETURN_IF_ERROR(trainer.eval("validate", {{"x", x_}, {"y", y_}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> loss, trainer.result("validate"));
    sum += loss[0];
  }
  return sum / static_cast<double>(rounds_);
}

}  // namespace zg::models
