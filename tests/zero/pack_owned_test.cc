// Whole tensors get owners: none is cut or lost, buckets grow until they are balanced, and real
// models can be balanced. The greedy way is that of PyTorch's ZeroRedundancyOptimizer.
#include "zero/pack_owned.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace zg::zero {
namespace {

using ::testing::ElementsAre;

OwnedTensor Tensor(int64_t elements) { return {elements, elements}; }

std::vector<OwnedTensor> Tensors(const std::vector<int64_t>& elements) {
  std::vector<OwnedTensor> tensors;
  for (const int64_t count : elements) tensors.push_back(Tensor(count));
  return tensors;
}

// With the flops of Muon's steps.
OwnedTensor Matrix(int64_t rows, int64_t columns) {
  const int64_t side = std::min(rows, columns);
  return {rows * columns, 4 * side * rows * columns + 2 * side * side * side};
}

// The hidden matrices of a GPT.
std::vector<OwnedTensor> GptMatrices(int64_t layers, int64_t channels) {
  std::vector<OwnedTensor> tensors;
  for (int64_t layer = 0; layer < layers; ++layer) {
    tensors.push_back(Matrix(channels, 4 * channels));
    tensors.push_back(Matrix(4 * channels, channels));
    tensors.push_back(Matrix(channels, channels));
    tensors.push_back(Matrix(3 * channels, channels));
  }
  return tensors;
}

// sorted(params, key=numel, reverse=True), each to sizes.index(min(sizes)).
TEST(AssignOwners, GreedyIsThatOfPyTorch) {
  EXPECT_THAT(AssignOwners(Tensors({3, 9, 4, 4, 1, 2}), 2, Partition::kGreedy),
              ElementsAre(1, 0, 1, 1, 0, 0));
  EXPECT_THAT(AssignOwners(Tensors({5, 5, 5, 5}), 3, Partition::kGreedy), ElementsAre(0, 1, 2, 0));
}

TEST(AssignOwners, BalancesGpt2XlOn64Ranks) {
  const std::vector<OwnedTensor> tensors = GptMatrices(48, 1600);
  const Imbalance greedy = ImbalanceOf(tensors, AssignOwners(tensors, 64, Partition::kGreedy), 64);
  EXPECT_NEAR(greedy.elements, 10.0 / 9, 1e-12);
  const Imbalance balanced =
      ImbalanceOf(tensors, AssignOwners(tensors, 64, Partition::kBalanced), 64);
  EXPECT_EQ(balanced.elements, 1.0);
  EXPECT_EQ(balanced.flops, 1.0);
}

TEST(AssignOwners, IsNeverWorseThanGreedy) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<OwnedTensor> tensors;
    const int count = std::uniform_int_distribution<int>(1, 60)(random);
    std::uniform_int_distribution<int64_t> side(1, 60);
    for (int i = 0; i < count; ++i) tensors.push_back(Matrix(side(random), side(random)));
    const int owners = std::uniform_int_distribution<int>(1, 16)(random);
    const auto worst = [&](Partition partition) {
      const Imbalance imbalance =
          ImbalanceOf(tensors, AssignOwners(tensors, owners, partition), owners);
      return std::max(imbalance.elements, imbalance.flops);
    };
    EXPECT_LE(worst(Partition::kBalanced), worst(Partition::kGreedy));
  }
}

// Each tensor once, in one part, after the previous one; parts are equal multiples.
void ExpectPacked(const std::vector<OwnedTensor>& tensors, const PackOptions& options,
                  const std::vector<OwnedBucket>& buckets) {
  std::set<int> packed;
  int first = 0;
  for (const OwnedBucket& bucket : buckets) {
    ASSERT_EQ(bucket.elements % (options.num_owners * options.part_multiple), 0);
    const int64_t part = bucket.elements / options.num_owners;
    int64_t end = 0;
    for (const OwnedBucket::Place& place : bucket.places) {
      EXPECT_GE(place.offset, end);
      end = place.offset + tensors[place.tensor].elements;
      EXPECT_EQ(place.offset / part, (end - 1) / part) << "tensor " << place.tensor;
      EXPECT_TRUE(packed.insert(place.tensor).second);
      EXPECT_GE(place.tensor, first);
    }
    EXPECT_LE(end, bucket.elements);
    first += static_cast<int>(bucket.places.size());  // they follow each other
    EXPECT_EQ(*packed.rbegin(), first - 1);
  }
  EXPECT_EQ(packed.size(), tensors.size());
}

TEST(PackOwned, CutsAndLosesNothing) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<OwnedTensor> tensors;
    const int count = std::uniform_int_distribution<int>(1, 80)(random);
    std::uniform_int_distribution<int64_t> elements(1, 40);
    for (int i = 0; i < count; ++i) tensors.push_back(Tensor(16 * elements(random)));
    PackOptions options;
    options.num_owners = std::uniform_int_distribution<int>(2, 9)(random);
    options.partition = round % 2 == 0 ? Partition::kBalanced : Partition::kGreedy;
    options.bucket_elements = std::uniform_int_distribution<int64_t>(1, 4000)(random);
    options.part_multiple = 16;
    SCOPED_TRACE(fmt::format("{} tensors, {} owners", count, options.num_owners));
    ExpectPacked(tensors, options, PackOwned(tensors, options));
  }
}

// Two layers of a GPT are 24 units of C^2, of which each of two ranks gets 12; a single layer
// cannot be halved.
TEST(PackOwned, ABucketGrowsUntilItIsBalanced) {
  const std::vector<OwnedTensor> tensors = GptMatrices(12, 64);
  PackOptions options;
  options.num_owners = 2;
  const std::vector<OwnedBucket> buckets = PackOwned(tensors, options);
  ExpectPacked(tensors, options, buckets);
  int64_t elements = 0;
  for (const OwnedBucket& bucket : buckets) {
    elements += bucket.elements;
    EXPECT_LE(bucket.places.size(), 8u);
  }
  EXPECT_LE(elements, 12 * 12 * 64 * 64 * 51 / 50);
  options.bucket_elements = 1 << 30;
  EXPECT_EQ(PackOwned(tensors, options).size(), 1u);
}

TEST(PackOwned, OfGpt2XlOn64RanksNothingIsPadding) {
  const std::vector<OwnedTensor> tensors = GptMatrices(48, 1600);
  PackOptions options;
  options.num_owners = 64;
  options.bucket_elements = 4 << 20;
  options.part_multiple = 16;
  const std::vector<OwnedBucket> buckets = PackOwned(tensors, options);
  ExpectPacked(tensors, options, buckets);
  int64_t elements = 0;
  for (const OwnedBucket& bucket : buckets) elements += bucket.elements;
  EXPECT_LE(elements, int64_t{48} * 12 * 1600 * 1600 * 51 / 50);
}

// Remaining tensors join the previous bucket, and one tensor on three ranks means two parts of
// padding.
TEST(PackOwned, WhatIsLeftOverJoinsTheBucketBefore) {
  PackOptions options;
  options.num_owners = 3;
  EXPECT_EQ(PackOwned(Tensors({48, 48, 48, 16}), options).size(), 1u);
  const std::vector<OwnedBucket> alone = PackOwned(Tensors({48}), options);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].elements, 3 * 48);
}

}  // namespace
}  // namespace zg::zero
