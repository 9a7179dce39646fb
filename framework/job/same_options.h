// CheckSameOptions: different flags on different ranks are an error at the start, so that they do
// not train on a mixture or hang.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

// Compares the resolved flags of all ranks (FlagsAsText); every rank must call it. The error, on
// every rank the same, is the first flag that differs, with the ranks and their values.
Status CheckSameOptions(Communicator& communicator, const std::string& flags_text);

}  // namespace zg
