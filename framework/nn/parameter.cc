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
    : module_path_(module == nullptr ? "" : module->path()),
      path_(JoinPath(module_path_, name)),
      shape_(std::move(shape)),
      initializer_(initializer),
      id_(NextParameterId()) {}

Parameter::operator Var() const {
  Trace* trace = Trace::Current();
  return trace == nullptr ? Var() : trace->Read(*this);
}

Status Parameter::Check() const {
  ZG_RETURN_IF_ERROR(CheckName("parameter", path_));
  const auto& dims = shape_.dims();
  if (std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 1; })) {
    return Status::Ok();
  }
  return InvalidArgument("parameter '{}': got shape {}, expected dims >= 1", path_,
                         shape_.ToString());
}

}  // namespace zg::nn
