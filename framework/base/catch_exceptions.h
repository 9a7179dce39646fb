// CatchExceptions: turns what a function of the user's throws into an error. The framework itself throws
// nothing.
#pragma once

#include <exception>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

// The function's status; of an exception "{what}: the program threw: ...".
template <typename Function>
Status CatchExceptions(std::string_view what, const Function& function) {
  try {
    return function();
  } catch (const std::exception& exception) {
    return FailedPrecondition("{}: the program threw: {}", what, exception.what());
  } catch (...) {
    return FailedPrecondition("{}: the program threw something that is no std::exception", what);
  }
}

}  // namespace zg
