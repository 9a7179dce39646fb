// The files that a job's flags name for a training: only one training of the job may have them.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/job/job_options.h"

namespace zg {

// For the training of this graph, which also `reports`. `owner` is the graph of the training that has the
// files; "": none so far. Error: there is one.
Status ClaimFiles(const JobOptions& options, const std::string& graph, bool reports,
                  std::string* owner);

}  // namespace zg
