#include "framework/passes/memory_timeline.h"

#include <gtest/gtest.h>

#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

using testing::ParseOrDie;

std::vector<std::string> Names(const std::vector<const PlannedBuffer*>& buffers) {
  std::vector<std::string> names;
  for (const PlannedBuffer* buffer : buffers) names.push_back(buffer->name);
  return names;
}

TEST(MemoryTimeline, WhatIsAliveAtEachMoment) {
  const ir::Graph graph = ParseOrDie(
      "graph \"g\" mesh(data=1) micro_batches=1\n"
      "variables:\n"
      "  %w: f32[16] {B} = variable (dtype=\"f32\", shape=[16])\n"
      "forward:\n"
      "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
      "  %a: f32[64] {B} = relu %x\n"
      "  %b: f32[64] {B} = add %a, %x\n"
      "backward:\n"
      "  %c: f32[64] {B} = relu %b\n"
      "  output %c (name=\"c\")\n"
      "eval \"e\":\n"
      "  %y: f32[6400] {B} = input (dtype=\"f32\", name=\"y\", shape=[6400])\n"
      "  output %y (name=\"y\")\n");
  const MemoryPlan plan = PlanMemory(graph, {});
  const MemoryTimeline timeline = TrainingTimeline(graph, plan);
  ASSERT_EQ(timeline.moments.size(), 5u);
  std::vector<int64_t> totals;
  for (const MemoryMoment& moment : timeline.moments) totals.push_back(moment.total_bytes());
  EXPECT_EQ(totals, (std::vector<int64_t>{64 + 256, 64 + 512, 64 + 512, 64 + 256, 64 + 256}));
  EXPECT_EQ(timeline.peak, 1);
  EXPECT_EQ(timeline.moments[1].node->op->name, "relu");
  const CategoryBytes& alive = timeline.moments[1].alive;
  EXPECT_EQ(alive[static_cast<int>(MemoryCategory::kParameters)], 64);
  EXPECT_EQ(alive[static_cast<int>(MemoryCategory::kActivations)], 512);
  EXPECT_EQ(Names(AliveAt(plan, 1)), (std::vector<std::string>{"x", "a", "w"}));
  EXPECT_EQ(Names(AliveAt(plan, 0)), (std::vector<std::string>{"x", "w"}));
}

TEST(MemoryTimeline, NoTraining) {
  const ir::Graph graph = ParseOrDie(
      "graph \"g\" mesh(data=1) micro_batches=1\n"
      "eval \"e\":\n"
      "  %y: f32[64] {B} = input (dtype=\"f32\", name=\"y\", shape=[64])\n"
      "  output %y (name=\"y\")\n");
  const MemoryTimeline timeline = TrainingTimeline(graph, PlanMemory(graph, {}));
  EXPECT_TRUE(timeline.moments.empty());
  EXPECT_EQ(timeline.peak, -1);
}

}  // namespace
}  // namespace zg
