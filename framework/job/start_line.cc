#include "framework/job/start_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "framework/base/instruction_set.h"
#include "framework/kernels/cpu/gemm_amx.h"
#include "framework/kernels/cpu/gemm_pairs.h"

namespace zg {
namespace {

std::string_view Bf16Products() {
  if (HasAmxProducts()) return InstructionSetName(InstructionSet::kAmx);
  if (PairProductsAreFast()) return InstructionSetName(InstructionSet::kAvx512Bf16);
  return InstructionSetName(VectorInstructionSet());
}

StatusOr<std::string> KernelsText(const JobOptions& options) {
  if (options.device != "cpu") return "kernels are those of --device " + options.device;
  ZG_ASSIGN_OR_RETURN(const InstructionSet cap, InstructionSetFromEnvironment());
  const std::string_view vectors = InstructionSetName(VectorInstructionSet());
  const std::string_view products = Bf16Products();
  return fmt::format("kernels use {}{} ({})", vectors,
                     products == vectors ? "" : fmt::format(", for bf16 products {}", products),
                     cap == kDefaultInstructionSet
                         ? "the best that the processor has"
                         : fmt::format("ZG_INSTRUCTION_SET={}", InstructionSetName(cap)));
}

StatusOr<std::string> RanksText(const JobOptions& options, Communicator& communicator) {
  if (options.ranks_in_process > 1) {
    return fmt::format("{} ranks in one process, a thread each", options.ranks_in_process);
  }
  if (communicator.size() == 1) return std::string("1 rank, 1 thread");
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> names, communicator.Exchange("hosts", name));
  std::map<std::string, int> per_host;
  for (const std::string& host : names) ++per_host[host];
  const auto [least, most] =
      std::minmax_element(per_host.begin(), per_host.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string range = least->second == most->second
                                ? fmt::to_string(most->second)
                                : fmt::format("{} to {}", least->second, most->second);
  return fmt::format("{} ranks, {} per host, 1 thread each", names.size(), range);
}

StatusOr<std::string> ReasonOfTransport(const JobOptions& options, std::string_view transport) {
  if (options.device == "cuda") return "--gpu-collectives " + options.gpu_collectives;
  ZG_ASSIGN_OR_RETURN(const CommTransport asked, CommTransportFromEnvironment());
  if (asked != CommTransport::kAuto) return fmt::format("ZG_COMM={}", CommTransportName(asked));
  return std::string(transport == "messages" ? "the ranks are on several hosts"
                                             : "all ranks are on one host");
}

StatusOr<std::string> TransportText(const JobOptions& options, const Communicator& communicator) {
  if (options.ranks_in_process > 1) return std::string("in process (--ranks-in-process)");
  if (communicator.size() == 1) return std::string("none (1 rank)");
  ZG_ASSIGN_OR_RETURN(const std::string reason,
                      ReasonOfTransport(options, communicator.transport()));
  return fmt::format("{} ({})", communicator.transport(), reason);
}

}  // namespace

StatusOr<std::string> StartLine(const JobOptions& options, Communicator& communicator) {
  ZG_ASSIGN_OR_RETURN(const std::string ranks, RanksText(options, communicator));
  ZG_ASSIGN_OR_RETURN(const std::string kernels, KernelsText(options));
  ZG_ASSIGN_OR_RETURN(const std::string transport, TransportText(options, communicator));
  return fmt::format("{}; {}; transport: {}", ranks, kernels, transport);
}

}  // namespace zg
