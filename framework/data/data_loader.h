// DataLoader: the micro-batches of one rank, prepared in advance by a thread of its own.
//
//   struct Batch { std::vector<float> x; std::vector<int64_t> y; };
//   DataLoader<Batch> loader(order, first_micro_batch, per_rank, [&](const MicroBatch& from, Batch* to) {
//     ...  // copies samples from.samples into rows 0 .. from.num_real() - 1 of `to`
//     return Status::Ok();
//   });
//   training.step([&](int64_t micro_batch) {
//     const StatusOr<const Batch*> batch = loader.load(training.step_number() - 1, micro_batch);
//     ...
//   });
//
// The content of a batch depends only on the step and the micro-batch: to resume in the middle of
// an epoch, ask for the next step. Requests out of order are correct too, but are not prefetched.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "framework/base/status.h"
#include "framework/data/prefetch_queue.h"
#include "framework/data/sample_order.h"

namespace zg {

template <typename Batch>
class DataLoader {
 public:
  // Fills `to`, which may hold an older batch. Runs on the loader's thread, one call at a time.
  // load() returns its error.
  using Fill = std::function<Status(const MicroBatch& from, Batch* to)>;

  // This rank asks for `per_rank` micro-batches of a step: `first_micro_batch`, and then every
  // `distance`-th, like a Trainer on as many ranks. At most `depth` batches are prepared in
  // advance.
  DataLoader(SampleOrder order, int64_t first_micro_batch, int64_t per_rank, Fill fill,
             int depth = 2, int64_t distance = 1)
      : order_(std::move(order)),
        first_micro_batch_(first_micro_batch),
        per_rank_(per_rank),
        distance_(distance),
        fill_(std::move(fill)),
        depth_(depth) {
    if (first_micro_batch < 0 || per_rank < 1 || distance < 1 || !AreInStep()) {
      status_ = InvalidArgument(
          "data: got {} micro-batches from {} on, each {} behind the one before, expected some of the "
          "{} of a step",
          per_rank, first_micro_batch, distance, order_.options().micro_batches);
    } else if (depth < 1) {
      status_ = InvalidArgument("data: got a depth of {}, expected at least 1", depth);
    } else if (!fill_) {
      status_ = InvalidArgument("data: got an empty function that fills batches");
    }
  }

  DataLoader(const DataLoader&) = delete;

  const SampleOrder& order() const { return order_; }

  // The batch of `micro_batch`, one of this rank's, in step `step`, counted from 0. It does not
  // change until the next call. Errors: what was given to the constructor cannot be; another rank's
  // micro-batch, or none of a step; that of Fill.
  StatusOr<const Batch*> load(int64_t step, int64_t micro_batch) {
    ZG_RETURN_IF_ERROR(status_);
    const int64_t in_rank =
        micro_batch < first_micro_batch_ ? -1 : (micro_batch - first_micro_batch_) / distance_;
    const bool is_own = in_rank >= 0 && in_rank < per_rank_ && micro_batch == MicroBatchOf(in_rank);
    if (!is_own || step < 0 || step > std::numeric_limits<int64_t>::max() / per_rank_ - 1) {
      return InvalidArgument(
          "data: got micro-batch {} of step {}, expected one of this rank's {} from {} on, each {} "
          "behind the one before",
          micro_batch, step, per_rank_, first_micro_batch_, distance_);
    }
    const int64_t index = step * per_rank_ + in_rank;
    if (queue_ == nullptr || index != next_index_) {
      queue_.reset();  // ends its thread before the next one begins
      queue_ = std::make_unique<PrefetchQueue<Batch>>(
          index, depth_, [this](int64_t at, Batch* to) { return Make(at, to); });
    }
    next_index_ = index + 1;
    return queue_->Next();
  }

 private:
  Status Make(int64_t index, Batch* to) {
    return fill_(order_.at(index / per_rank_, MicroBatchOf(index % per_rank_)), to);
  }

  // Whether its micro-batches are those of a step, computed without overflow.
  bool AreInStep() const {
    const int64_t last = order_.options().micro_batches - 1;
    return first_micro_batch_ <= last && per_rank_ - 1 <= (last - first_micro_batch_) / distance_;
  }

  int64_t MicroBatchOf(int64_t in_rank) const { return first_micro_batch_ + in_rank * distance_; }

  SampleOrder order_;
  int64_t first_micro_batch_;
  int64_t per_rank_;
  int64_t distance_;
  Fill fill_;
  int depth_;
  Status status_;           // of the constructor
  int64_t next_index_ = 0;  // among all micro-batches that this rank asks for
  std::unique_ptr<PrefetchQueue<Batch>> queue_;
};

}  // namespace zg
