#include "framework/nn/decoding.h"

#include <fmt/format.h>

#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
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

Decoding::Decoding(const std::string& name, Var start, int64_t context, Var parents)
    : name_(name),
      start_(start),
      parents_(parents),
      context_(context),
      previous_(current_decoding) {
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

std::vector<Var> Decoding::WithEarlier(Var x) const {
  std::vector<Var> inputs = {x, start_};
  if (!parents_.empty()) inputs.push_back(parents_);
  return inputs;
}

Var Decoding::Cached(Var rows, const std::string& what) {
  Trace& trace = Trace::Of("Decoding");
  const std::string name = NameOf(what);
  const std::string cache = Numbered(name, ++num_caches_[name]);
  trace.set_fills_caches();
  return trace.Append("cached_rows", WithEarlier(rows), {{"name", cache}, {"size", context_}},
                      cache);
}

Var Decoding::State(Var x, const Dims& shape, const std::string& what) {
  Trace& trace = Trace::Of("Decoding");
  const std::string name = NameOf(what);
  const std::string state = Numbered(name, ++num_states_[name]);
  trace.set_fills_caches();
  const Var rows =
      trace.Append("left_rows", WithEarlier(x),
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
  const int number = num_states_[name];
  if (number == 0 || next.shape().num_elements() == 0 || next.shape().num_dims() == 0) {
    trace.Fail(
        InvalidArgument("Decoding '{}': got {} to keep as {}, expected (B, shape), after State",
                        name_, next.shape().ToString(), what));
    return;
  }
  const std::string state = Numbered(name, number);
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

Var relative_positions(int64_t size) {
  nn::Trace& trace = nn::Trace::Of("relative_positions");
  if (size < 1) {
    return trace.Fail(
        InvalidArgument("relative_positions: got {} tokens, expected at least 1", size));
  }
  const nn::Decoding* const decoding = nn::Decoding::Current();
  const Var queries = decoding == nullptr
                          ? unsqueeze(arange(size), 0)
                          : nn::append("position_ids", {decoding->start()}, {{"size", size}});
  return unsqueeze(queries, 2) - arange(decoding == nullptr ? size : decoding->context());
}

}  // namespace zg
