#include "framework/nn/trace.h"

#include <fmt/core.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "framework/base/random.h"
#include "framework/ir/quote.h"
#include "framework/nn/parameter.h"

namespace zg::nn {
namespace {

thread_local Trace* current_trace = nullptr;

int64_t NextTraceId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

Status CheckName(std::string_view what, std::string_view name) {
  char last = '.';
  bool legal = true;
  for (const char c : name) {
    legal = legal && IsNameCharacter(c) && (c != '.' || last != '.');
    last = c;
  }
  if (legal && last != '.') return Status::Ok();
  return InvalidArgument("{} name '{}': expected letters, digits and '_', in parts joined by '.'",
                         what, name);
}

Trace::Trace(ir::Graph* graph, ir::Section* section, Variables* variables)
    : builder_(graph, section),
      training_(section->kind == ir::SectionKind::kForward),
      variables_(variables),
      previous_(current_trace),
      id_(NextTraceId()) {
  current_trace = this;
}

Trace::~Trace() { current_trace = previous_; }

Trace* Trace::Current() { return current_trace; }

Trace& Trace::Of(std::string_view caller) {
  if (current_trace != nullptr) return *current_trace;
  std::fflush(nullptr);
  fmt::print(stderr,
             "error: {} was used outside the function given to Graph::train or Graph::eval, where "
             "a Var has no value; use it inside that function\n",
             caller);
  std::_Exit(1);  // no destructors: other ranks may be threads of this process
}

Var Trace::Append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes,
                  const std::string& name) {
  if (!status().ok()) return Var();
  std::vector<ir::Value*> values;
  for (const Var& input : inputs) {
    if (const Status usable = CheckUsable(input); !usable.ok()) {
      return Fail(usable.WithContext(fmt::format("{}: input {}", op, values.size())));
    }
    values.push_back(input.value());
  }
  const std::string& scope = builder_.scope();
  const std::string scoped_op = scope.empty() ? op : scope + "." + op;
  const std::vector<ir::Value*> outputs =
      builder_.Ops(op, values, std::move(attributes), name.empty() ? scoped_op : name);
  return outputs.empty() || outputs[0] == nullptr ? Var() : Var(outputs[0], id_);
}

Var Trace::Read(const Parameter& parameter) {
  if (!status().ok()) return Var();
  ir::Value*& value = (*variables_)[parameter.id()];
  if (value != nullptr) return Var(value, id_);
  const std::string scope = builder_.scope();
  builder_.set_scope(parameter.module_path());
  if (const Status status = parameter.Check(); !status.ok()) builder_.Fail(status);
  value = builder_.Variable(parameter.path(), {DType::kF32, parameter.shape()},
                            parameter.initializer(), Role::kParameter, parameter.is_trainable());
  builder_.set_scope(scope);
  if (value == nullptr) return Var();
  if (value->name != parameter.path()) {  // a node took the name first; the parameter's wins
    builder_.graph().Rename(builder_.graph().FindValue(parameter.path()), value->name + ".value");
    builder_.graph().Rename(value, parameter.path());
  }
  return Var(value, id_);
}

Status Trace::CheckUsable(Var var) const {
  if (var.empty()) return InvalidArgument("the Var is empty; it was never given a value");
  if (var.trace_id_ == id_) return Status::Ok();
  return InvalidArgument(
      "the Var comes from another train or eval function; each of them makes its own");
}

Var Trace::Fail(const Status& status) {
  builder_.Fail(status);
  return Var();
}

int64_t Trace::NextStream() {
  const std::string& scope = builder_.scope();
  const RandomKey key = FoldIn(FoldIn(RandomKey{}, scope), num_streams_[scope]++);
  return static_cast<int64_t>(key.stream >> 1);
}

}  // namespace zg::nn
