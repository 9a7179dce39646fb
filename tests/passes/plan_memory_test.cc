// Properties of memory plans; tests/zero/stages_test.cc shows on whole models that no value is
// clobbered.

#include "framework/passes/plan_memory.h"

#include <gtest/gtest.h>

#include <random>

#include "framework/passes/assign_offsets.h"
#include "framework/passes/offsets_over_time.h"
#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

using testing::ParseOrDie;

bool Overlap(int64_t begin_a, int64_t size_a, int64_t begin_b, int64_t size_b) {
  return begin_a < begin_b + size_b && begin_b < begin_a + size_a;
}

TEST(AssignOffsets, BuffersAliveTogetherDoNotOverlap) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers(1 + random() % 40);
    for (Lifetime& buffer : buffers) {
      buffer.bytes = random() % 1000;
      buffer.timeline = static_cast<int>(random() % 4) - 1;  // kAllTimelines is one of them
      buffer.first = static_cast<int>(random() % 20);
      buffer.last = buffer.first + static_cast<int>(random() % 10);
    }
    const OffsetPlan plan = AssignOffsets(buffers);
    EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
    for (size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % kBufferAlignmentBytes, 0);
      EXPECT_LE(plan.offsets[a] + buffers[a].bytes, plan.arena_bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool always = buffers[a].timeline == Lifetime::kAllTimelines ||
                            buffers[b].timeline == Lifetime::kAllTimelines;
        const bool meet = buffers[a].timeline == buffers[b].timeline &&
                          buffers[a].first <= buffers[b].last &&
                          buffers[b].first <= buffers[a].last;
        if (!always && !meet) continue;
        EXPECT_FALSE(Overlap(plan.offsets[a], buffers[a].bytes, plan.offsets[b], buffers[b].bytes));
      }
    }
  }
}

// Lifetimes with sizes and durations that do not fit together well.
std::vector<Lifetime> RandomLifetimes(std::mt19937& random, int count) {
  std::vector<Lifetime> buffers(count);
  for (Lifetime& buffer : buffers) {
    buffer.bytes = random() % 100000;
    buffer.first = static_cast<int>(random() % (2 * count));
    buffer.last =
        buffer.first + static_cast<int>(random() % 8 == 0 ? random() % count : random() % 40);
  }
  return buffers;
}

TEST(AssignOffsets, StaysNearTheLowerBound) {
  std::mt19937 random(5);
  constexpr int kRounds = 20;
  double sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const OffsetPlan plan = AssignOffsets(RandomLifetimes(random, 100));
    sum += static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound_bytes);
  }
  EXPECT_LE(sum / kRounds, 1.03);  // greedy orders alone: 1.06
}

std::vector<TimedBuffer> Timed(const std::vector<Lifetime>& buffers) {
  std::vector<TimedBuffer> timed;
  for (const Lifetime& buffer : buffers) {
    timed.push_back({buffer.bytes + 1, buffer.first, buffer.last});
  }
  return timed;
}

TEST(OffsetsOverTime, BuffersAliveTogetherDoNotOverlap) {
  std::mt19937 random(9);
  for (int round = 0; round < 50; ++round) {
    const std::vector<TimedBuffer> buffers = Timed(RandomLifetimes(random, 1 + random() % 100));
    const std::vector<int64_t> offsets = OffsetsOverTime(buffers);
    for (size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_GE(offsets[a], 0);
      for (size_t b = 0; b < a; ++b) {
        if (buffers[a].first > buffers[b].last || buffers[b].first > buffers[a].last) continue;
        EXPECT_FALSE(Overlap(offsets[a], buffers[a].bytes, offsets[b], buffers[b].bytes));
      }
    }
  }
}

// A chain of steps of which each keeps a value until the way back reaches it: a program that is too
// long to compare every two of its buffers.
TEST(AssignOffsets, LongProgramsAreNearTheLowerBound) {
  constexpr int kSteps = 40000;
  std::vector<Lifetime> buffers;
  for (int i = 0; i < kSteps; ++i) {
    buffers.push_back({64 * (1 + i % 3), 0, i, 2 * kSteps - i});
    buffers.push_back({64 * (1 + i % 7), 0, i, i + 2});
  }
  const OffsetPlan plan = AssignOffsets(buffers);
  EXPECT_LE(static_cast<double>(plan.arena_bytes),
            1.02 * static_cast<double>(plan.lower_bound_bytes));
}

TEST(AssignOffsets, IsDeterministic) {
  std::mt19937 random(7);
  const std::vector<Lifetime> buffers = RandomLifetimes(random, 200);
  EXPECT_EQ(AssignOffsets(buffers).offsets, AssignOffsets(buffers).offsets);
}

TEST(AssignOffsets, NothingToPlace) {
  EXPECT_EQ(AssignOffsets({}).arena_bytes, 0);
  const OffsetPlan always = AssignOffsets({{100, Lifetime::kAllTimelines}, {0, 0, 3, 5}});
  EXPECT_EQ(always.arena_bytes, 128);
  EXPECT_EQ(always.lower_bound_bytes, 128);
}

TEST(AssignOffsets, TimelinesShareTheRoomAboveWhatIsAlwaysAlive) {
  const OffsetPlan plan = AssignOffsets(
      {{640, 0, 0, 9}, {64, Lifetime::kAllTimelines}, {6400, 1, 0, 9}, {640, 2, 0, 9}});
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{64, 0, 64, 64}));
  EXPECT_EQ(plan.arena_bytes, 6464);
}

TEST(AssignOffsets, ReachesTheLowerBoundOnAStack) {
  const std::vector<Lifetime> nested = {
      {640, 0, 0, 9}, {640, 0, 1, 8}, {640, 0, 2, 7}, {640, 0, 3, 3}, {640, 0, 4, 4}};
  const OffsetPlan plan = AssignOffsets(nested);
  EXPECT_EQ(plan.lower_bound_bytes, 4 * 640);
  EXPECT_EQ(plan.arena_bytes, plan.lower_bound_bytes);
}

const char kHeader[] = "graph \"g\" mesh(data=1) micro_batches=1\nforward:\n";

TEST(PlanMemory, AnElementwiseOpRunsInPlaceOfItsLastInput) {
  const ir::Graph graph =
      ParseOrDie(std::string(kHeader) +
                 "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                 "  %a: f32[64] {B} = relu %x\n"
                 "  output %a (name=\"a\")\n");
  const MemoryPlan plan = PlanMemory(graph, {});
  EXPECT_EQ(plan.arena_bytes, 256);
  EXPECT_EQ(plan.BaseOffset(graph.FindValue("a")), plan.BaseOffset(graph.FindValue("x")));
}

TEST(PlanMemory, NotInPlaceOfWhatIsReadLater) {
  const ir::Graph graph =
      ParseOrDie(std::string(kHeader) +
                 "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                 "  %a: f32[64] {B} = relu %x\n"
                 "  %b: f32[64] {B} = add %a, %x\n"
                 "  output %b (name=\"b\")\n");
  EXPECT_EQ(PlanMemory(graph, {}).arena_bytes, 512);
}

TEST(PlanMemory, AnOpWithTwoOperandsToOverwriteTakesOneOfThem) {
  const ir::Graph graph =
      ParseOrDie(std::string(kHeader) +
                 "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                 "  %y: f32[64] {B} = input (dtype=\"f32\", name=\"y\", shape=[64])\n"
                 "  %a: f32[64] {B} = add %x, %y\n"
                 "  output %a (name=\"a\")\n");
  const MemoryPlan plan = PlanMemory(graph, {});
  EXPECT_EQ(plan.arena_bytes, 512);
  EXPECT_NE(plan.BaseOffset(graph.FindValue("x")), plan.BaseOffset(graph.FindValue("y")));
}

TEST(PlanMemory, GradientsAreProducedInsideTheirBucket) {
  const ir::Graph graph =
      ParseOrDie(std::string(kHeader) +
                 "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                 "  %a: f32[64] {B} = relu %x\n"
                 "  %b: f32[64] {B} = gelu %x\n"
                 "  %g: f32[128] {B} = bucket_pack %a, %b (offsets=[0,64], size=128)\n"
                 "  output %g (name=\"g\")\n");
  const MemoryPlan plan = PlanMemory(graph, {});
  EXPECT_EQ(plan.BaseOffset(graph.FindValue("a")), plan.BaseOffset(graph.FindValue("g")));
  EXPECT_EQ(plan.BaseOffset(graph.FindValue("b")), plan.BaseOffset(graph.FindValue("g")) + 256);
  EXPECT_EQ(plan.category_bytes[static_cast<int>(MemoryCategory::kGradients)], 512);
}

TEST(PlanMemory, EvalSectionsShareTheArenaWithTraining) {
  const ir::Graph graph =
      ParseOrDie(std::string(kHeader) +
                 "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                 "  output %x (name=\"x\")\n"
                 "eval \"e\":\n"
                 "  %y: f32[64] {B} = input (dtype=\"f32\", name=\"y\", shape=[64])\n"
                 "  output %y (name=\"y\")\n");
  EXPECT_EQ(PlanMemory(graph, {}).arena_bytes, 256);
}

}  // namespace
}  // namespace zg
