#include "framework/job/start_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "framework/base/format.h"
#include "framework/base/instruction_set.h"
#include "framework/base/threads.h"
#include "framework/kernels/cpu/cpu_kernels.h"

namespace zg {
namespace {

StatusOr<std::string> KernelsText(const JobOptions& options) {
  if (options.device != "cpu") return "kernels are those of --device " + options.device;
  ZG_ASSIGN_OR_RETURN(const InstructionSet cap, InstructionSetFromEnvironment());
  const std::string_view vectors = InstructionSetName(VectorInstructionSet());
  const std::string_view products = OwnOrderOfBf16Products();
  return fmt::format("kernels use {}{} ({})", vectors,
                     products.empty() ? "" : fmt::format(", for bf16 products {}", products),
                     cap == kDefaultInstructionSet
                         ? "the best that the processor has"
                         : fmt::format("ZG_INSTRUCTION_SET={}", InstructionSetName(cap)));
}

// The minimum and maximum number of ranks of a host.
struct RanksPerHost {
  int least = 1;
  int most = 1;
};

StatusOr<RanksPerHost> CountPerHost(Communicator& communicator) {
  if (communicator.size() == 1) return RanksPerHost{};
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> names, communicator.Exchange("hosts", name));
  std::map<std::string, int> per_host;
  for (const std::string& host : names) ++per_host[host];
  const auto [least, most] =
      std::minmax_element(per_host.begin(), per_host.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  return RanksPerHost{least->second, most->second};
}

StatusOr<std::string> RanksText(const JobOptions& options, Communicator& communicator) {
  const std::string threads = Counted(options.threads, "thread");
  if (options.ranks_in_process > 1) {
    return fmt::format("{} ranks in one process, {} each", options.ranks_in_process,
                       options.threads == 1 ? "a thread" : threads);
  }
  if (communicator.size() == 1) return "1 rank, " + threads;
  ZG_ASSIGN_OR_RETURN(const RanksPerHost per_host, CountPerHost(communicator));
  const std::string range = per_host.least == per_host.most
                                ? fmt::to_string(per_host.most)
                                : fmt::format("{} to {}", per_host.least, per_host.most);
  return fmt::format("{} ranks, {} per host, {} each", communicator.size(), range, threads);
}

StatusOr<std::string> ReasonOfTransport(std::string_view transport) {
  ZG_ASSIGN_OR_RETURN(const CommTransport asked, CommTransportFromEnvironment());
  if (asked != CommTransport::kAuto) return fmt::format("ZG_COMM={}", CommTransportName(asked));
  return std::string(transport == "messages" ? "the ranks are on several hosts"
                                             : "all ranks are on one host");
}

StatusOr<std::string> TransportText(const JobOptions& options, const Communicator& communicator,
                                    const std::string& reason_on_device) {
  if (options.ranks_in_process > 1) return std::string("in process (--ranks-in-process)");
  if (communicator.size() == 1) return std::string("none (1 rank)");
  if (!reason_on_device.empty()) {
    return fmt::format("{} ({})", communicator.transport(), reason_on_device);
  }
  ZG_ASSIGN_OR_RETURN(const std::string reason, ReasonOfTransport(communicator.transport()));
  return fmt::format("{} ({})", communicator.transport(), reason);
}

}  // namespace

StatusOr<std::string> StartLine(const JobOptions& options, Communicator& communicator,
                                const std::string& reason_on_device) {
  ZG_ASSIGN_OR_RETURN(const std::string ranks, RanksText(options, communicator));
  ZG_ASSIGN_OR_RETURN(const std::string kernels, KernelsText(options));
  ZG_ASSIGN_OR_RETURN(const std::string transport,
                      TransportText(options, communicator, reason_on_device));
  return fmt::format("{}; {}; transport: {}", ranks, kernels, transport);
}

StatusOr<std::string> ThreadsWarning(const JobOptions& options, Communicator& communicator) {
  if (options.threads == 1) return std::string();
  ZG_ASSIGN_OR_RETURN(const RanksPerHost per_host, CountPerHost(communicator));
  const int ranks = options.ranks_in_process > 1 ? options.ranks_in_process : per_host.most;
  const int cores = NumUsableCores();
  if (ranks * options.threads <= cores) return std::string();
  return fmt::format(
      "--threads {}: {} on a host {} {} threads together, but may use {}; more than {} per rank will "
      "not be faster",
      options.threads, Counted(ranks, "rank"), ranks == 1 ? "has" : "have", ranks * options.threads,
      Counted(cores, "CPU"), Counted(std::max(1, cores / ranks), "thread"));
}

}  // namespace zg
