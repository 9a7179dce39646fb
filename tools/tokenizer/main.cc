// tokenizer: learns byte-level BPE vocabularies, and converts text to tokens and back.
//
//   tokenizer train --vocab-size 8192 --out runs/tokenizer book.txt
//   tokenizer encode book.txt --tokenizer runs/tokenizer --out book.bin
//   tokenizer decode book.bin --tokenizer runs/tokenizer
//
// Exit codes: 0; 1 if a file is missing, damaged or not supported; 2 if the command line is wrong.
#include <CLI/CLI.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "framework/text/tokenizer_writer.h"
#include "tools/command/tool.h"
#include "tools/tokenizer/commands.h"

namespace zg {
namespace {

using command::Print;
using tokenizer_tool::DecodeOptions;
using tokenizer_tool::EncodeOptions;
using tokenizer_tool::TrainOptions;

void AddTokenizer(CLI::App* command, std::string* tokenizer) {
  command
      ->add_option("--tokenizer", *tokenizer,
                   "A tokenizer.json; or a directory with one, or with vocab.bpe and encoder.json")
      ->required();
}

CLI::App* AddTrain(CLI::App& app, TrainOptions* options) {
  CLI::App* command = app.add_subcommand("train", "Learns a vocabulary from texts");
  command->add_option("FILES", options->files, "Texts")->required();
  command->add_option("--vocab-size", options->vocabulary_size, "Tokens; 256 are the bytes")
      ->required()
      ->check(CLI::Range(int64_t{256}, int64_t{1} << 24));
  command->add_option("--out", options->out, "A directory, which gets tokenizer.json")->required();
  command
      ->add_option("--special", options->special_tokens,
                   "Texts that are one token each and have the first ids, none by default")
      ->allow_extra_args(false);
  std::vector<std::string> patterns;
  for (const NamedPattern& known : NamedPatterns()) patterns.emplace_back(known.name);
  command
      ->add_option("--pattern", options->pattern,
                   "Whose expression cuts text into words; gpt2 by default")
      ->check(CLI::IsMember(patterns));
  command
      ->add_option("--min-count", options->min_count,
                   "A pair must stand in the texts as often to become a token; 2 by default")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_flag("--force", options->may_replace, "Replace tokenizer.json");
  return command;
}

CLI::App* AddEncode(CLI::App& app, EncodeOptions* options) {
  CLI::App* command = app.add_subcommand("encode", "The tokens of texts");
  command->add_option("FILES", options->files, "Texts")->required();
  AddTokenizer(command, &options->tokenizer);
  command
      ->add_option(
          "--out", options->out,
          "A token file, for --data of //models/gpt: u16, or u32 for more than 65536 tokens")
      ->required();
  command->add_option("--after-file", options->after_file,
                      "An added token that follows each text, such as <|endoftext|>");
  command->add_flag("--force", options->may_replace, "Replace the file");
  return command;
}

CLI::App* AddDecode(CLI::App& app, DecodeOptions* options) {
  CLI::App* command = app.add_subcommand("decode", "The bytes that tokens stand for");
  command->add_option("FILE", options->file, "A token file")->required();
  AddTokenizer(command, &options->tokenizer);
  command->add_option("--out", options->out, "Where to; standard output by default");
  command->add_flag("--force", options->may_replace, "Replace the file");
  return command;
}

int Main(int argc, char** argv) {
  if (const Status status = command::EnterUsersDirectory(); !status.ok()) return Print(status);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write
  CLI::App app("Learns byte-level BPE vocabularies; encodes and decodes text with them.");
  app.require_subcommand(1);
  TrainOptions train_options;
  const CLI::App* train = AddTrain(app, &train_options);
  EncodeOptions encode_options;
  const CLI::App* encode = AddEncode(app, &encode_options);
  DecodeOptions decode_options;
  AddDecode(app, &decode_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (train->parsed()) return Print(tokenizer_tool::Train(train_options));
  if (encode->parsed()) return Print(tokenizer_tool::Encode(encode_options));
  return Print(tokenizer_tool::Decode(decode_options));
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
