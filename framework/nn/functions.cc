#include "framework/nn/functions.h"

#include "framework/nn/trace.h"

namespace zg {
namespace {

Var Append(const char* op, std::vector<Var> inputs, ir::Attributes attributes = {}) {
  nn::Trace* trace = nn::Trace::Current();
  return trace == nullptr ? Var() : trace->Append(op, inputs, std::move(attributes));
}

}  // namespace

Var add(Var a, Var b) { return Append("add", {a, b}); }
Var subtract(Var a, Var b) { return Append("subtract", {a, b}); }
Var multiply(Var a, Var b) { return Append("multiply", {a, b}); }
Var scale(Var x, double factor) { return Append("scale", {x}, {{"factor", factor}}); }
Var add_broadcast(Var x, Var r) { return Append("add_broadcast", {x, r}); }

Var relu(Var x) { return Append("relu", {x}); }
Var gelu(Var x) { return Append("gelu", {x}); }

Var linear(Var x, Var weight) { return Append("linear", {x, weight}); }
Var linear(Var x, Var weight, Var bias) { return Append("linear", {x, weight, bias}); }
Var embedding(Var ids, Var table) { return Append("embedding", {table, ids}); }
Var layer_norm(Var x, Var gamma, Var beta, double epsilon) {
  return Append("layer_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
}

Var attention(Var qkv, int64_t heads, bool causal) {
  return Append("attention", {qkv}, {{"heads", heads}, {"causal", causal}});
}

Var dropout(Var x, double probability) {
  nn::Trace* trace = nn::Trace::Current();
  if (trace == nullptr) return Var();
  if (!(probability >= 0.0 && probability < 1.0)) {
    return trace->Fail(
        InvalidArgument("dropout: probability is {}, expected 0 <= probability < 1", probability));
  }
  if (!trace->training() || probability == 0.0) return x;
  return trace->Append("dropout", {x},
                       {{"probability", probability}, {"stream", trace->NextStream()}});
}

}  // namespace zg
