// The CUDA driver for those who may never call it: cuda.h's functions load the library at the first
// call. The runtime has no operations on memory in the order of a queue.
#pragma once

#include "framework/base/status.h"

namespace zg {

// Loads it. Error: it is not on this host, or too old. Without it every function is
// CUDA_ERROR_NOT_INITIALIZED.
Status LoadCudaDriver();

}  // namespace zg
