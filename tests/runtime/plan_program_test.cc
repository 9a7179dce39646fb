#include "framework/runtime/plan_program.h"

#include <gtest/gtest.h>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

using testing::ParseOrDie;

ir::Graph DropoutGraph() {
  return ParseOrDie(
      "graph \"g\" mesh(data=1) micro_batches=1\n"
      "variables:\n"
      "  %w: f32[16] {B} = variable (dtype=\"f32\", shape=[16])\n"
      "forward:\n"
      "  %x: f32[8,16] {B} = input (dtype=\"f32\", name=\"x\", shape=[8,16])\n"
      "  %y: f32[8,16] {B} = dropout %x (probability=0.5, stream=7)  // encoder.drop\n"
      "  output %y (name=\"y\")\n");
}

TEST(PlanProgram, AsksTheKernelsForTheirWorkspaces) {
  const ir::Graph graph = DropoutGraph();
  const StatusOr<ProgramPlan> plan = PlanProgram(graph, CpuKernels(), 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const ir::Node* dropout = graph.FindValue("y")->producer;
  ASSERT_EQ(plan->kernels.size(), 1u);  // variables, inputs and outputs have none
  const int64_t workspace_bytes = plan->kernels.at(dropout)->workspace_bytes();
  ASSERT_GT(workspace_bytes, 0);
  const int buffer = plan->memory.workspaces.at(dropout);
  EXPECT_EQ(plan->memory.buffers[buffer].bytes, workspace_bytes);
  EXPECT_EQ(plan->memory.communicator_workspace, -1);
}

TEST(PlanProgram, TheCommunicatorsWorkspaceIsAlwaysThere) {
  const ir::Graph graph = DropoutGraph();
  const StatusOr<ProgramPlan> without = PlanProgram(graph, CpuKernels(), 0);
  const StatusOr<ProgramPlan> with = PlanProgram(graph, CpuKernels(), 1000);
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_EQ(with->memory.arena_bytes, without->memory.arena_bytes + 1024);
}

TEST(PlanProgram, AGivenPlanMustBeForTheTarget) {
  const ir::Graph graph = DropoutGraph();
  const StatusOr<ProgramPlan> first = PlanProgram(graph, CpuKernels(), 1000);
  ASSERT_TRUE(first.ok());
  const StatusOr<ProgramPlan> second = PlanProgram(graph, CpuKernels(), 1000, &first->memory);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->kernels.size(), 1u);
  EXPECT_EQ(second->memory.arena_bytes, first->memory.arena_bytes);
  EXPECT_EQ(PlanProgram(graph, CpuKernels(), 0, &first->memory).status().message(),
            "graph g: the transport needs 0 bytes of scratch memory, but 1000 are planned; compile "
            "the graph for the device and the transport that it runs on");
  MemoryPlan without = first->memory;
  without.workspaces.clear();
  EXPECT_EQ(PlanProgram(graph, CpuKernels(), 1000, &without)
                .status()
                .message()
                .find("graph g: dropout needs "),
            0u);
}

TEST(PlanProgram, AMissingKernelIsAnErrorWithTheModule) {
  const StatusOr<ProgramPlan> plan = PlanProgram(DropoutGraph(), KernelRegistry(), 0);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message().find("encoder.drop: "), 0u) << plan.status().message();
}

TEST(PlanProgram, AGradientThatNoUpdateReadsIsAnError) {
  const ir::Graph graph = ParseOrDie(
      "graph \"g\" mesh(data=1) micro_batches=1\n"
      "variables:\n"
      "  %w: f32[16] {B} = variable (dtype=\"f32\", shape=[16])\n"
      "backward:\n"
      "  %w.grad: f32[16] {B} = relu %w\n"
      "  parameter_gradient %w, %w.grad\n");
  EXPECT_EQ(PlanProgram(graph, CpuKernels(), 0).status().message(),
            "graph g: the gradient of %w is computed but no update reads it; run append-update");
}

}  // namespace
}  // namespace zg
