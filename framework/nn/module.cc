#include "framework/nn/module.h"

#include <algorithm>

#include "framework/nn/trace.h"

namespace zg::nn {

namespace {

std::vector<NamedParameter> NamesAndShapes(const std::vector<Variable*>& variables) {
  std::vector<NamedParameter> named;
  for (const Variable* variable : variables) named.push_back({variable->path(), variable->shape()});
  return named;
}

template <typename T>
std::vector<T*> As(const std::vector<Variable*>& variables) {
  std::vector<T*> handles;
  for (Variable* variable : variables) handles.push_back(static_cast<T*>(variable));
  return handles;
}

}  // namespace

Module::Module(const Module* parent, const std::string& name)
    : path_(parent == nullptr ? name : JoinPath(parent->path(), name)),
      tree_(parent == nullptr ? std::make_shared<ModelTree>() : parent->tree_) {
  tree_->Add(this);
}

Module::~Module() { tree_->Remove(this); }

std::vector<Variable*> Module::Variables(Role role) const {
  std::vector<Variable*> variables = tree_->VariablesOf(path_);
  variables.erase(std::remove_if(variables.begin(), variables.end(),
                                 [&](const Variable* one) { return one->role() != role; }),
                  variables.end());
  return variables;
}

std::vector<NamedParameter> Module::named_parameters() const {
  return NamesAndShapes(Variables(Role::kParameter));
}

std::vector<NamedParameter> Module::named_buffers() const {
  return NamesAndShapes(Variables(Role::kBuffer));
}

std::vector<Parameter*> Module::parameters() const {
  return As<Parameter>(Variables(Role::kParameter));
}

std::vector<Buffer*> Module::buffers() const { return As<Buffer>(Variables(Role::kBuffer)); }

std::vector<NamedModule> Module::named_modules() const {
  std::vector<NamedModule> named;
  for (Module* module : tree_->ModulesOf(path_)) named.push_back({module->path(), module});
  return named;
}

void Module::apply(const std::function<void(Module&)>& function) const {
  for (Module* module : tree_->ModulesOf(path_)) function(*module);
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const NamedParameter& parameter : named_parameters()) {
    count += parameter.shape.num_elements();
  }
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
