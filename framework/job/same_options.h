// CheckSameOptions: makes different flags on different ranks an error at the start, so that the
// ranks neither train on a mixture nor hang.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

// Compares the resolved flags of all ranks (FlagsAsText); every rank must call it. The error, the
// same on every rank, is the first flag that differs, with the ranks and their values.
Status CheckSameOptions(Communicator& communicator, const std::string& flags_text);

}  // namespace zg
