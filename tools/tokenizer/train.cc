#include <fmt/format.h>

#include <filesystem>

#include "framework/base/format.h"
#include "framework/base/stopwatch.h"
#include "framework/io/atomic_file.h"
#include "framework/io/mapped_file.h"
#include "framework/text/bpe_trainer.h"
#include "framework/text/tokenizer_writer.h"
#include "tools/command/inputs.h"
#include "tools/tokenizer/commands.h"

namespace zg::tokenizer_tool {
namespace {

constexpr char kFileName[] = "tokenizer.json";

}  // namespace

StatusOr<std::string> Train(const TrainOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(options.out, error) && !fs::is_directory(options.out, error)) {
    return InvalidArgument("--out: {}: is not a directory", options.out);
  }
  const std::string path = options.out + "/" + kFileName;
  ZG_RETURN_IF_ERROR(CheckTarget(path, options.may_replace));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(path, options.files));
  BpeTrainerOptions trainer_options;
  trainer_options.vocabulary_size = options.vocabulary_size;
  trainer_options.min_count = options.min_count;
  trainer_options.special_tokens = options.special_tokens;
  ZG_ASSIGN_OR_RETURN(trainer_options.pre_tokenizer, NamedPreTokenizer(options.pattern));
  ZG_ASSIGN_OR_RETURN(BpeTrainer trainer, BpeTrainer::Create(trainer_options));
  const Stopwatch stopwatch;
  uint64_t bytes = 0;
  for (const std::string& name : options.files) {
    ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(name));
    if (file.size() == 0) return DataLoss("{}: the file is empty, expected text", name);
    ZG_RETURN_IF_ERROR(
        trainer.Add({reinterpret_cast<const char*>(file.data()), size_t{file.size()}})
            .WithContext(name));
    bytes += file.size();
  }
  const TokenizerParts parts = trainer.Train();
  ZG_ASSIGN_OR_RETURN(const std::string json, TokenizerAsJson(parts, options.pattern));
  fs::create_directories(options.out, error);
  if (error) return FailedPrecondition("{}: cannot be created: {}", options.out, error.message());
  ZG_RETURN_IF_ERROR(WriteFileAtomically(path, json));
  std::string said = fmt::format(
      "{}: {} tokens of {}, {} different words, in {:.1f} s\n", path, parts.vocabulary.ids.size(),
      FormatBytes(static_cast<int64_t>(bytes)), trainer.num_words(), stopwatch.ms() / 1e3);
  if (static_cast<int64_t>(parts.vocabulary.ids.size()) < options.vocabulary_size) {
    said += fmt::format("fewer than the {} asked for: no other pair stands there {} times\n",
                        options.vocabulary_size, options.min_count);
  }
  return said;
}

}  // namespace zg::tokenizer_tool
