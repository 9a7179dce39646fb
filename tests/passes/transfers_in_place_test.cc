// The collectives that stay in their places, and why.
#include "framework/passes/transfers_in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/passes/compile_options.h"
#include "framework/passes/overlap_communication.h"
#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// The first gradient has a relu beside it, the second nothing. They take 384 bytes until they are
// sent.
constexpr char kGradients[] = R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
  %q: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
backward:
  %x: f32[12,4] {S(0)} = input (dtype="f32", name="x", shape=[12,4])
  %y: f32[12,8] {S(0)} = input (dtype="f32", name="y", shape=[12,8])
  %a.grad: f32[8,4] {P} = linear_grad_weight %y, %x
  %a: f32[96] {P} = bucket_pack %a.grad (in_flight=true, offsets=[0], size=96)
  %a.shard: f32[96] {S(0)} = reduce_scatter %a
  %rest: f32[12,4] {S(0)} = relu %x
  %b.grad: f32[8,4] {P} = linear_grad_weight %y, %rest
  %b: f32[96] {P} = bucket_pack %b.grad (in_flight=true, offsets=[0], size=96)
  %b.shard: f32[96] {S(0)} = reduce_scatter %b
update:
  %q.next: f32[96] {S(0)} = sgd_update %q, %b.shard (lr=0.1, weight_decay=0.0)
  assign %q, %q.next
  %p.next: f32[96] {S(0)} = sgd_update %p, %a.shard (lr=0.1, weight_decay=0.0)
  assign %p, %p.next
)";

std::vector<std::pair<std::string, InPlaceReason>> Reasons(const std::string& text,
                                                           int64_t max_bytes) {
  ir::Graph graph = testing::ParseOrDie(text);
  EXPECT_TRUE(OverlapCommunication(max_bytes).Run(graph).ok());
  std::vector<std::pair<std::string, InPlaceReason>> reasons;
  for (const TransferInPlace& transfer : TransfersInPlace(graph, AssignStorage(graph), max_bytes)) {
    reasons.emplace_back(transfer.node->outputs[0]->name, transfer.reason);
  }
  return reasons;
}

TEST(TransfersInPlace, SayWhatKeepsThemThere) {
  EXPECT_THAT(Reasons(kGradients, 0), ElementsAre(Pair("a.shard", InPlaceReason::kOff),
                                                  Pair("b.shard", InPlaceReason::kOff)));
  EXPECT_THAT(Reasons(kGradients, CompileOptions::kUnlimitedBytes),
              ElementsAre(Pair("b.shard", InPlaceReason::kNoComputation)));
  EXPECT_THAT(Reasons(kGradients, 383),
              ElementsAre(Pair("a.shard", InPlaceReason::kTooLarge),
                          Pair("b.shard", InPlaceReason::kNoComputation)));
}

// Both are gathered while relu computes, if there is room for their 384 bytes each.
TEST(TransfersInPlace, OthersTakeTheRoom) {
  const std::string gathers = R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
  %q: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
forward:
  %x: f32[96] {B} = input (dtype="f32", name="x", placement="B", shape=[96])
  %a: f32[96] {B} = relu %x
  %p.whole: f32[96] {B} = all_gather %p
  %q.whole: f32[96] {B} = all_gather %q
  %b: f32[96] {B} = multiply %p.whole, %q.whole
)";
  EXPECT_THAT(Reasons(gathers, 768), IsEmpty());
  EXPECT_THAT(Reasons(gathers, 767), ElementsAre(Pair("q.whole", InPlaceReason::kNoRoom)));
}

TEST(TransfersInPlace, EvalsAreLeftOut) {
  EXPECT_THAT(Reasons(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %p: f32[96] {S(0)} = variable (dtype="f32", shape=[96])
eval "e":
  %p.whole: f32[96] {B} = all_gather %p
)",
                      0),
              IsEmpty());
}

}  // namespace
}  // namespace zg
