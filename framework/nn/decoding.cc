#include "framework/nn/decoding.h"

#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"
#include "framework/nn/trace.h"

namespace zg {
namespace nn {
namespace {

thread_local Decoding* current_decoding = nullptr;

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

Var Decoding::Cached(Var rows, const std::string& what) {
  Trace& trace = Trace::Of("Decoding");
  std::string cache = name_ + ".";
  if (const std::string& scope = trace.builder().scope(); !scope.empty()) cache += scope + ".";
  cache += what;
  const int number = ++num_caches_[cache];
  if (number > 1) cache += std::to_string(number);
  trace.set_fills_caches();
  return trace.Append("cached_rows", {rows, start_}, {{"name", cache}, {"size", context_}}, cache);
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

}  // namespace zg
