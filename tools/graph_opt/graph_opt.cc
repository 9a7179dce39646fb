// graph_opt: reads a graph in text form, runs passes on it, and prints the result.
//
//   graph_opt mlp.graph --passes "build-backward, append-update(lr=0.1), bucketing"
//   graph_opt mlp.graph --dot | dot -Tsvg > mlp.svg
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "framework/ir/dot_printer.h"
#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/pass_manager.h"
#include "tools/all_passes.h"

namespace zg {
namespace {

struct Options {
  std::string file = "-";
  std::string passes;
  PassManagerOptions manager;
  bool verify = false;
  bool verify_placements = false;
  bool dot = false;
  bool list = false;
  bool times = false;
};

StatusOr<std::string> Read(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path);
  if (!file) return NotFound("{}: cannot open the file", path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return DataLoss("{}: cannot read the file", path);
  return text;
}

void ListPasses(const PassRegistry& registry) {
  for (const PassDef* pass : registry.All()) {
    std::string options;
    for (const ir::AttributeDef& option : pass->options) {
      options += fmt::format("{}{}={}", options.empty() ? "(" : ", ", option.name,
                             ir::ToString(option.example));
    }
    fmt::print("{:24} {}\n", pass->name, pass->doc);
    if (!options.empty()) fmt::print("{:24} {})\n", "", options);
  }
}

Status Run(const Options& options) {
  RegisterAllOps();
  PassRegistry registry;
  RegisterAllPasses(registry);
  if (options.list) {
    ListPasses(registry);
    return Status::Ok();
  }
  ZG_ASSIGN_OR_RETURN(PassList passes, ParsePasses(options.passes, registry, "--passes"));
  ZG_ASSIGN_OR_RETURN(const std::string text, Read(options.file));
  ZG_ASSIGN_OR_RETURN(ir::Graph graph,
                      ir::Parse(text, {options.file == "-" ? "standard input" : options.file, 1}));
  if (!passes.empty()) {
    PassManager manager(std::move(passes), options.manager);
    ZG_RETURN_IF_ERROR(manager.Run(graph));
    for (const PassRecord& record : manager.records()) {
      if (!options.times) break;
      fmt::print(stderr, "{:24} {:10.3f} ms{}\n", record.name, record.run_ms,
                 record.changed ? "" : "  no change");
    }
  }
  if (options.verify || options.verify_placements) {
    ZG_RETURN_IF_ERROR(ir::Verify(graph, {options.verify_placements}));
  }
  fmt::print("{}", options.dot ? ir::PrintDot(graph) : ir::Print(graph));
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Options options;
  std::vector<std::string> disabled;
  CLI::App app("Reads a graph in text form, runs passes on it, prints what comes out.");
  app.add_option("file", options.file, "The graph's text; - is standard input")
      ->capture_default_str();
  app.add_option("--passes", options.passes, "Passes to run, as in \"infer-sbp, a(option=3)\"");
  app.add_option("--disable", disabled, "Names of passes to leave out")->delimiter(',');
  app.add_option("--dump-passes", options.manager.dump_directory,
                 "Write the graph after each pass to this directory");
  app.add_flag("--verify", options.verify, "Check the graph's rules, without passes too");
  app.add_flag("--verify-placements", options.verify_placements,
               "Also check that placements fit, as they do after insert-collectives");
  app.add_flag("--times", options.times, "Print each pass's time to standard error");
  app.add_flag("--dot", options.dot, "Print a picture for Graphviz instead of text");
  app.add_flag("--list", options.list, "List the passes and their options");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  options.manager.disabled = {disabled.begin(), disabled.end()};
  const Status status = Run(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "graph_opt: {}\n", status.message());
  return 1;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
