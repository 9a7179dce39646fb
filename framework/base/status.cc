#include "framework/base/status.h"

namespace zg {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kDataLoss:
      return "data loss";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kAborted:
      return "aborted";
  }
  return "unknown";
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return fmt::format("{}: {}", StatusCodeName(code_), message_);
}

Status Status::WithContext(std::string_view context) const {
  if (ok() || context.empty()) return *this;
  return Status(code_, fmt::format("{}: {}", context, message_));
}

}  // namespace zg
