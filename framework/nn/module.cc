#include "framework/nn/module.h"

#include "framework/nn/trace.h"

namespace zg::nn {

Module::Module(const Module* parent, const std::string& name)
    : path_(parent == nullptr ? name : JoinPath(parent->path(), name)) {}

Var Module::operator()(Var x) {
  Scope scope(*this);
  return forward(x);
}

Var Module::forward(Var) {
  return fail(InvalidArgument("the module has no `Var forward(Var)`, so it cannot be called"));
}

Var Module::fail(const Status& status) const {
  Scope scope(*this);
  Trace* trace = Trace::Current();
  return trace == nullptr ? Var() : trace->Fail(status);
}

Module::Scope::Scope(const Module& module) {
  Trace* trace = Trace::Current();
  if (trace == nullptr) return;
  previous_ = trace->builder().scope();
  trace->builder().set_scope(module.path());
}

Module::Scope::~Scope() {
  if (Trace* trace = Trace::Current()) trace->builder().set_scope(previous_);
}

std::string JoinPath(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

}  // namespace zg::nn
