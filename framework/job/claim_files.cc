#include "framework/job/claim_files.h"

#include <fmt/ranges.h>

#include <vector>

namespace zg {

Status ClaimFiles(const JobOptions& options, const std::string& graph, bool reports,
                  std::string* owner) {
  std::vector<std::string> flags;
  const auto add = [&](const char* flag, const std::string& path) {
    if (!path.empty()) flags.push_back(fmt::format("{} {}", flag, path));
  };
  add("--resume", options.resume);
  add("--save", options.save);
  add("--metrics", options.metrics);
  add("--trace", options.trace);
  if (reports) add("--report", options.report);
  if (flags.empty()) return Status::Ok();
  if (owner->empty()) {
    *owner = graph;
    return Status::Ok();
  }
  return FailedPrecondition(
      "graph {}: got {}, which belong to the first training of this job, of graph {}; leave them out, "
      "or train this one in a job of its own",
      graph, fmt::join(flags, ", "), *owner);
}

}  // namespace zg
