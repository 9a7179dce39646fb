#include "framework/eager/eager.h"

#include "framework/eager/session.h"

namespace zg {
namespace {

template <typename Number>
Tensor MakeTensor(eager::Session& session, DType dtype, const Shape& shape,
                  const std::vector<Number>& values) {
  const TensorType type = {dtype, shape};
  if (!shape.IsValid() || shape.num_elements() != static_cast<int64_t>(values.size())) {
    session.Fail(InvalidArgument("Eager: got {} values for a tensor {}, expected one per element",
                                 values.size(), type.ToString()));
  }
  const StatusOr<Var> constant = session.Constant(type, values.data());
  if (!constant.ok()) session.Fail(constant.status());
  return *constant;
}

}  // namespace

Eager::Eager(const EagerOptions& options) {
  StatusOr<std::shared_ptr<eager::Session>> session = eager::Session::Create(options);
  if (!session.ok()) nn::EndProcess(session.status().WithContext("Eager"));
  session_ = *std::move(session);
}

Eager::~Eager() { session_->End(); }

Tensor Eager::f32(const Shape& shape, const std::vector<float>& values) {
  return MakeTensor(*session_, DType::kF32, shape, values);
}

Tensor Eager::i64(const Shape& shape, const std::vector<int64_t>& values) {
  return MakeTensor(*session_, DType::kI64, shape, values);
}

Tensor Eager::boolean(const Shape& shape, const std::vector<bool>& values) {
  return MakeTensor(*session_, DType::kBool, shape,
                    std::vector<uint8_t>(values.begin(), values.end()));
}

void Eager::set_training(bool training) {
  const Status status = session_->SetTraining(training);
  if (!status.ok()) session_->Fail(status);
}

void Eager::step(const optim::Optimizer& optimizer, double lr_factor) {
  const Status status = session_->Step(optimizer, lr_factor);
  if (!status.ok()) session_->Fail(status);
}

void Eager::zero_grad() { session_->ZeroGradients(); }

NoGrad::NoGrad(Eager& eager) : session_(eager.session_), kept_history_(session_->keeps_history()) {
  session_->set_keeps_history(false);
}

NoGrad::~NoGrad() { session_->set_keeps_history(kept_history_); }

}  // namespace zg
