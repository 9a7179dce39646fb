#include "tests/testing/clobber_check.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/parse_or_die.h"

namespace zg::testing {
namespace {

const char kHeader[] = "graph \"g\" mesh(data=1) micro_batches=1\nforward:\n";

// %x is read after %a is written.
ir::Graph ReadLater() {
  return ParseOrDie(std::string(kHeader) +
                    "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                    "  %a: f32[64] {B} = relu %x\n"
                    "  %b: f32[64] {B} = add %a, %x\n"
                    "  output %b (name=\"b\")\n");
}

int64_t& OffsetOf(const ir::Graph& graph, const std::string& name, MemoryPlan* plan) {
  return plan->buffers[plan->storage.Of(graph.FindValue(name)).buffer].offset;
}

TEST(ClobberCheck, PassesPlans) {
  const ir::Graph graph = ReadLater();
  EXPECT_TRUE(CheckNothingIsClobbered(graph, PlanMemory(graph, {}), 0).ok());
}

TEST(ClobberCheck, NamesWhatIsWrittenOverAValueThatIsReadLater) {
  const ir::Graph graph = ReadLater();
  MemoryPlan plan = PlanMemory(graph, {});
  OffsetOf(graph, "a", &plan) = OffsetOf(graph, "x", &plan);
  EXPECT_EQ(CheckNothingIsClobbered(graph, plan, 0).message(),
            "add of %b reads %x, but its memory holds %a");
}

TEST(ClobberCheck, FindsASingleWord) {
  const ir::Graph graph = ReadLater();
  MemoryPlan plan = PlanMemory(graph, {});
  OffsetOf(graph, "x", &plan) = 0;
  OffsetOf(graph, "a", &plan) = 63 * 4;
  EXPECT_EQ(CheckNothingIsClobbered(graph, plan, 0).message(),
            "add of %b reads %x, but its memory holds %a");
}

TEST(ClobberCheck, APackKeepsItsParts) {
  const ir::Graph graph =
      ParseOrDie(std::string(kHeader) +
                 "  %x: f32[64] {B} = input (dtype=\"f32\", name=\"x\", shape=[64])\n"
                 "  %a: f32[64] {B} = relu %x\n"
                 "  %g: f32[128] {B} = bucket_pack %a, %x (offsets=[0,64], size=128)\n"
                 "  %b: f32[64] {B} = add %a, %x\n"
                 "  output %g (name=\"g\")\n"
                 "  output %b (name=\"b\")\n");
  MemoryPlan plan = PlanMemory(graph, {});
  EXPECT_TRUE(CheckNothingIsClobbered(graph, plan, 0).ok());
  OffsetOf(graph, "x", &plan) = OffsetOf(graph, "a", &plan);
  EXPECT_EQ(CheckNothingIsClobbered(graph, plan, 0).message(),
            "bucket_pack of %g reads %x, but its memory holds %a");
}

}  // namespace
}  // namespace zg::testing
