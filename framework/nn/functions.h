// What a model is made of: functions of Vars, each appending one node to the graph being traced.
// The formulas are those of the ops of the same names (framework/ops). Modules that bring their
// own parameters are in linear.h, embedding.h, ...; losses in losses.h.
// Shapes: B batch, T time, C channels, V vocabulary; "..." any leading dims.
#pragma once

#include "framework/nn/var.h"

namespace zg {

Var add(Var a, Var b);
Var subtract(Var a, Var b);
Var multiply(Var a, Var b);
Var scale(Var x, double factor);
Var add_broadcast(Var x, Var r);  // x (..., R...) + r (R...), for every index of the leading dims

Var relu(Var x);
Var gelu(Var x);  // the tanh approximation

Var linear(Var x, Var weight);            // x (..., K), weight (N, K) -> (..., N)
Var linear(Var x, Var weight, Var bias);  // bias (N)
Var embedding(Var ids, Var table);        // ids (...) i64, table (V, C) -> (..., C)
Var layer_norm(Var x, Var gamma, Var beta, double epsilon = 1e-5);  // x (..., C), others (C)

// qkv (B, T, 3C) = [q | k | v], each with its heads side by side -> (B, T, C). With `causal` a
// position sees only itself and those before it.
Var attention(Var qkv, int64_t heads, bool causal = true);

// While training: zeroes elements with this probability and scales the others by 1 / (1 - it). In
// eval: x. Each call has a mask of its own, which depends on the calling module's path, on nothing
// about ranks.
Var dropout(Var x, double probability);

}  // namespace zg
