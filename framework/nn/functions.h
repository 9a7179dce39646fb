// What a model is made of: functions of Vars, each appending one node to the graph being traced.
// Outside the function given to Graph::train or Graph::eval nothing is traced: there each of them
// ends the process with an error that names it.
// The formulas are those of the ops of the same names (framework/ops). Modules that bring their
// own parameters are in linear.h, embedding.h, ...; losses in losses.h.
// Shapes: B batch, T time, C channels, V vocabulary; "..." any leading dims.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/nn/var.h"

namespace zg {

namespace nn {
// One node; its first output.
Var append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes = {});
}  // namespace nn

inline Var add(Var a, Var b) { return nn::append("add", {a, b}); }
inline Var subtract(Var a, Var b) { return nn::append("subtract", {a, b}); }
inline Var multiply(Var a, Var b) { return nn::append("multiply", {a, b}); }
inline Var scale(Var x, double factor) { return nn::append("scale", {x}, {{"factor", factor}}); }

// x (..., R...) + r (R...), for every index of the leading dims.
inline Var add_broadcast(Var x, Var r) { return nn::append("add_broadcast", {x, r}); }

inline Var relu(Var x) { return nn::append("relu", {x}); }
inline Var gelu(Var x) { return nn::append("gelu", {x}); }  // the tanh approximation
inline Var silu(Var x) { return nn::append("silu", {x}); }

// x (..., K), weight (N, K), bias (N) -> (..., N).
inline Var linear(Var x, Var weight) { return nn::append("linear", {x, weight}); }
inline Var linear(Var x, Var weight, Var bias) { return nn::append("linear", {x, weight, bias}); }

// ids (...) i64, table (V, C) -> (..., C).
inline Var embedding(Var ids, Var table) { return nn::append("embedding", {table, ids}); }

// x (..., C), gamma and beta (C).
inline Var layer_norm(Var x, Var gamma, Var beta, double epsilon = 1e-5) {
  return nn::append("layer_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
}

// x (..., C), weight (C).
inline Var rms_norm(Var x, Var weight, double epsilon = 1e-6) {
  return nn::append("rms_norm", {x, weight}, {{"epsilon", epsilon}});
}

// qkv (B, T, 3C) = [q | k | v], each with its heads side by side -> (B, T, C). With `causal` a
// position sees only itself and those before it.
inline Var attention(Var qkv, int64_t heads, bool causal = true) {
  return nn::append("attention", {qkv}, {{"heads", heads}, {"causal", causal}});
}

// While training: zeroes elements with this probability and scales the others by 1 / (1 - it). In
// eval: x. Each call has a mask of its own, which depends on the calling module's path, on nothing
// about ranks.
Var dropout(Var x, double probability);

}  // namespace zg
