#include "tools/launch/launch_options.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "framework/runtime/flag_parser.h"
#include "framework/runtime/launcher.h"
#include "tools/launch/program_arguments.h"

namespace zg::launch {
namespace {

StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') == std::string::npos) {
    if (std::optional<std::string> found = FindOnPath(name)) return *std::move(found);
    return InvalidArgument("there is no program {} on PATH; one in this directory is ./{}", name,
                           name);
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error) || access(name.c_str(), X_OK) != 0) {
    return InvalidArgument("{} is not a program that can be run", name);
  }
  return name;
}

Status ReadProgramFlags(LaunchOptions* options) {
  if (FlagIn(options->command, "ranks")) {
    return InvalidArgument("--ranks: give it before the --, and not to the program");
  }
  options->save = FlagIn(options->command, "save").value_or("");
  options->micro_batches = options->ranks;
  if (const auto text = FlagIn(options->command, "micro-batches")) {
    int64_t count = 0;
    std::from_chars(text->data(), text->data() + text->size(), count);
    if (count > 0) options->micro_batches = count;  // the program judges what is no number
  }
  if (options->micro_batches % options->ranks != 0) {
    return InvalidArgument("--micro-batches: got {}, expected a multiple of the {} ranks",
                           options->micro_batches, options->ranks);
  }
  return Status::Ok();
}

}  // namespace

StatusOr<LaunchOptions> ParseCommandLine(int argc, const char* const* argv, std::string* help) {
  LaunchOptions options;
  FlagParser flags(
      "Runs a program with a Job under mpirun, and again from its last checkpoint when it fails:\n"
      "  launch --ranks 2 -- bazel-bin/models/gpt/gpt --save runs/gpt --save-every 100");
  flags.Section("Flags, before the -- and the program");
  flags.AddInt("ranks", &options.ranks, Between(1, 1024), "processes");
  flags.AddInt("max-restarts", &options.max_restarts, AtLeast(0), "restarts after failures");
  flags.AddInt("min-ranks", &options.min_ranks, Between(1, 1024),
               "a restart that fails before it has saved is followed by one with fewer ranks, "
               "but no fewer than these (default: --ranks)");
  flags.AddString("hosts", &options.hosts,
                  "where, with how many ranks at most, filled in this order (default: this host)",
                  "HOST:N,...");
  int own_argc = 0;
  while (own_argc < argc && std::string_view(argv[own_argc]) != "--") ++own_argc;
  ZG_ASSIGN_OR_RETURN(const bool wants_help, flags.Parse(own_argc, argv));
  if (wants_help) {
    *help = flags.Help("launch");
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
  ZG_RETURN_IF_ERROR(ReadProgramFlags(&options));
  return options;
}

}  // namespace zg::launch
