// NCCL for those who may never call it: nccl.h's functions load the library at the first call.
#pragma once

#include "framework/base/status.h"

namespace zg {

// Loads it. Error: it is not on this host. Without it every function is ncclSystemError.
Status LoadNccl();

}  // namespace zg
