// SampleOrder: which samples of a data set form each micro-batch of each step, as a function of the
// seed alone. It does not depend on ranks: micro-batch 3 of a step has the same samples on any
// number of ranks.
//
// An epoch shows every sample once, in an order of its own (permutation.h). It has as many steps as
// all samples need; its last micro-batches may be partly filled or empty.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct SampleOrderOptions {
  uint64_t num_samples = 0;
  int64_t batch = 0;          // samples of one micro-batch
  int64_t micro_batches = 1;  // of one step, over all ranks
  uint64_t seed = 1;
  bool shuffles = true;             // otherwise every epoch is 0, 1, 2, ...
  bool drops_partial_step = false;  // leaves out the samples that do not fill a step
};

struct MicroBatch {
  int64_t epoch = 0;
  std::vector<uint64_t> samples;  // the real ones, at most the batch; the other rows are empty

  int64_t num_real() const { return static_cast<int64_t>(samples.size()); }
  // Weights of the rows of a batch, for weighted_mean: 1 for the real ones, 0 for the rest.
  std::vector<float> weights(int64_t batch) const;
};

// The position of a step in the data, which a checkpoint would keep. A step number is equivalent.
struct DataPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  // index of the step's first sample in the epoch's order
};

class SampleOrder {
 public:
  // Errors: no samples; a batch or a number of micro-batches below 1; with `drops_partial_step` too
  // few samples for one step.
  static StatusOr<SampleOrder> create(const SampleOrderOptions& options);

  const SampleOrderOptions& options() const { return options_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // Steps count from 0, over all epochs. `micro_batch` is below options().micro_batches.
  MicroBatch at(int64_t step, int64_t micro_batch) const;

  DataPosition position_of(int64_t step) const;
  // The step that begins at the position. Error: none does, because the position belongs to another
  // batch size.
  StatusOr<int64_t> step_at(DataPosition position) const;

 private:
  SampleOrder(const SampleOrderOptions& options, int64_t steps_per_epoch)
      : options_(options), steps_per_epoch_(steps_per_epoch) {}

  int64_t samples_per_step() const { return options_.batch * options_.micro_batches; }

  SampleOrderOptions options_;
  int64_t steps_per_epoch_;
};

}  // namespace zg
