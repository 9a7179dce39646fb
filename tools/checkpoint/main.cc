// checkpoint: shows, checks and compares checkpoints.
//
//   checkpoint inspect runs/gpt
//   checkpoint verify runs/gpt/step-00000100
//   checkpoint diff runs/gpt/step-00000100 runs/gpt/step-00000200
//
// Exit codes: 0; 1 when a checkpoint is damaged or two differ; 2 when the command line is wrong.
#include <CLI/CLI.hpp>
#include <string>

#include "framework/runtime/console.h"
#include "tools/checkpoint/commands.h"

namespace zg {
namespace {

int Print(const StatusOr<std::string>& text) {
  if (text.ok()) {
    PrintOut(*text);
    return 0;
  }
  PrintError("error: " + text.status().message() + "\n");
  return 1;
}

int PrintDifference(const std::string& path_a, const std::string& path_b) {
  const StatusOr<checkpoint_tool::Difference> found = checkpoint_tool::Diff(path_a, path_b);
  if (!found.ok()) return Print(found.status());
  PrintOut(found->text);
  return found->is_same ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Shows, checks and compares checkpoints.");
  app.require_subcommand(1);
  std::string path;
  std::string other;
  const char* about = "A checkpoint's directory, or one with `latest`";
  CLI::App* inspect = app.add_subcommand("inspect", "Step, settings and tensors");
  inspect->add_option("DIR", path, about)->required();
  CLI::App* verify = app.add_subcommand("verify", "Structure and checksums of every file");
  verify->add_option("DIR", path, about)->required();
  CLI::App* diff = app.add_subcommand("diff", "Tensors and settings that differ");
  diff->add_option("DIR_A", path, about)->required();
  diff->add_option("DIR_B", other, about)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (inspect->parsed()) return Print(checkpoint_tool::Inspect(path));
  if (verify->parsed()) return Print(checkpoint_tool::Verify(path));
  return PrintDifference(path, other);
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
