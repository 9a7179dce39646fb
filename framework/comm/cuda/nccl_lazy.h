// NCCL for programs that may never call it: nccl.h's functions load the library at the first call.
#pragma once

#include "framework/base/status.h"

namespace zg {

// Loads the library. Error: it is not on this host. Without it every function returns
// ncclSystemError.
Status LoadNccl();

}  // namespace zg
