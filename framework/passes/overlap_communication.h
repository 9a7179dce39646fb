// overlap-communication: starts a collective as soon as its input is ready, and waits for it only
// before the first reader of its result, so that it runs beside the nodes in between.
//
// Requires: schedule has run. The order of collectives changes in the same way on every rank.
//
// Ensures: a collective that has computation to run beside it has `start=true`, and every reader of
// its result reads a `wait` for it. Between the two, nothing writes the transfer's input or result,
// and nothing reads its result. The buffers that are alive only for this reason (full gradients
// kept until they are sent, parameters gathered ahead) have at most `max_bytes` together at every
// moment. If there are both kinds, each gets half. A collective that does not fit stays unchanged.
// If a rank computes several micro-batches per step, each micro-batch waits for its own gradients.
//
// At stages 1 and 2 updated parameters are gathered into their variables until the next forward
// reads them, in the order in which it reads them; there the wait is for the variable itself.
//
// Before:
//   backward:
//     %g.shard: f32[64] {S(0)} = reduce_scatter %g
//     %a: f32[8,8] {S(0)} = relu_grad ...
//   update:
//     %p.next: f32[64] {S(0)} = sgd_update %p.shard, %g.shard
//     %p.whole: f32[64] {B} = all_gather %p.next
//     assign %p, %p.whole
// After:
//   forward:
//     %p.wait: f32[64] {B} = wait %p
//   backward:
//     %g.shard: f32[64] {S(0)} = reduce_scatter %g (start=true)
//     %a: f32[8,8] {S(0)} = relu_grad ...
//   update:
//     %g.shard.wait: f32[64] {S(0)} = wait %g.shard, %g
//     %p.next: f32[64] {S(0)} = sgd_update %p.shard, %g.shard.wait
//     %p.whole: f32[64] {B} = all_gather %p.next (start=true)
//     assign %p, %p.whole
//
// No-op on one rank, and where nothing is computed beside a transfer.
#pragma once

#include <cstdint>

#include "framework/passes/compile_options.h"
#include "framework/passes/pass.h"

namespace zg {

// CompileOptions::overlap_bytes, with `auto` resolved by whether ranks send each other messages. If
// they do, it is four buckets: two that are gathered ahead and two that are summed, of each kind
// one in flight and one waiting.
int64_t OverlapBytes(const CompileOptions& options, bool sends_messages);

// Whether the graph has transfers that are started ahead.
bool Overlaps(const ir::Graph& graph);

class OverlapCommunication : public Pass {
 public:
  explicit OverlapCommunication(int64_t max_bytes) : max_bytes_(max_bytes) {}
  std::string_view name() const override { return "overlap-communication"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  int64_t max_bytes_;
};

}  // namespace zg
