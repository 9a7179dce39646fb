// The windows of a demo's text for its ranks: `context` tokens and the token after each. Training
// draws windows at random; validation takes the first ones in order, --batch at a time on each rank, and
// those that are left one by one. A rank for which none is left computes the last ones again, which does
// not count, so that results have the same bits on any number of ranks.
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

class TextWindows {
 public:
  // Validates on at most `eval_windows` windows. Error: as in NumValidationWindows; it is reported
  // before the training, which would otherwise end with it. `job` must outlive the result.
  static StatusOr<TextWindows> Create(const Job& job, TokenSplit data, int64_t context,
                                      int64_t eval_windows);

  const TokenSplit& data() const { return data_; }
  int64_t validation_windows() const { return validation_windows_; }
  int64_t validation_tokens() const { return validation_windows_ * context_; }

  // The tokens and their successors, both (rows, the context), that were drawn last.
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

  // Adds the eval programs of validation to a graph. `build` returns scalars: means over its `rows` windows.
  void AddPrograms(Graph& graph,
                   const std::function<Outputs(Inputs& in, int64_t rows)>& build) const;
  // The means over the validation windows of results of these programs. `inputs` makes their inputs from
  // x() and y(), whose first row is the given window of all. Every rank must call this; valid on rank 0.
  using EvalInputs = std::function<std::vector<NamedData>(int64_t first_window)>;
  StatusOr<std::vector<double>> Validate(Trainer& trainer, const std::vector<std::string>& results,
                                         const EvalInputs& inputs);
  // The same for the only result of programs with the inputs "x" and "y": the loss, in nats per token.
  StatusOr<double> ValidationLoss(Trainer& trainer);

 private:
  TextWindows(const Job& job, TokenSplit data, int64_t context, int64_t validation_windows);
  void ResizeRows(int64_t rows, int context);
  // Validation windows that one program computes, `rows` at a time on each rank.
  struct Groups {
    const char* program;
    int64_t first_window;
    int64_t rows;
    int64_t count;
  };
  std::vector<Groups> AllGroups() const;

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
