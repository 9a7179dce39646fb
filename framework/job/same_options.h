// CheckSameOptions: ranks that were started with different flags are told so at the start, instead
// of training on a mixture or hanging.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

// Compares the resolved flags of all ranks (FlagsAsText); every rank must call it. The error, on
// every rank the same, is the first flag that differs, with the ranks and their values.
Status CheckSameOptions(Communicator& communicator, const std::string& flags_text);

}  // namespace zg
