// The errors of a job's ranks: as strings that ranks send each other, and all of them as one text
// for people.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg {

// Converts a status to one string, and back.
std::string PackStatus(const Status& status);
Status UnpackStatus(const std::string& packed);

// "rank 2", "ranks 0, 1, 2", "ranks 0, 1, 2 and 13 more".
std::string FormatRanks(const std::vector<int>& ranks);

// The errors of all ranks on one screen: each message once, with the ranks that have it.
std::string FormatErrors(const std::vector<Status>& by_rank);

// The exit code of a job with such an error: 2 for wrong input, which a second try does not mend.
int ExitCode(StatusCode code);

}  // namespace zg
