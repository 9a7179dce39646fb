#include "tools/launch/launch_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "framework/job/flag_parser.h"
#include "tools/command/program_arguments.h"

namespace zg::launch {
namespace {

using command::FindProgram;
using command::FlagIn;

// Parses "HOST:N,HOST,...", with one rank where no number is given.
Status ReadHosts(std::string_view text, Options* options) {
  int num_slots = 0;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t colon = item.rfind(':');
    HostSlots host = {std::string(item.substr(0, colon)), 1};
    if (colon != std::string_view::npos) {
      const std::string_view count = item.substr(colon + 1);
      const char* const end = count.data() + count.size();
      const auto [parsed_to, error] = std::from_chars(count.data(), end, host.slots);
      if (error != std::errc() || parsed_to != end || host.slots < 1) host.host = "";
    }
    if (host.host.empty()) {
      return InvalidArgument("--hosts: got '{}', expected HOST:N with N >= 1", item);
    }
    num_slots += host.slots;
    options->hosts.push_back(std::move(host));
  }
  if (!options->hosts.empty() && num_slots < options->ranks) {
    return InvalidArgument("--hosts: got room for {}, expected it for the {} --ranks", num_slots,
                           options->ranks);
  }
  return Status::Ok();
}

Status ReadProgramFlags(Options* options) {
  if (FlagIn(options->command, "ranks")) {
    return InvalidArgument("--ranks: give it before the --, and not to the program");
  }
  options->save = FlagIn(options->command, "save").value_or("");
  options->micro_batches = options->ranks;
  if (const auto mesh = FlagIn(options->command, "mesh"); mesh && !mesh->empty()) {
    if (options->min_ranks == options->ranks) return Status::Ok();
    return InvalidArgument(
        "--min-ranks: got {}, but the program's --mesh {} has the {} --ranks in every attempt; leave "
        "--min-ranks out, and if ranks stay away, start with --resume and a --mesh of fewer",
        options->min_ranks, *mesh, options->ranks);
  }
  if (const auto text = FlagIn(options->command, "micro-batches")) {
    int64_t count = 0;
    std::from_chars(text->data(), text->data() + text->size(), count);
    if (count > 0)
      options->micro_batches = count;  // the program reports values that are not
                                       // numbers
  }
  if (options->micro_batches % options->ranks != 0) {
    return InvalidArgument("--micro-batches: got {}, expected a multiple of the {} ranks",
                           options->micro_batches, options->ranks);
  }
  return Status::Ok();
}

}  // namespace

std::string HostsFor(const Options& options, int num_ranks) {
  std::string text;
  int num_slots = 0;
  for (const HostSlots& host : options.hosts) {
    if (num_slots >= num_ranks) break;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.host, host.slots);
    num_slots += host.slots;
  }
  return text;
}

std::string HostOfRank(const Options& options, int rank) {
  for (const HostSlots& host : options.hosts) {
    if (rank < host.slots) return host.host;
    rank -= host.slots;
  }
  return "";
}

StatusOr<Options> ParseCommandLine(int argc, const char* const* argv, std::string* help) {
  Options options;
  std::string hosts;
  FlagParser flags(
      "Runs a program with a Job under mpirun, and again from its last checkpoint when it fails:\n"
      "  launch --ranks 2 -- bazel-bin/models/gpt/gpt --save runs/gpt --save-every 100");
  flags.section("Flags, before the -- and the program");
  flags.add_int("ranks", &options.ranks, between(1, 1024), "processes");
  flags.add_int("max-restarts", &options.max_restarts, at_least(0), "restarts after failures");
  flags.add_int("min-ranks", &options.min_ranks, between(1, 1024),
                "a restart that fails before it has saved is followed by one with fewer ranks, "
                "but no fewer than these (default: --ranks)");
  flags.add_string("hosts", &hosts,
                   "where, with how many ranks at most, filled in this order (default: this host)",
                   "HOST:N,...");
  int own_argc = 0;
  while (own_argc < argc && std::string_view(argv[own_argc]) != "--") ++own_argc;
  ZG_ASSIGN_OR_RETURN(const bool wants_help, flags.parse(own_argc, argv));
  if (wants_help) {
    *help = flags.help("launch");
    return options;
  }
  if (own_argc + 1 >= argc) return InvalidArgument("expected -- and a program after the flags");
  options.command.assign(argv + own_argc + 1, argv + argc);
  ZG_ASSIGN_OR_RETURN(options.command[0], FindProgram(options.command[0]));
  if (options.min_ranks == 0) options.min_ranks = options.ranks;
  if (options.min_ranks > options.ranks) {
    return InvalidArgument("--min-ranks: got {}, expected at most the {} --ranks",
                           options.min_ranks, options.ranks);
  }
  ZG_RETURN_IF_ERROR(ReadHosts(hosts, &options));
  ZG_RETURN_IF_ERROR(ReadProgramFlags(&options));
  return options;
}

}  // namespace zg::launch
