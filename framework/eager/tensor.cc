#include "framework/eager/tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "framework/eager/session.h"
#include "framework/eager/tensor_text.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Ends the process for a Var without a value.
std::shared_ptr<eager::Session> SessionOf(const Tensor& tensor, const char* function) {
  if (auto session = eager::Session::Of(tensor)) return session;
  nn::EndProcess(InvalidArgument(
      "Tensor::{}: {}", function,
      tensor.empty() ? "the tensor is empty; it was never given a value"
                     : "the Var belongs to a graph, which has no values while it is traced"));
}

// Ends the process if the device fails.
const std::byte* Read(const std::shared_ptr<eager::Session>& session, const Tensor& tensor,
                      std::vector<std::byte>* scratch) {
  const StatusOr<const std::byte*> bytes = session->Read(*tensor.value(), scratch);
  if (!bytes.ok()) session->Fail(bytes.status());
  return *bytes;
}

std::vector<float> ToFloats(const TensorType& type, const std::byte* data) {
  std::vector<float> floats(type.shape.num_elements());
  WithFloatType(type.dtype, [&](auto element) {
    for (float& one : floats) {
      std::memcpy(&element, data, sizeof(element));
      one = ToF32(element);
      data += sizeof(element);
    }
  });
  return floats;
}

}  // namespace

std::vector<float> Tensor::values() const {
  const auto session = SessionOf(*this, "values");
  if (!IsFloat(dtype())) {
    nn::EndProcess(InvalidArgument("Tensor::values: it is {}, expected floating-point numbers",
                                   value()->type.ToString()));
  }
  std::vector<std::byte> scratch;
  return ToFloats(value()->type, Read(session, *this, &scratch));
}

std::vector<int64_t> Tensor::integers() const {
  const auto session = SessionOf(*this, "integers");
  std::vector<std::byte> scratch;
  if (dtype() == DType::kBool) {
    const auto* const truths = reinterpret_cast<const uint8_t*>(Read(session, *this, &scratch));
    return std::vector<int64_t>(truths, truths + shape().num_elements());
  }
  if (dtype() != DType::kI64) {
    nn::EndProcess(InvalidArgument("Tensor::integers: it is {}, expected i64 or bool",
                                   value()->type.ToString()));
  }
  std::vector<int64_t> values(shape().num_elements());
  std::memcpy(values.data(), Read(session, *this, &scratch), values.size() * sizeof(int64_t));
  return values;
}

float Tensor::item() const {
  const std::vector<float> all = values();
  if (all.size() == 1) return all[0];
  nn::EndProcess(
      InvalidArgument("Tensor::item: it is {}, expected one element", value()->type.ToString()));
}

void Tensor::backward() const {
  const auto session = SessionOf(*this, "backward");
  if (const Status status = session->Backward(value()); !status.ok()) session->Fail(status);
}

void Tensor::require_grad() const {
  const auto session = SessionOf(*this, "require_grad");
  if (!IsFloat(dtype())) {
    nn::EndProcess(
        InvalidArgument("Tensor::require_grad: it is {}, expected floating-point numbers",
                        value()->type.ToString()));
  }
  session->RequireGradient(value());
}

Tensor Tensor::grad() const { return SessionOf(*this, "grad")->GradientOf(value()); }

std::string Tensor::to_string() const {
  if (empty()) return "empty";
  const TensorType& type = value()->type;
  const auto session = eager::Session::Of(*this);
  if (session == nullptr) return fmt::format("%{}: {}", value()->name, type.ToString());
  std::vector<std::byte> scratch;
  return type.ToString() + "\n" + eager::ElementsText(type, Read(session, *this, &scratch));
}

}  // namespace zg
