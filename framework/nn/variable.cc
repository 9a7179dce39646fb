#include "framework/nn/variable.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "framework/nn/module.h"
#include "framework/nn/trace.h"

namespace zg::nn {
namespace {

int64_t NextVariableId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

// Error: numbers that no tensor could be initialised with.
Status CheckInitializer(const Initializer& initializer) {
  using Kind = Initializer::Kind;
  const bool is_random = initializer.kind == Kind::kNormal ||
                         initializer.kind == Kind::kTruncatedNormal ||
                         initializer.kind == Kind::kUniform;
  const bool is_finite = std::isfinite(initializer.scale) && std::isfinite(initializer.mean) &&
                         (initializer.kind != Kind::kTruncatedNormal || initializer.bound > 0.0);
  // An interval that is given from above, such as Uniform(1, -1), has a scale below 0, too.
  if (is_finite && !(is_random && initializer.scale < 0.0)) return Status::Ok();
  return InvalidArgument("got the initializer {}, expected finite numbers{}",
                         initializer.ToString(), is_random ? ", and a scale >= 0" : "");
}

}  // namespace

Variable::Variable(const Module* module, const std::string& name, Shape shape,
                   Initializer initializer, Role role)
    : initializer_(initializer),
      tree_(module == nullptr ? nullptr : module->tree_),
      module_path_(module == nullptr ? "" : module->path()),
      path_(JoinPath(module_path_, name)),
      shape_(std::move(shape)),
      role_(role),
      id_(NextVariableId()) {
  if (tree_ != nullptr) tree_->Add(this);
}

Variable::~Variable() {
  if (tree_ != nullptr) tree_->Remove(this);
}

void Variable::Changed(const char* what) {
  for (const std::weak_ptr<LateChange>& reader : readers_) {
    const std::shared_ptr<LateChange> change = reader.lock();
    if (change != nullptr && change->empty()) *change = fmt::format("'{}' {}", path_, what);
  }
}

Variable::operator Var() const {
  return Trace::Of(fmt::format("{} '{}'", EnumName(role_), path_)).Read(*this);
}

Status Variable::Check() const {
  ZG_RETURN_IF_ERROR(CheckName(EnumName(role_), path_));
  if (tree_ != nullptr) ZG_RETURN_IF_ERROR(tree_->CheckUnique(*this));
  const auto& dims = shape_.dims();
  if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 1; })) {
    return InvalidArgument("{} '{}': got shape {}, expected dims >= 1", EnumName(role_), path_,
                           shape_.ToString());
  }
  return CheckInitializer(initializer_).WithContext(fmt::format("{} '{}'", EnumName(role_), path_));
}

Status Variable::CheckReadsAs(Var value) const {
  const TensorType& type = value.value()->type;
  if (type == TensorType{DType::kF32, shape_}) return Status::Ok();
  return InvalidArgument("got {} for '{}', expected f32{}", type.ToString(), path_,
                         shape_.ToString());
}

}  // namespace zg::nn
