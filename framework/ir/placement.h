// Placement of one node: which of its legal signatures it takes, and the resulting placement of its
// outputs. infer-sbp calls it for every node, Builder for the nodes that later passes append.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/ir/graph.h"

namespace zg::ir {

// Bytes that each of n ranks sends to change a placement along one mesh axis, for T logical bytes:
// P -> B 2 T (n-1)/n; P -> S and S -> B T (n-1)/n; S(i) -> S(j) T/n (n-1)/n; others 0.
double PlacementChangeBytes(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks);

// The op's signatures along one mesh axis, without all-B. For ops that keep groups, the list also
// has the signatures with the groups in which an input is split.
std::vector<SbpSignature> SignaturesOf(const Node& node, int axis);

// The signature along one mesh axis that changes the placement of the fewest inputs, and among those
// the one that moves the fewest bytes. With `outputs`, only signatures that give these are considered.
// There is at least one: all-B is always legal unless `outputs` forbids it, which is our bug.
//
// Along an axis whose ranks share micro-batches (Mesh: `tensor`), only the user's placements split
// anything. A pending sum is summed at once, a whole value is not turned into terms of a sum (except
// in buckets of gradients, where sums stay pending, whichever gradients share the bucket), and an
// input is split only if another input is split the same way. So the result follows from the
// rules alone, and not from sizes. Split parameters stay where they are, and their gradients get
// the same placement. Bytes decide only between inputs that are split in different ways; if they are
// equal, results are rather split than terms of a sum, and else the op's first signature is taken.
// `place` in the model, or a rule of the module that gives an input, decides otherwise.
SbpSignature ChooseSignature(const Node& node, int axis, const Mesh& mesh,
                             const std::vector<Sbp>* outputs = nullptr);

// Along an axis of data ranks, a value computed for every micro-batch is a term of P: each rank
// holds the value of its own micro-batch, and gradients and losses are sums over them. So any op
// may compute such values from such values and from whole ones (B) without communication. Returns
// nothing for other axes, and for nodes that do not compute for every micro-batch.
std::optional<SbpSignature> MicroBatchSignature(const Node& node, int axis, const Mesh& mesh);

// If the value becomes the gradient of a parameter, itself or as a term of it: the placement of
// that parameter along the axis that splits it, as the bucket that packs the gradient says. B for
// other values.
Sbp WantedByParameter(const Value& value);

// Whether the value is a parameter, or a parameter in another placement or dtype, or a view of its
// bucket.
bool HoldsParameter(const Value& value);

// Sets the placements of the outputs from those of the inputs, which must be set. Sources are B. A
// boxing op changes the placement along its own axes and leaves the others alone.
void PlaceOutputs(Node* node, const Mesh& mesh);

}  // namespace zg::ir
