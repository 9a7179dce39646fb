#include "framework/base/env.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

namespace zg {
namespace {

constexpr char kCollectiveTimeout[] = "ZG_COLLECTIVE_TIMEOUT_S";
constexpr char kComm[] = "ZG_COMM";
constexpr char kInstructionSet[] = "ZG_INSTRUCTION_SET";

constexpr InstructionSet kInstructionSets[] = {InstructionSet::kBaseline, InstructionSet::kAvx2,
                                               InstructionSet::kAvx512, InstructionSet::kAvx512Bf16,
                                               InstructionSet::kAmx};

std::optional<std::string_view> Get(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return std::string_view(text);
}

Status BadValue(std::string_view name, std::string_view got, std::string_view expected) {
  return InvalidArgument("environment variable {} is '{}'; expected {}", name, got, expected);
}

}  // namespace

const std::vector<EnvironmentVariable>& EnvironmentVariables() {
  static const auto* const variables = new std::vector<EnvironmentVariable>{
      {kCollectiveTimeout, "seconds > 0 (300)",
       "how long a rank waits in a collective for the others before it ends the job"},
      {kComm, "auto | shared | messages (auto)",
       "how the ranks of an MPI job exchange tensors: through mapped memory or by messages"},
      {kInstructionSet, "baseline | avx2 | avx512 | avx512_bf16 | amx (amx: all)",
       "the best that kernels may use of the processor; results in f32 have the same bits with "
       "each"},
      {"ZG_CUDA", "off", "when building: leave an installed CUDA toolkit alone"},
      {"ZG_LAUNCHER_COLUMNS", "columns, or 0",
       "set by the launcher for the ranks it starts: the width of the terminal they write to"},
      {"ZG_EXPECTED_RANKS", "ranks", "in tests: the number of ranks that mpirun was asked for"},
      {"ZG_TEST_SHARED_GPU", "1",
       "in tests: ranks over NCCL may share a GPU (framework/device/cuda_support.h)"},
  };
  return *variables;
}

Status CheckEnvironment() {
  const std::vector<EnvironmentVariable>& known = EnvironmentVariables();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (name.substr(0, 3) != "ZG_") continue;
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](const auto& variable) { return variable.name == name; });
    if (is_known) continue;
    std::string names;
    for (const EnvironmentVariable& variable : known) {
      names += names.empty() ? "" : ", ";
      names += variable.name;
    }
    return InvalidArgument("environment variable {} is not known; there are {}", name, names);
  }
  return InstructionSetFromEnvironment().status();
}

StatusOr<double> CollectiveTimeoutSeconds() {
  const std::optional<std::string_view> text = Get(kCollectiveTimeout);
  if (!text) return kDefaultCollectiveTimeoutSeconds;
  double seconds = 0;
  const char* const end = text->data() + text->size();
  const auto [parsed_to, error] = std::from_chars(text->data(), end, seconds);
  if (error != std::errc() || parsed_to != end || !std::isfinite(seconds) || seconds <= 0) {
    return BadValue(kCollectiveTimeout, *text, "a number of seconds > 0, such as 300");
  }
  return seconds;
}

std::string_view InstructionSetName(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline:
      return "baseline";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx512Bf16:
      return "avx512_bf16";
    case InstructionSet::kAmx:
      return "amx";
  }
  return "?";
}

StatusOr<InstructionSet> InstructionSetFromEnvironment() {
  const std::optional<std::string_view> text = Get(kInstructionSet);
  if (!text) return kDefaultInstructionSet;
  for (const InstructionSet set : kInstructionSets) {
    if (*text == InstructionSetName(set)) return set;
  }
  return BadValue(kInstructionSet, *text, "baseline, avx2, avx512, avx512_bf16 or amx");
}

std::string_view CommTransportName(CommTransport transport) {
  switch (transport) {
    case CommTransport::kAuto:
      return "auto";
    case CommTransport::kShared:
      return "shared";
    case CommTransport::kMessages:
      return "messages";
  }
  return "?";
}

StatusOr<CommTransport> CommTransportFromEnvironment() {
  const std::optional<std::string_view> text = Get(kComm);
  if (!text) return CommTransport::kAuto;
  for (CommTransport transport :
       {CommTransport::kAuto, CommTransport::kShared, CommTransport::kMessages}) {
    if (*text == CommTransportName(transport)) return transport;
  }
  return BadValue(kComm, *text, "auto, shared or messages");
}

}  // namespace zg
