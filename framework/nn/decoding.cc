#include "framework/nn/decoding.h"

#include <fmt/format.h>

#include "framework/nn/conditions.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
#include "framework/nn/reductions.h"
#include "framework/nn/trace.h"

namespace zg {
namespace nn {
namespace {

thread_local Decoding* current_decoding = nullptr;

// The names of a module's first, second, ... call.
std::string Numbered(const std::string& name, int number) {
  return number == 1 ? name : name + std::to_string(number);
}

}  // namespace

Decoding::Decoding(const std::string& name, Var start, int64_t context)
    : name_(name), start_(start), context_(context), previous_(current_decoding) {
  Trace& trace = Trace::Of("Decoding");
  if (const Status legal = CheckName("Decoding", name); !legal.ok()) trace.Fail(legal);
  if (trace.training()) {
    trace.Fail(InvalidArgument(
        "Decoding '{}': got the training function, expected one of Graph::eval", name));
  }
  if (context < 1) {
    trace.Fail(InvalidArgument("Decoding '{}': context is {}, expected at least 1", name, context));
  }
  current_decoding = this;
}

Decoding::~Decoding() { current_decoding = previous_; }

Decoding* Decoding::Current() { return current_decoding; }

std::string Decoding::NameOf(const std::string& what) const {
  const std::string& scope = Trace::Of("Decoding").builder().scope();
  return scope.empty() ? fmt::format("{}.{}", name_, what)
                       : fmt::format("{}.{}.{}", name_, scope, what);
}

Var Decoding::Cached(Var rows, const std::string& what) {
  Trace& trace = Trace::Of("Decoding");
  const std::string name = NameOf(what);
  const std::string cache = Numbered(name, ++num_caches_[name]);
  trace.set_fills_caches();
  return trace.Append("cached_rows", {rows, start_}, {{"name", cache}, {"size", context_}}, cache);
}

Var Decoding::State(Var x, const Dims& shape, const std::string& what) {
  Trace& trace = Trace::Of("Decoding");
  const std::string name = NameOf(what);
  const std::string state = Numbered(name, ++num_states_[name]);
  trace.set_fills_caches();
  const Var rows =
      trace.Append("left_rows", {x, start_},
                   {{"name", state}, {"channels", Shape(shape).num_elements()}}, state);
  if (rows.empty()) return rows;
  Dims whole = shape;
  whole.insert(whole.begin(), rows.dim(0));
  return reshape(rows, whole);
}

void Decoding::Keep(Var next, const std::string& what) {
  Trace& trace = Trace::Of("Decoding");
  if (const Status usable = trace.CheckUsable(next); !usable.ok()) {
    trace.Fail(usable);
    return;
  }
  const std::string name = NameOf(what);
  const std::string state = Numbered(name, num_states_[name]);
  const int64_t texts = next.dim(0);
  const Var rows = reshape(next, {texts, 1, next.shape().num_elements() / texts});
  trace.Append("keep_rows", {rows, arange(1)}, {{"name", state}}, state + ".kept");
}

}  // namespace nn

Var at_positions(Var table, int64_t size) {
  nn::Trace& trace = nn::Trace::Of("at_positions");
  if (!trace.status().ok()) return Var();
  if (table.shape().num_dims() != 2 || size < 1 || size > table.dim(0)) {
    return trace.Fail(InvalidArgument(
        "at_positions: got {} tokens and a table {}, expected (T, C) with at least as many rows",
        size, table.shape().ToString()));
  }
  if (const nn::Decoding* decoding = nn::Decoding::Current()) {
    return embedding(nn::append("position_ids", {decoding->start()}, {{"size", size}}), table);
  }
  return size == table.dim(0) ? table : slice(table, 0, 0, size);
}

Var recurrence_over_tokens(Var decay, Var x) {
  return nn::Checked("recurrence_over_tokens", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("recurrence_over_tokens")
                           .CheckUsable(decay)
                           .WithContext("recurrence_over_tokens: decay"));
    if (x.shape().num_dims() < 2 || decay.shape() != x.shape()) {
      return InvalidArgument("{}: got a decay {}, expected both (B, S, ...)",
                             nn::Caller("recurrence_over_tokens", x), decay.shape().ToString());
    }
    nn::Decoding* const decoding = nn::Decoding::Current();
    if (decoding == nullptr) return linear_recurrence(decay, x, 1);
    // What the last run has left goes into the first element. In f32 also in mixed precision: neither
    // op here rounds f32 to 16 bits.
    const int64_t size = x.dim(1);
    Dims shape = x.shape().dims();
    shape.erase(shape.begin(), shape.begin() + 2);
    const Var left = decoding->State(x, shape, "recurrence");
    const Var carried = slice(decay, 1, 0, 1) * unsqueeze(left, 1);
    Dims positions(shape.size() + 1, 1);
    positions[0] = size;
    const Var is_first = reshape(equal(arange(size), 0.0), positions);
    const Var h = linear_recurrence(decay, where(is_first, x + pad(carried, 1, 0, size - 1), x), 1);
    decoding->Keep(select(h, 1, size - 1), "recurrence");
    return h;
  });
}

Var selective_scan(Var x, Var step, Var a, Var b, Var c) {
  return nn::Checked("selective_scan", x, [&]() -> StatusOr<Var> {
    std::vector<Var> operands = {x, step, a, b, c};
    nn::Decoding* const decoding = nn::Decoding::Current();
    if (decoding != nullptr && a.shape().num_dims() == 2) {
      operands.push_back(decoding->State(x, a.shape().dims(), "scan"));
    }
    const std::vector<Var> results = nn::append_all("selective_scan", operands);
    if (results.empty()) return Var();
    if (decoding != nullptr) decoding->Keep(results[1], "scan");
    return results[0];
  });
}

Var with_earlier_tokens(Var x, int64_t count) {
  return nn::Checked("with_earlier_tokens", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() != 3 || count < 1) {
      return InvalidArgument("{}: got {} earlier tokens, expected at least 1, of x (B, S, C)",
                             nn::Caller("with_earlier_tokens", x), count);
    }
    nn::Decoding* const decoding = nn::Decoding::Current();
    if (decoding == nullptr) return pad(x, 1, count, 0);
    const Var all = concat({decoding->State(x, {count, x.dim(2)}, "earlier"), x}, 1);
    decoding->Keep(slice(all, 1, x.dim(1), x.dim(1) + count), "earlier");
    return all;
  });
}

}  // namespace zg
