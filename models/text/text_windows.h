// The windows of a demo's text for its ranks: `context` tokens and the token after each. Training
// draws windows at random; validation takes the first ones in order, in rounds of one window per
// row (--batch) of every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/token_dataset.h"
#include "framework/job/job.h"
#include "framework/train/trainer.h"

namespace zg::models {

// Rounds of `rows` windows (--batch times the ranks) out of at most `windows` windows of `context`
// tokens, at least one round. Error: the data have too few windows.
StatusOr<int64_t> ValidationRounds(const TokenDataset& data, int64_t context, int64_t rows,
                                   int64_t windows);

class TextWindows {
 public:
  // Validates on at most `eval_windows` windows. Error: as in ValidationRounds; it is reported
  // before the training, which would otherwise end with it. `job` must outlive the result.
  static StatusOr<TextWindows> Create(const Job& job, TokenSplit data, int64_t context,
                                      int64_t eval_windows);

  const TokenSplit& data() const { return data_; }
  int64_t rounds() const { return rounds_; }
  int64_t rows_per_round() const { return batch_ * job_->num_data_ranks(); }
  int64_t validation_tokens() const { return rounds_ * rows_per_round() * context_; }

  // The tokens and their successors, both (--batch, the context), of the last call of Draw or Take.
  const std::vector<int64_t>& x() const { return x_; }
  const std::vector<int64_t>& y() const { return y_; }

  // The context of the windows that are drawn from now on, at most that of validation.
  void set_training_context(int64_t context) { training_context_ = static_cast<int>(context); }

  // Draws windows for training, as a function of the seed. Steps are counted from 1. FirstDraw is
  // the number of the first row among all rows ever drawn.
  Status Draw(int64_t step, int64_t micro_batch);
  int64_t FirstDraw(int64_t step, int64_t micro_batch) const;

  // Takes this rank's windows of a round. FirstWindow is the number of the first row among all
  // windows.
  Status Take(int64_t round);
  int64_t FirstWindow(int64_t round) const;

  // Draws and feeds the inputs "x" and "y".
  Status Feed(Trainer& trainer, int64_t step, int64_t micro_batch);
  // The mean result of the program "validate" over all rounds, in nats per token.
  StatusOr<double> ValidationLoss(Trainer& trainer);

 private:
  TextWindows(const Job& job, TokenSplit data, int64_t context, int64_t rounds);
  void ResizeRows(int context);

  const Job* job_;
  TokenSplit data_;
  int context_;
  int training_context_;
  int64_t batch_;
  int64_t rounds_;
  std::vector<int64_t> x_;
  std::vector<int64_t> y_;
};

}  // namespace zg::models
