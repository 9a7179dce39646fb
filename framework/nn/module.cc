#include "framework/nn/module.h"

#include "framework/nn/trace.h"

namespace zg::nn {

Module::Module(const Module* parent, const std::string& name)
    : path_(parent == nullptr ? name : JoinPath(parent->path(), name)),
      tree_(parent == nullptr ? std::make_shared<ParameterTree>() : parent->tree_) {}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> named;
  for (const Parameter* parameter : tree_->Of(path_)) {
    named.push_back({parameter->path(), parameter->shape()});
  }
  return named;
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const Parameter* parameter : tree_->Of(path_)) count += parameter->shape().num_elements();
  return count;
}

Var Module::operator()(Var x) {
  Scope scope(*this);
  return forward(x);
}

Var Module::forward(Var) {
  return fail(InvalidArgument("the module has no `Var forward(Var)`, so it cannot be called"));
}

Var Module::fail(const Status& status) const {
  Scope scope(*this);
  return Trace::Current()->Fail(status);
}

Module::Scope::Scope(const Module& module) {
  Trace& trace =
      Trace::Of(module.path().empty() ? "a model" : fmt::format("module '{}'", module.path()));
  previous_ = trace.builder().scope();
  trace.builder().set_scope(module.path());
}

Module::Scope::~Scope() {
  if (Trace* trace = Trace::Current()) trace->builder().set_scope(previous_);
}

std::string JoinPath(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

}  // namespace zg::nn
