// convert: imports and exports models of transformers, by their config.json.
//
//   convert --from downloads/Qwen2-0.5B qwen2.safetensors        # for --init
//   convert --to trained runs/llama --like downloads/Qwen2-0.5B  # for from_pretrained
//
// Exit codes: 0; 1 if nothing was written; 2 if the command line is wrong.
#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <optional>
#include <string>

#include "tools/command/tool.h"
#include "tools/convert/commands.h"

namespace zg {
namespace {

using command::Print;

const std::map<std::string, SafetensorsDType> kDTypes = {{"f32", SafetensorsDType::kF32},
                                                         {"bf16", SafetensorsDType::kBF16},
                                                         {"f16", SafetensorsDType::kF16}};

int Main(int argc, char** argv) {
  if (const Status status = command::EnterUsersDirectory(); !status.ok()) return Print(status);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write
  CLI::App app(
      "Takes models of transformers in and out: Llama, Qwen2, Mixtral, Mamba, BERT (masked language "
      "model), ViT (image classification), GPT-2.");
  std::string from, to, path, like, preset;
  bool may_replace = false;
  std::optional<SafetensorsDType> dtype;
  CLI::Option_group* const direction = app.add_option_group("direction");
  direction->add_option("--from", from,
                        "A directory with config.json and model.safetensors, or shards and "
                        "model.safetensors.index.json; PATH becomes a file for --init");
  CLI::Option* const to_option = direction->add_option(
      "--to", to,
      "The directory that is written, for transformers; PATH is a checkpoint of ours "
      "or a file for --init");
  direction->require_option(1);
  app.add_option("PATH", path, "The file that is written, or what is read")->required();
  CLI::Option* const like_option =
      app.add_option("--like", like,
                     "With --to: a directory with the model's config.json, which is copied; if it "
                     "has weights, what is written has their files, names and dtypes");
  CLI::Option* const preset_option =
      app.add_option("--preset", preset, "With --to, instead of --like: sizes such as llama/mini");
  like_option->needs(to_option);
  preset_option->needs(to_option);
  app.add_option_function<std::string>(
         "--dtype", [&](const std::string& name) { dtype = kDTypes.at(name); },
         "What is written; by default what is read")
      ->check(CLI::IsMember(kDTypes));
  app.add_flag("--force", may_replace, "Replace what is there");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!from.empty()) return Print(convert_tool::ConvertFrom({from, path, dtype, may_replace}));
  return Print(convert_tool::ConvertTo({path, to, like, preset, dtype, may_replace}));
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
