#include "tools/tune/tune_options.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

#include "framework/base/threads.h"
#include "framework/job/flag_parser.h"
#include "framework/job/mesh_axes.h"
#include "tools/command/program_arguments.h"

namespace zg::tune {
namespace {

constexpr int kMaxCores = 4096;

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string JoinWithCommas(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

std::optional<int> ParseCount(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

void AddCounts(FlagParser* flags, std::string name, std::vector<int>* counts, std::string help) {
  flags->add_parsed(
      std::move(name),
      [counts](const std::string& text) -> Status {
        counts->clear();
        for (const std::string& item : SplitAtCommas(text)) {
          const std::optional<int> count = ParseCount(item);
          if (!count) return InvalidArgument("got '{}', expected numbers such as 1,2,4", text);
          counts->push_back(*count);
        }
        return Status::Ok();
      },
      [counts] { return fmt::format("{}", fmt::join(*counts, ",")); }, std::move(help), "N,...");
}

// 1, 2, 4, ... and `cores` itself.
std::vector<int> PowersOfTwo(int cores) {
  std::vector<int> counts;
  for (int count = 1; count < cores; count *= 2) counts.push_back(count);
  counts.push_back(cores);
  return counts;
}

// The number of ranks that the program's flags ask for.
StatusOr<std::optional<int>> RanksOf(const std::vector<std::string>& command) {
  if (const auto ranks = command::FlagIn(command, "ranks")) {
    const std::optional<int> count = ParseCount(*ranks);
    if (!count) return InvalidArgument("--ranks: got '{}', expected a number of ranks", *ranks);
    return count;
  }
  if (const auto mesh = command::FlagIn(command, "mesh")) {
    const StatusOr<std::vector<MeshAxis>> axes = ParseMeshAxes(*mesh);
    ZG_RETURN_IF_ERROR(axes.status().WithContext("--mesh"));
    return std::optional<int>(Mesh(*axes).num_ranks());
  }
  return std::optional<int>();
}

// Values that the program's flags set stay, and no others can be requested beside them.
Status TakeFlagsOfProgram(const FlagParser& flags, Options* options) {
  ZG_ASSIGN_OR_RETURN(const std::optional<int> ranks, RanksOf(options->command));
  if (ranks) options->ranks = {*ranks};
  const auto threads = command::FlagIn(options->command, "threads");
  if (threads) {
    const std::optional<int> count = ParseCount(*threads);
    if (!count) return InvalidArgument("--threads: got '{}', expected a number", *threads);
    options->threads = {*count};
  }
  const auto overlap = command::FlagIn(options->command, "overlap");
  if (overlap) options->overlaps = {*overlap};
  for (const auto& [flag, is_given] : {std::pair("ranks", ranks.has_value()),
                                       {"threads", threads.has_value()},
                                       {"overlap", overlap.has_value()}}) {
    if (!is_given || !flags.is_given(flag)) continue;
    return InvalidArgument("--{}: the program's own flags say it; leave it out on one side", flag);
  }
  return Status::Ok();
}

Status CheckProgramFlags(const std::vector<std::string>& command) {
  if (command::FlagIn(command, "ranks-in-process")) {
    return InvalidArgument(
        "--ranks-in-process: virtual ranks take other times than ranks; leave it out");
  }
  if (const auto device = command::FlagIn(command, "device"); device && *device != "cpu") {
    return InvalidArgument("--device: got {}, expected cpu, whose cores ranks and threads share",
                           *device);
  }
  return Status::Ok();
}

}  // namespace

StatusOr<Options> ParseCommandLine(int argc, const char* const* argv, std::string* help) {
  Options options;
  options.cores = NumUsableCores();
  options.overlaps = {"off", "unlimited"};
  FlagParser flags(
      "Finds the ranks, threads and overlap with which a program with a Job trains fastest here:\n"
      "  tune -- bazel-bin/models/gpt/gpt --preset mini --zero 2");
  flags.section("Flags, before the -- and the program");
  flags.add_double("seconds", &options.seconds, above(0), "for everything", "SECONDS");
  flags.add_int("cores", &options.cores, between(1, kMaxCores),
                "processors to use (default: those that this process may run on)");
  AddCounts(&flags, "ranks", &options.ranks,
            "numbers of ranks to try (default: powers of two, and a rank per core)");
  AddCounts(&flags, "threads", &options.threads,
            "threads of a rank to try (default: as many as the cores allow, and half of them)");
  flags.add_parsed(
      "overlap",
      [&options](const std::string& text) {
        options.overlaps = SplitAtCommas(text);
        return Status::Ok();
      },
      [&options] { return JoinWithCommas(options.overlaps); },
      "values of the program's --overlap to try, where there are several ranks", "off,BYTES,...");
  // Without flags of its own the "--" may be left out.
  const bool has_flags = argc > 1 && argv[1][0] == '-';
  int own_argc = 1;
  while (has_flags && own_argc < argc && std::string_view(argv[own_argc]) != "--") ++own_argc;
  const int program = has_flags ? own_argc + 1 : own_argc;
  ZG_ASSIGN_OR_RETURN(const bool wants_help, flags.parse(own_argc, argv));
  if (wants_help) {
    *help = flags.help("tune");
    return options;
  }
  if (program >= argc) return InvalidArgument("expected -- and a program after the flags");
  options.command.assign(argv + program, argv + argc);
  ZG_ASSIGN_OR_RETURN(options.command[0], command::FindProgram(options.command[0]));
  ZG_RETURN_IF_ERROR(CheckProgramFlags(options.command));
  ZG_RETURN_IF_ERROR(TakeFlagsOfProgram(flags, &options));
  if (options.ranks.empty()) options.ranks = PowersOfTwo(options.cores);
  return options;
}

}  // namespace zg::tune
