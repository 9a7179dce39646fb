#include "framework/data/sample_order.h"

#include <algorithm>
#include <limits>

#include "framework/base/check.h"
#include "framework/data/permutation.h"

namespace zg {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 31;  // their products fit into 64 bits

}  // namespace

StatusOr<SampleOrder> SampleOrder::create(const SampleOrderOptions& options) {
  if (options.num_samples == 0) return InvalidArgument("data: got no sample, expected some");
  for (const int64_t count : {options.batch, options.micro_batches}) {
    if (count >= 1 && count <= kMaxCount) continue;
    return InvalidArgument(
        "data: got micro-batches of {} samples and {} of them in a step, expected "
        "both from 1 to {}",
        options.batch, options.micro_batches, kMaxCount);
  }
  const auto per_step = static_cast<uint64_t>(options.batch * options.micro_batches);
  const uint64_t whole = options.num_samples / per_step;
  const uint64_t rest = options.num_samples % per_step;
  const uint64_t steps = whole + (rest > 0 && !options.drops_partial_step ? 1 : 0);
  if (steps == 0) {
    return InvalidArgument(
        "data: got {} samples, expected at least {} for one step of {} micro-batches of {}",
        options.num_samples, per_step, options.micro_batches, options.batch);
  }
  return SampleOrder(options, static_cast<int64_t>(steps));
}

std::vector<float> MicroBatch::weights(int64_t batch) const {
  ZG_CHECK(batch >= num_real(), "{} samples in a batch of {}", num_real(), batch);
  std::vector<float> weights(samples.size(), 1.0f);
  weights.resize(batch);
  return weights;
}

MicroBatch SampleOrder::at(int64_t step, int64_t micro_batch) const {
  ZG_CHECK(step >= 0 && micro_batch >= 0 && micro_batch < options_.micro_batches,
           "step {}, micro-batch {} of {}", step, micro_batch, options_.micro_batches);
  const DataPosition position = position_of(step);
  MicroBatch result;
  result.epoch = position.epoch;
  const RandomKey key = FoldIn(FoldIn(RandomKey{options_.seed}, "sample order"),
                               static_cast<uint64_t>(position.epoch));
  const Permutation order(key, options_.num_samples);
  const auto begin = static_cast<uint64_t>(position.sample + micro_batch * options_.batch);
  const uint64_t end =
      std::min(begin + static_cast<uint64_t>(options_.batch), options_.num_samples);
  for (uint64_t i = begin; i < end; ++i) {
    result.samples.push_back(options_.shuffles ? order.At(i) : i);
  }
  return result;
}

DataPosition SampleOrder::position_of(int64_t step) const {
  return {step / steps_per_epoch_, step % steps_per_epoch_ * samples_per_step()};
}

StatusOr<int64_t> SampleOrder::step_at(DataPosition position) const {
  const int64_t step = position.sample / samples_per_step();
  if (position.epoch < 0 || position.sample < 0 || position.sample % samples_per_step() != 0 ||
      step >= steps_per_epoch_) {
    return InvalidArgument(
        "data: got sample {} of epoch {}, expected a multiple of the {} samples of a step, below {}",
        position.sample, position.epoch, samples_per_step(), steps_per_epoch_ * samples_per_step());
  }
  const int64_t max_epoch = (std::numeric_limits<int64_t>::max() - step) / steps_per_epoch_;
  if (position.epoch > max_epoch) {
    return InvalidArgument("data: got epoch {}, expected at most {}", position.epoch, max_epoch);
  }
  return position.epoch * steps_per_epoch_ + step;
}

}  // namespace zg
