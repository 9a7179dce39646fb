// overlap-communication: starts a collective as soon as what it reads is there, and waits for it only
// where somebody reads what it writes, so that it runs beside what stands in between.
//
// Requires: schedule has run. The order of collectives changes, on every rank alike.
//
// Ensures: what moves data and has computation to run beside it has `start=true`, and every reader of
// its result reads a `wait` for it. Nothing between the two writes what the transfer reads or writes,
// or reads what it writes. The buffers that are alive for this alone (full gradients kept until they
// are sent, parameters gathered ahead) have at most `max_bytes` together at every moment, in either
// direction half of them where there are both; what does not fit stays as it was. Where a rank
// computes several micro-batches per step, each waits for its own gradients.
//
// Updated parameters of stages 1 and 2 are gathered into their variables until the next forward reads
// them, in the order in which it does; there the variable itself is waited for.
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

// CompileOptions::overlap_bytes with what `auto` stands for where ranks send each other messages, or do
// not: two buckets that are gathered ahead and two that are summed, one on its way and one behind it.
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
