// StartLine: the choices that a job made for its ranks at its start and why, as one line for the
// log:
//
//   2 ranks, 2 per host, 1 thread each; kernels use avx512, for bf16 products amx (the best that
//   the processor has); transport: shared memory (all ranks are on one host)
//
// ThreadsWarning: a warning about more threads than there are processors for them:
//
//   --threads 4: 2 ranks on a host have 8 threads together, but may use 2 CPUs; more than 1 thread per
//   rank will not be faster
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/job/job_options.h"

namespace zg {

// Every process of the job must call this, with the communicator that its rank uses;
// `reason_on_device` is RankOnDevice::transport_reason. Error: a rank that does not answer.
StatusOr<std::string> StartLine(const JobOptions& options, Communicator& communicator,
                                const std::string& reason_on_device);

// Likewise; empty if there is nothing to warn about.
StatusOr<std::string> ThreadsWarning(const JobOptions& options, Communicator& communicator);

}  // namespace zg
