// Status and StatusOr: how an error that a user can cause is passed to the program's edge.
//
//   Status Load(const std::string& path) {
//     ZG_ASSIGN_OR_RETURN(File file, File::Open(path));
//     if (file.size() == 0) return InvalidArgument("{}: the file is empty", path);
//     return Status::Ok();
//   }
//
// A message names who, what was got, what was expected, and a hint. Broken invariants of the
// framework itself are not statuses but ZG_CHECK (check.h).
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/check.h"

namespace zg {

enum class StatusCode {
  kOk,
  kInvalidArgument,     // the user's input is wrong: flag, shape, name, configuration
  kNotFound,            // a file, parameter or program is missing
  kDataLoss,            // a file is truncated or corrupt
  kFailedPrecondition,  // the environment does not allow it: no mpirun, no GPU, too little memory
  kDeadlineExceeded,    // a rank did not arrive in time
  kAborted,             // another rank failed or disagrees
};

std::string_view StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status Ok() { return Status(); }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  std::string ToString() const;

  // The same status with `context` and ": " put before its message; ok stays ok.
  Status WithContext(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

template <typename... Args>
Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kNotFound, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kDataLoss, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status FailedPrecondition(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status DeadlineExceeded(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kDeadlineExceeded, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status Aborted(fmt::format_string<Args...> format, Args&&... args) {
  return Status(StatusCode::kAborted, fmt::format(format, std::forward<Args>(args)...));
}

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value)
      : value_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` works
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT: implicit, likewise
    ZG_CHECK(!status_.ok(), "a StatusOr without a value needs an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    ZG_CHECK(ok(), "value() of an error: {}", status_.message());
    return *value_;
  }
  const T& value() const& {
    ZG_CHECK(ok(), "value() of an error: {}", status_.message());
    return *value_;
  }
  T&& value() && {
    ZG_CHECK(ok(), "value() of an error: {}", status_.message());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace zg

#define ZG_CONCAT_INNER(a, b) a##b
#define ZG_CONCAT(a, b) ZG_CONCAT_INNER(a, b)

#define ZG_RETURN_IF_ERROR(expression)                                            \
  do {                                                                            \
    if (::zg::Status zg_status = (expression); !zg_status.ok()) return zg_status; \
  } while (false)

// ZG_ASSIGN_OR_RETURN(int n, ParseInt(text)); uses commas in the expression freely.
#define ZG_ASSIGN_OR_RETURN(declaration, ...) \
  ZG_ASSIGN_OR_RETURN_INNER(ZG_CONCAT(zg_status_or_, __LINE__), declaration, __VA_ARGS__)
#define ZG_ASSIGN_OR_RETURN_INNER(temporary, declaration, ...) \
  auto temporary = (__VA_ARGS__);                              \
  if (!temporary.ok()) return temporary.status();              \
  declaration = std::move(temporary).value()
