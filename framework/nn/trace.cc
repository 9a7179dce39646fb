#include "framework/nn/trace.h"

#include <fmt/core.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "framework/base/random.h"
#include "framework/ir/quote.h"
#include "framework/nn/averaged_parameters.h"
#include "framework/nn/parameter_values.h"
#include "framework/nn/variable.h"
#include "framework/ops/op_names.h"

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

Status Trace::Variables::CheckUnchanged() const {
  for (const std::shared_ptr<LateChange>& change : late_changes) {
    if (!change->empty()) return FailedPrecondition("after it was used, {}", *change);
  }
  return Status::Ok();
}

Trace::Trace(ir::Graph* graph, ir::Section* section, Variables* variables, NodeRunner* runner)
    : builder_(graph, section),
      runner_(runner),
      training_(section->kind == ir::SectionKind::kForward),
      variables_(variables),
      previous_(current_trace),
      id_(NextTraceId()) {
  current_trace = this;
}

Trace::~Trace() { current_trace = previous_; }

void EndProcess(const Status& status) {
  std::fflush(nullptr);
  fmt::print(stderr, "error: {}\n", status.message());
  std::_Exit(1);  // no destructors: other ranks may be threads of this process
}

void TakeName(ir::Graph& graph, ir::Value* value, const std::string& name) {
  if (value->name == name) return;
  graph.Rename(graph.FindValue(name), value->name + ".value");
  graph.Rename(value, name);
}

Trace* Trace::Current() { return current_trace; }

Trace& Trace::Of(std::string_view caller) {
  if (current_trace != nullptr) return *current_trace;
  EndProcess(InvalidArgument(
      "{} was used outside the function given to Graph::train or Graph::eval, where a Var has no "
      "value; use it inside that function, or while a zg::Eager exists",
      caller));
}

Trace::Function::Function(std::string_view name)
    : trace_(Trace::Of(name)), is_outermost_(trace_.function_.empty()) {
  if (is_outermost_) trace_.function_ = name;
}

Trace::Function::~Function() {
  if (is_outermost_) trace_.function_ = {};
}

Status Trace::Named(const Status& status) const {
  const std::string_view message = status.message();
  const bool names_it = message.substr(0, function_.size()) == function_ &&
                        message.find_first_of(": ", function_.size()) == function_.size();
  return function_.empty() || names_it ? status : status.WithContext(function_);
}

void Trace::NameErrorOfBuilder() {
  const std::string& scope = builder_.scope();
  const std::string& message = builder_.status().message();
  const size_t begin = scope.empty() ? 0 : scope.size() + 2;  // behind "scope: "
  status_ = Named(Status(builder_.status().code(), message.substr(begin)));
  if (!scope.empty()) status_ = status_.WithContext(scope);
}

Var Trace::Hold(ir::Value* value) const {
  return Var(value, id_, runner_ == nullptr ? nullptr : runner_->Hold(value));
}

Var Trace::Append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes,
                  const std::string& name) {
  const std::vector<Var> outputs = AppendAll(op, inputs, std::move(attributes), name);
  return outputs.empty() ? Var() : outputs[0];
}

std::vector<Var> Trace::AppendAll(const std::string& op, const std::vector<Var>& inputs,
                                  ir::Attributes attributes, const std::string& name) {
  if (!status().ok()) return {};
  std::vector<ir::Value*> values;
  for (const Var& input : inputs) {
    if (const Status usable = CheckUsable(input); !usable.ok()) {
      Fail(usable.WithContext(fmt::format("{}: input {}", op, values.size())));
      return {};
    }
    values.push_back(input.value());
  }
  const std::string& scope = builder_.scope();
  const std::string scoped_op = scope.empty() ? op : scope + "." + op;
  std::vector<Var> outputs;
  for (ir::Value* output :
       builder_.Ops(op, values, std::move(attributes), name.empty() ? scoped_op : name)) {
    if (output != nullptr) outputs.push_back(Hold(output));
  }
  if (!status().ok()) NameErrorOfBuilder();
  if (runner_ == nullptr) return status().ok() ? outputs : std::vector<Var>();
  if (!status().ok()) runner_->Fail(status());
  ir::Node* const node = builder_.section()->nodes.back();
  if (const Status ran = runner_->Run(node); !ran.ok()) runner_->Fail(ran);
  if (!outputs.empty()) runner_->HasRun(node);  // a node without outputs may be gone
  return outputs;
}

std::vector<Var> Trace::RunFrom(size_t first) {
  std::vector<Var> results;
  if (runner_ == nullptr) return results;
  for (size_t i = first; i < builder_.section()->nodes.size(); ++i) {
    ir::Node* const node = builder_.section()->nodes[i];
    if (const Status ran = runner_->Run(node); !ran.ok()) runner_->Fail(ran);
    for (ir::Value* output : node->outputs) results.push_back(Hold(output));
  }
  return results;
}

Var Trace::Read(const Variable& variable) {
  for (ParameterValues* values = values_; values != nullptr; values = values->outer_) {
    if (!status().ok()) return Var();
    if (const Var value = values->Of(variable); !value.empty()) return value;
  }
  return variable.reads_as_ ? ReadAs(variable) : ReadOwn(variable);
}

bool Trace::ReadsAverage(const Variable& variable) const {
  for (const ChosenWeights* chosen = chosen_weights_; chosen != nullptr; chosen = chosen->outer_) {
    if (chosen->parameters_.count(variable.id()) != 0) return chosen->averaged_;
  }
  return !training_;
}

Trace::ReadKey Trace::KeyOf(const Variable& variable) const {
  return {variable.id(), ReadsAverage(variable)};
}

Var Trace::ReadAs(const Variable& variable) {
  const ReadKey key = KeyOf(variable);
  const auto known = read_as_.find(key);
  if (known != read_as_.end()) return known->second;
  const Var own = ReadOwn(variable);
  if (own.empty()) return own;
  // Within the function, and after an error, it reads as itself.
  read_as_[key] = own;
  const std::string scope = builder_.scope();
  builder_.set_scope(variable.module_path());
  const Var value = variable.reads_as_(own);
  builder_.set_scope(scope);
  Status status = CheckUsable(value);
  if (status.ok()) status = variable.CheckReadsAs(value);
  if (!status.ok()) return Fail(status.WithContext("reads_as"));
  read_as_[key] = value;
  if (runner_ != nullptr) read_as_.erase(key);  // it may change before it is read again
  return value;
}

Var Trace::ReadOwn(const Variable& variable) {
  if (!status().ok()) return Var();
  ir::Value*& value = variables_->values[variable.id()];
  if (value != nullptr) return WeightsOf(value, variable);
  const std::string scope = builder_.scope();
  builder_.set_scope(variable.module_path());
  if (const Status status = variable.Check(); !status.ok()) builder_.Fail(status);
  value = builder_.Variable(variable.path(), {DType::kF32, variable.shape()},
                            variable.initializer(), variable.role(), variable.is_trainable());
  builder_.set_scope(scope);
  if (runner_ != nullptr && !status().ok()) runner_->Fail(status());
  if (value == nullptr) return Var();
  TakeName(builder_.graph(), value, variable.path());
  variable.readers_.push_back(variables_->late_changes.emplace_back(new LateChange));
  if (runner_ != nullptr) {
    if (const Status ran = runner_->Run(value->producer); !ran.ok()) runner_->Fail(ran);
  }
  return WeightsOf(value, variable);
}

Var Trace::WeightsOf(ir::Value* value, const Variable& variable) {
  const bool averaged = ReadsAverage(variable);
  if (runner_ != nullptr) {
    if (!averaged) return Hold(value);
    if (!training_) return Hold(runner_->ForEval(value));
    if (const Status there = runner_->CheckAveraged(*value); !there.ok()) return Fail(there);
    return Append(op_names::kStopGradient, {Hold(runner_->ForEval(value))});
  }
  if (averaged != training_) return Hold(value);
  Var& other = other_weights_[value];
  if (other.empty()) {
    const std::string scope = builder_.scope();
    builder_.set_scope(variable.module_path());
    other = Append(op_names::kOtherWeights, {Hold(value)}, {}, variable.path());
    builder_.set_scope(scope);
  }
  return other;
}

Status Trace::CheckUsable(const Var& var) const {
  if (var.empty()) return InvalidArgument("the Var is empty; it was never given a value");
  if (var.trace_id_ == id_) return Status::Ok();
  return InvalidArgument(
      "the Var comes from another train or eval function, or from an Eager; each of them makes its "
      "own");
}

Var Trace::Fail(const Status& status) {
  builder_.Fail(Named(status));
  if (runner_ != nullptr) runner_->Fail(this->status());
  return Var();
}

int64_t Trace::NextStream() {
  const std::string& scope = builder_.scope();
  const RandomKey key = FoldIn(FoldIn(RandomKey{}, scope), num_streams_[scope]++);
  return static_cast<int64_t>(key.stream >> 1);
}

}  // namespace zg::nn
