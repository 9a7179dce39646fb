#include "framework/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "framework/data/permutation.h"

namespace zg {
namespace {

TEST(Permutation, HasEveryNumberOnce) {
  for (uint64_t size = 1; size <= 300; ++size) {
    const Permutation order(RandomKey{size}, size);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) seen.insert(order.At(i));
    ASSERT_EQ(seen.size(), size);
    ASSERT_EQ(*seen.rbegin(), size - 1);
  }
  const uint64_t size = 100'003;
  const Permutation order(RandomKey{5}, size);
  std::vector<bool> seen(size);
  for (uint64_t i = 0; i < size; ++i) seen[order.At(i)] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<int64_t>(size));
}

TEST(Permutation, OfHugeSizesIsInRange) {
  for (const uint64_t size : {(uint64_t{1} << 40) + 1, ~uint64_t{0}}) {
    const Permutation order(RandomKey{9}, size);
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint64_t at = order.At(size - 1 - i);
      EXPECT_LT(at, size);
      seen.insert(at);
    }
    EXPECT_EQ(seen.size(), 1000u);
  }
}

// The position of a number is uniform: chi-square over keys, 7 sigma.
TEST(Permutation, IsUniformOverKeys) {
  for (const uint64_t size : {2u, 3u, 5u, 16u, 17u, 100u}) {
    const int num_keys = 4000;
    std::vector<int> counts(size * size);  // (position, number)
    for (int key = 0; key < num_keys; ++key) {
      const Permutation order(FoldIn(RandomKey{1}, static_cast<uint64_t>(key)), size);
      for (uint64_t i = 0; i < size; ++i) ++counts[i * size + order.At(i)];
    }
    const double expected = static_cast<double>(num_keys) / static_cast<double>(size);
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    const auto freedom = static_cast<double>((size - 1) * (size - 1));
    chi_square *=
        // Each key gives a whole permutation.
        static_cast<double>(size - 1) / static_cast<double>(size);
    EXPECT_LT(chi_square, freedom + 7 * std::sqrt(2 * freedom)) << size;
  }
}

SampleOrderOptions Options(uint64_t num_samples, int64_t batch, int64_t micro_batches) {
  SampleOrderOptions options;
  options.num_samples = num_samples;
  options.batch = batch;
  options.micro_batches = micro_batches;
  return options;
}

// The samples of an epoch in order.
std::vector<uint64_t> Epoch(const SampleOrder& order, int64_t epoch) {
  std::vector<uint64_t> samples;
  for (int64_t step = 0; step < order.steps_per_epoch(); ++step) {
    for (int64_t m = 0; m < order.options().micro_batches; ++m) {
      const MicroBatch batch = order.at(epoch * order.steps_per_epoch() + step, m);
      EXPECT_EQ(batch.epoch, epoch);
      samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    }
  }
  return samples;
}

TEST(SampleOrder, AnEpochHasEverySampleOnceInItsOwnOrder) {
  const SampleOrder order = SampleOrder::create(Options(103, 4, 3)).value();
  EXPECT_EQ(order.steps_per_epoch(), 9);
  std::vector<uint64_t> all(103);
  std::iota(all.begin(), all.end(), 0);
  std::set<std::vector<uint64_t>> orders;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<uint64_t> samples = Epoch(order, epoch);
    orders.insert(samples);
    std::sort(samples.begin(), samples.end());
    EXPECT_EQ(samples, all);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(SampleOrder, TheSeedAloneDecides) {
  SampleOrderOptions options = Options(50, 4, 2);
  const std::vector<uint64_t> samples = Epoch(SampleOrder::create(options).value(), 3);
  EXPECT_EQ(Epoch(SampleOrder::create(options).value(), 3), samples);
  // Micro-batches of another size cut the same order.
  options.batch = 1;
  options.micro_batches = 7;
  EXPECT_EQ(Epoch(SampleOrder::create(options).value(), 3), samples);
  options.seed = 2;
  EXPECT_NE(Epoch(SampleOrder::create(options).value(), 3), samples);
}

TEST(SampleOrder, SaysHowManySamplesOfTheLastMicroBatchesAreReal) {
  SampleOrderOptions options = Options(10, 4, 4);
  options.shuffles = false;
  SampleOrder order = SampleOrder::create(options).value();
  EXPECT_EQ(order.steps_per_epoch(), 1);
  EXPECT_EQ(order.at(0, 1).samples, (std::vector<uint64_t>{4, 5, 6, 7}));
  EXPECT_EQ(order.at(0, 2).samples, (std::vector<uint64_t>{8, 9}));
  EXPECT_EQ(order.at(0, 2).num_real(), 2);
  EXPECT_EQ(order.at(0, 3).num_real(), 0);
  options.micro_batches = 2;
  options.drops_partial_step = true;
  order = SampleOrder::create(options).value();
  EXPECT_EQ(order.steps_per_epoch(), 1);
  EXPECT_EQ(Epoch(order, 1), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(SampleOrder, APositionIsAStep) {
  const SampleOrder order = SampleOrder::create(Options(103, 4, 3)).value();
  for (const int64_t step : {0, 1, 8, 9, 10, 12'345}) {
    EXPECT_EQ(order.step_at(order.position_of(step)).value(), step);
  }
  EXPECT_EQ(order.position_of(10).epoch, 1);
  EXPECT_EQ(order.position_of(10).sample, 12);
  EXPECT_EQ(
      order.step_at({1, 13}).status().message(),
      "data: got sample 13 of epoch 1, expected a multiple of the 12 samples of a step, below "
      "108");
  EXPECT_FALSE(order.step_at({1, 108}).ok());
  EXPECT_FALSE(order.step_at({-1, 0}).ok());
  EXPECT_FALSE(order.step_at({std::numeric_limits<int64_t>::max(), 0}).ok());
}

TEST(SampleOrder, RejectsWhatMakesNoStep) {
  const auto message = [](const SampleOrderOptions& options) {
    return SampleOrder::create(options).status().message();
  };
  EXPECT_EQ(message(Options(0, 4, 3)), "data: got no sample, expected some");
  EXPECT_NE(message(Options(5, 0, 3)).find("got micro-batches of 0 samples and 3 of them"),
            std::string::npos);
  EXPECT_FALSE(SampleOrder::create(Options(5, 1, 0)).ok());
  SampleOrderOptions options = Options(11, 4, 3);
  options.drops_partial_step = true;
  EXPECT_EQ(message(options),
            "data: got 11 samples, expected at least 12 for one step of 3 micro-batches of 4");
}

}  // namespace
}  // namespace zg
