// The windows of a demo's text for its ranks: `context` tokens and the token after each. Training
// draws windows at random; validation takes the first ones in order, in rounds of one window per
// row (--batch) of every rank. Its results depend on neither: a row of the last round for which no window
// is left repeats the last one, and does not count.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/io/token_dataset.h"
#include "zerograph/zerograph.h"

namespace zg::models {

// The number of windows of `context` tokens to validate on: at most `wanted`. Error: the data have none.
StatusOr<int64_t> NumValidationWindows(const TokenDataset& data, int64_t context, int64_t wanted);

// The losses of windows, (B): means over their tokens. logits (B, T, V), targets (B, T).
Var WindowLosses(Var logits, Var targets, const ClassLossOptions& options = {});

class TextWindows {
 public:
  // Validates on at most `eval_windows` windows. Error: as in NumValidationWindows; it is reported
  // before the training, which would otherwise end with it. `job` must outlive the result.
  static StatusOr<TextWindows> Create(const Job& job, TokenSplit data, int64_t context,
                                      int64_t eval_windows);

  const TokenSplit& data() const { return data_; }
  int64_t validation_windows() const { return validation_windows_; }
  int64_t validation_tokens() const { return validation_windows_ * context_; }

  // The tokens and their successors, both (--batch, the context), that were drawn last.
  const std::vector<int64_t>& x() const { return x_; }
  const std::vector<int64_t>& y() const { return y_; }

  // The context of the windows that are drawn from now on, at most that of validation.
  void set_training_context(int64_t context) { training_context_ = static_cast<int>(context); }

  // Draws windows for training, as a function of the seed. Steps are counted from 1. FirstDraw is
  // the number of the first row among all rows ever drawn.
  Status Draw(int64_t step, int64_t micro_batch);
  int64_t FirstDraw(int64_t step, int64_t micro_batch) const;

  // Draws and feeds the inputs "x" and "y".
  Status Feed(Trainer& trainer, int64_t step, int64_t micro_batch);

  // The means over the validation windows of results of the program "validate", which are (--batch): one
  // number for each window. `inputs` makes its inputs from x() and y(), whose first row is the given window
  // of all. Every rank must call this; valid on rank 0.
  using EvalInputs = std::function<std::vector<NamedData>(int64_t first_window)>;
  StatusOr<std::vector<double>> Validate(Trainer& trainer, const std::vector<std::string>& results,
                                         const EvalInputs& inputs);
  // The same for the only result of a program with the inputs "x" and "y": the loss, in nats per token.
  StatusOr<double> ValidationLoss(Trainer& trainer);

 private:
  TextWindows(const Job& job, TokenSplit data, int64_t context, int64_t validation_windows);
  void ResizeRows(int context);
  Status TakeFrom(int64_t first_window);

  const Job* job_;
  TokenSplit data_;
  int context_;
  int training_context_;
  int64_t batch_;
  int64_t validation_windows_;
  std::vector<int64_t> x_;
  std::vector<int64_t> y_;
};

}  // namespace zg::models
