// The CUDA driver for programs that may never call it: cuda.h's functions load the library at the
// first call. The driver is needed because the runtime has no stream-ordered memory operations.
#pragma once

#include "framework/base/status.h"

namespace zg {

// Loads the library. Error: it is not on this host, or too old. Without it every function returns
// CUDA_ERROR_NOT_INITIALIZED.
Status LoadCudaDriver();

}  // namespace zg
