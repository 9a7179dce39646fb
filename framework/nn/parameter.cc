#include "framework/nn/parameter.h"

#include <algorithm>
#include <atomic>

#include "framework/nn/module.h"
#include "framework/nn/trace.h"

namespace zg::nn {
namespace {

int64_t NextParameterId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

Parameter::Parameter(const Module* module, const std::string& name, Shape shape,
                     Initializer initializer)
    : tree_(module == nullptr ? nullptr : module->tree_),
      module_path_(module == nullptr ? "" : module->path()),
      path_(JoinPath(module_path_, name)),
      shape_(std::move(shape)),
      initializer_(initializer),
      id_(NextParameterId()) {
  if (tree_ != nullptr) tree_->Add(this);
}

Parameter::~Parameter() {
  if (tree_ != nullptr) tree_->Remove(this);
}

Parameter::operator Var() const {
  return Trace::Of(fmt::format("parameter '{}'", path_)).Read(*this);
}

Status Parameter::Check() const {
  ZG_RETURN_IF_ERROR(CheckName("parameter", path_));
  if (tree_ != nullptr) ZG_RETURN_IF_ERROR(tree_->CheckUnique(*this));
  const auto& dims = shape_.dims();
  if (std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 1; })) {
    return Status::Ok();
  }
  return InvalidArgument("parameter '{}': got shape {}, expected dims >= 1", path_,
                         shape_.ToString());
}

}  // namespace zg::nn
