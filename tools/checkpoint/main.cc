// checkpoint: shows, checks and compares checkpoints, and exchanges weights with other programs.
//
//   checkpoint inspect runs/gpt
//   checkpoint verify runs/gpt/step-00000100
//   checkpoint diff runs/gpt/step-00000100 runs/gpt/step-00000200
//   checkpoint export runs/gpt model.safetensors --dtype bf16
//   checkpoint convert --from gpt2 downloads/gpt2 gpt2.safetensors
//   checkpoint convert --to gpt2 runs/gpt exported
//
// Exit codes: 0; 1 if a checkpoint is damaged, two differ or nothing was written; 2 if the command
// line is wrong.
#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "framework/job/console.h"
#include "tools/checkpoint/commands.h"
#include "tools/checkpoint/foreign_names.h"
#include "tools/command/tool.h"

namespace zg {
namespace {

using checkpoint_tool::ConvertOptions;
using checkpoint_tool::ExportOptions;
using checkpoint_tool::Side;
using command::Print;

int PrintDifference(const std::string& path_a, const std::string& path_b) {
  const StatusOr<checkpoint_tool::Difference> found = checkpoint_tool::Diff(path_a, path_b);
  if (!found.ok()) return Print(found.status());
  print_out(found->text);
  return found->is_same ? 0 : 1;
}

const std::map<std::string, SafetensorsDType> kDTypes = {{"f32", SafetensorsDType::kF32},
                                                         {"bf16", SafetensorsDType::kBF16},
                                                         {"f16", SafetensorsDType::kF16}};

void AddDType(CLI::App* command, SafetensorsDType* dtype) {
  command
      ->add_option_function<std::string>(
          "--dtype", [dtype](const std::string& name) { *dtype = kDTypes.at(name); },
          "What is written; f32 by default")
      ->check(CLI::IsMember(kDTypes));
}

// Adds --from or --to, which takes a format and sets the side of the source.
void AddSide(CLI::App* group, const std::string& flag, Side source, const std::string& about,
             ConvertOptions* options) {
  std::vector<std::string> names;
  for (const auto& format : checkpoint_tool::ForeignFormats()) names.emplace_back(format.name);
  group
      ->add_option_function<std::string>(
          flag,
          [options, source](const std::string& format) {
            options->format = format;
            options->source = source;
          },
          about)
      ->check(CLI::IsMember(names));
}

CLI::App* AddExport(CLI::App& app, ExportOptions* options) {
  CLI::App* command = app.add_subcommand("export", "One file of a checkpoint's tensors");
  command->add_option("DIR", options->from, "A checkpoint's directory, or one with `latest`")
      ->required();
  command->add_option("FILE", options->to, "A safetensors file")->required();
  AddDType(command, &options->dtype);
  command->add_flag("--optimizer", options->with_optimizer, "The optimizer's state too");
  command->add_flag("--force", options->may_replace, "Replace FILE");
  return command;
}

CLI::App* AddConvert(CLI::App& app, ConvertOptions* options) {
  CLI::App* command =
      app.add_subcommand("convert", "Weights under another program's names, or the reverse");
  std::string about;
  for (const auto& format : checkpoint_tool::ForeignFormats()) {
    about += "\n" + std::string(format.name) + ": " + std::string(format.doc);
  }
  command->footer("Formats:" + about);
  CLI::Option_group* side = command->add_option_group("direction");
  AddSide(side, "--from", Side::kTheirs,
          "Format of SOURCE; TARGET becomes a safetensors file for --init", options);
  AddSide(side, "--to", Side::kOurs, "Format of TARGET; of gpt2 it becomes a directory", options);
  side->require_option(1);
  command
      ->add_option("SOURCE", options->from,
                   "A safetensors file, the index of several, or a directory with either; a "
                   "checkpoint")
      ->required();
  command->add_option("TARGET", options->to, "What is written")->required();
  AddDType(command, &options->dtype);
  command
      ->add_option("--vocab", options->vocabulary,
                   "Rows of the token embedding in TARGET: zeros are added, or rows left out")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  command->add_option("--heads", options->heads, "For config.json, where SOURCE does not tell")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_flag("--force", options->may_replace, "Replace TARGET");
  return command;
}

int Main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write
  CLI::App app("Shows, checks, compares, exports and converts checkpoints.");
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
  ExportOptions export_options;
  const CLI::App* exported = AddExport(app, &export_options);
  ConvertOptions convert_options;
  const CLI::App* convert = AddConvert(app, &convert_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (inspect->parsed()) return Print(checkpoint_tool::Inspect(path));
  if (verify->parsed()) return Print(checkpoint_tool::Verify(path));
  if (exported->parsed()) return Print(checkpoint_tool::Export(export_options));
  if (convert->parsed()) return Print(checkpoint_tool::Convert(convert_options));
  return PrintDifference(path, other);
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
