// The environment variables that the framework reads: the single list of them and their strict
// parsing.
//
//   ZG_ASSIGN_OR_RETURN(double timeout_s, CollectiveTimeoutSeconds());
//
// A variable that is not set has its default; one that is set and cannot be parsed is an error.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view values;  // the accepted values, with the default
  std::string_view meaning;
};

const std::vector<EnvironmentVariable>& EnvironmentVariables();

// An error if the environment has a ZG_ variable that is not in the list, such as a misspelt one,
// or an unknown instruction set.
Status CheckEnvironment();

// ZG_COLLECTIVE_TIMEOUT_S: how long a rank waits for the others in a collective.
inline constexpr double kDefaultCollectiveTimeoutSeconds = 300;
StatusOr<double> CollectiveTimeoutSeconds();

// ZG_INSTRUCTION_SET: the highest instruction set that kernels may use
// (framework/base/instruction_set.h). Each includes those before it.
enum class InstructionSet {
  kBaseline,    // available on every x86-64
  kAvx2,        // x86-64-v3, with fused multiply-add
  kAvx512,      // x86-64-v4
  kAvx512Bf16,  // products of pairs of bf16
  kAmx,         // products of tiles of bf16
};
inline constexpr InstructionSet kDefaultInstructionSet = InstructionSet::kAmx;
std::string_view InstructionSetName(InstructionSet set);
StatusOr<InstructionSet> InstructionSetFromEnvironment();

// ZG_COMM: how the ranks of an MPI job exchange tensors.
enum class CommTransport {
  kAuto,      // shared memory if all ranks are on one host, else messages
  kShared,    // the mapped memory of the other ranks
  kMessages,  // MPI messages
};
std::string_view CommTransportName(CommTransport transport);
StatusOr<CommTransport> CommTransportFromEnvironment();

}  // namespace zg
