// Placement of one node: which of its legal signatures it takes, and where its outputs lie then.
// infer-sbp asks for every node, Builder for what passes append later.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/ir/graph.h"

namespace zg::ir {

// Bytes that each rank sends to change a placement along one mesh axis, of T logical bytes on n
// ranks: P -> B 2 T (n-1)/n; P -> S and S -> B T (n-1)/n; S(i) -> S(j) T/n (n-1)/n; others 0.
double PlacementChangeBytes(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks);

// The op's signatures along one mesh axis, and for ops that keep groups those with the groups in
// which an input is split. All-B is not among them.
std::vector<SbpSignature> SignaturesOf(const Node& node, int axis);

// The signature along one mesh axis that changes the placement of the fewest inputs, and of those
// the one that moves the fewest bytes; the first listed wins a tie. With `outputs`, only signatures
// that give these. Null-sized result (no inputs, no outputs) never happens: all-B is always legal
// unless `outputs` forbids it, which is our bug.
//
// Along an axis whose ranks share micro-batches (Mesh: `tensor`) only what the user placed splits
// anything: a sum is taken where it is pending, a whole value is not made terms of one, and nothing
// is split that no other input is split like. So what happens follows from the rules alone, and not
// from sizes. Split parameters stay where they are, and their gradients are computed to lie alike.
SbpSignature ChooseSignature(const Node& node, int axis, const Mesh& mesh,
                             const std::vector<Sbp>* outputs = nullptr);

// Along an axis of data ranks, what is computed for every micro-batch is a term of P: each rank holds
// that of its own micro-batch, and gradients and losses are sums over them. So any op may compute
// such values from such values and from what is whole (B), without communication.
// Nothing for other axes, and for nodes that do not compute for every micro-batch.
std::optional<SbpSignature> MicroBatchSignature(const Node& node, int axis, const Mesh& mesh);

// How a parameter lies along the axis that splits it, if the value becomes its gradient, itself or as
// a term of it: as the bucket that packs the gradient says. B for other values.
Sbp WantedByParameter(const Value& value);

// Whether the value is a parameter, or one in another place, dtype or as a view of its bucket.
bool HoldsParameter(const Value& value);

// Gives the outputs their placements by those of the inputs, which have theirs. Sources are B. A
// boxing op changes the placement along its own axes and leaves the others alone.
void PlaceOutputs(Node* node, const Mesh& mesh);

}  // namespace zg::ir
