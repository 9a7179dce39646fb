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

void TextWindows::ResizeRows(int64_t rows, int context) {
  x_.resize(rows * context);
  y_.resize(rows * context);
}

Status TextWindows::Draw(int64_t step, int64_t micro_batch) {
  ResizeRows(batch_, training_context_);
  return data_.train.FillBatch(job_->options().seed, FirstDraw(step, micro_batch) / batch_,
                               static_cast<int>(batch_), training_context_, x_.data(), y_.data());
}

int64_t TextWindows::FirstDraw(int64_t step, int64_t micro_batch) const {
  return ((step - 1) * job_->options().compile.micro_batches + micro_batch) * batch_;
}

Status TextWindows::Feed(Trainer& trainer, int64_t step, int64_t micro_batch) {
  ZG_RETURN_IF_ERROR(Draw(step, micro_batch));
  return trainer.feed({{"x", x_}, {"y", y_}});
}

std::vector<TextWindows::Groups> TextWindows::AllGroups() const {
  const int64_t whole = validation_windows_ / batch_, rest = validation_windows_ % batch_;
  std::vector<Groups> all;
  if (whole > 0) all.push_back({"validate", 0, batch_, whole});
  if (rest > 0) all.push_back({"validate_rest", whole * batch_, 1, rest});
  return all;
}

void TextWindows::AddPrograms(Graph& graph,
                              const std::function<Outputs(Inputs& in, int64_t rows)>& build) const {
  for (const Groups& groups : AllGroups()) {
    graph.eval(groups.program, [&](Inputs& in) {
      const Outputs means = build(in, groups.rows);
      Outputs of_ranks{};  // a scalar would be the mean over all ranks
      for (const auto& [name, mean] : means.items()) {
        of_ranks = std::move(of_ranks).with(name, reshape(mean, {1}));
      }
      return of_ranks;
    });
  }
}

StatusOr<std::vector<double>> TextWindows::Validate(Trainer& trainer,
                                                    const std::vector<std::string>& results,
                                                    const EvalInputs& inputs) {
  std::vector<double> means(results.size(), 0.0);
  const int64_t ranks = job_->num_data_ranks();
  for (const Groups& groups : AllGroups()) {
    ResizeRows(groups.rows, context_);
    for (int64_t first = 0; first < groups.count; first += ranks) {
      const int64_t own = std::min(first + job_->data_rank(), groups.count - 1);
      const int64_t window = groups.first_window + own * groups.rows;
      ZG_RETURN_IF_ERROR(data_.validation.FillWindows(window, static_cast<int>(groups.rows),
                                                      context_, x_.data(), y_.data()));
      ZG_RETURN_IF_ERROR(trainer.eval(groups.program, inputs(window)));
      const int64_t counted = std::min(ranks, groups.count - first);
      for (size_t i = 0; i < results.size(); ++i) {
        ZG_ASSIGN_OR_RETURN(const std::vector<float> of_ranks,
                            trainer.result(groups.program, results[i]));
        if (trainer.executor().communicator().rank() != 0) continue;
        for (int64_t rank = 0; rank < counted; ++rank) {
          means[i] += static_cast<double>(of_ranks[rank]) * static_cast<double>(groups.rows) /
                      static_cast<double>(validation_windows_);
        }
      }
    }
  }
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
