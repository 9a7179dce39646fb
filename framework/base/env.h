// The environment variables that the framework reads: the one list of them and their strict
// parsing.
//
//   ZG_ASSIGN_OR_RETURN(double timeout_s, CollectiveTimeoutSeconds());
//
// A variable that is not set means its default; one that is set and cannot be read is an error.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view values;  // what may be given, with the default
  std::string_view meaning;
};

const std::vector<EnvironmentVariable>& EnvironmentVariables();

// An error if the environment has a ZG_ variable that is not in the list, such as a misspelt one.
Status CheckEnvironment();

// ZG_COLLECTIVE_TIMEOUT_S: how long a rank waits in a collective for the others.
inline constexpr double kDefaultCollectiveTimeoutSeconds = 300;
StatusOr<double> CollectiveTimeoutSeconds();

// ZG_COMM: how the ranks of an MPI job exchange tensors.
enum class CommTransport {
  kAuto,      // shared memory if all ranks are on one host, else messages
  kShared,    // the memory of the other ranks, mapped
  kMessages,  // MPI messages
};
std::string_view CommTransportName(CommTransport transport);
StatusOr<CommTransport> CommTransportFromEnvironment();

}  // namespace zg
