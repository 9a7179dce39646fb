// The memory category of each value of a program, by the roles of variables and the ops between
// them.

#include "framework/ir/memory_category.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/ir/parser.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/zero_stage.h"

namespace zg {
namespace {

TEST(MemoryCategory, FollowsFromRolesAndOps) {
  RegisterAllOps();
  StatusOr<ir::Graph> graph = ir::Parse(R"(graph "g" mesh(data=2) micro_batches=4
variables:
  %parameter: bf16[64] {S(0)} = variable (dtype="bf16", shape=[64])
  %frozen: f32[64] {B} = variable (dtype="f32", shape=[64], trainable=false)
  %master: f32[64] {S(0)} = variable (dtype="f32", role="master", shape=[64])
  %sum: f32[64] {S(0)} = variable (dtype="f32", role="gradient", shape=[64])
  %moments: f32[64] {S(0)} = variable (dtype="f32", role="optimizer_state", shape=[64])
  %loss_sum: f32[] {B} = variable (dtype="f32", role="accumulator", shape=[])
  %counter: f32[2] {B} = variable (dtype="f32", role="control", shape=[2])
  %mean: f32[64] {B} = variable (dtype="f32", role="buffer", shape=[64])
forward:
  %whole: bf16[64] {B} = all_gather %parameter
  %view: bf16[8,8] {B} = bucket_view %whole (offset=0, shape=[8,8])
  %frozen_view: f32[8,8] {B} = bucket_view %frozen (offset=0, shape=[8,8])
  %frozen_cast: bf16[64] {B} = cast %frozen (dtype="bf16")
  %h: bf16[8,8] {B} = relu %view
  %loss: f32[] {P} = constant (value=1.0)
  %loss_sum_1: f32[] {B} = all_reduce %loss, %loss_sum
backward:
  %dw: bf16[8,8] {P} = relu %h
  %resident: bf16[64] {P} = bucket_pack %dw (offsets=[0], size=64)
  %reduced: bf16[64] {S(0)} = reduce_scatter %resident (in_place=true)
  %in_flight: bf16[64] {P} = bucket_pack %dw (in_flight=true, offsets=[0], size=64)
  %kept: bf16[64] {S(0)} = reduce_scatter %in_flight
  %summed: f32[64] {S(0)} = reduce_scatter %in_flight, %sum
  %rounded: bf16[64] {S(0)} = cast %sum (dtype="bf16")
  %requested: f32[64] {B} = place %sum (sbp="{B}")
)");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::string text;
  for (const ir::Node* node : graph->AllNodes()) {
    const ir::Value& value = *node->outputs[0];
    text += value.name + " " + std::string(MemoryCategoryName(CategoryOf(value))) + "\n";
  }
  EXPECT_EQ(text, R"(parameter parameters
frozen parameters
master optimizer_state
sum gradients
moments optimizer_state
loss_sum activations
counter optimizer_state
mean parameters
whole communication
view communication
frozen_view parameters
frozen_cast activations
h activations
loss activations
loss_sum_1 activations
dw activations
resident gradients
reduced gradients
in_flight communication
kept gradients
summed gradients
rounded gradients
requested gradients
)");
}

// The three stages of the paper (arXiv 1910.02054, section 5).
TEST(ZeroStage, FollowsFromTheRole) {
  EXPECT_EQ(FirstStageThatShards(Role::kOptimizerState), 1);
  EXPECT_EQ(FirstStageThatShards(Role::kMaster), 1);
  EXPECT_EQ(FirstStageThatShards(Role::kGradient), 2);
  EXPECT_EQ(FirstStageThatShards(Role::kParameter), 3);
  for (const Role role : {Role::kAccumulator, Role::kControl, Role::kBuffer}) {
    EXPECT_GT(FirstStageThatShards(role), kLastStage);
  }
}

}  // namespace
}  // namespace zg
