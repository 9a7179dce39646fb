#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "framework/base/format.h"
#include "framework/io/atomic_file.h"
#include "framework/io/token_dataset.h"
#include "framework/text/tokenizer.h"
#include "tools/command/inputs.h"
#include "tools/tokenizer/commands.h"

namespace zg::tokenizer_tool {
namespace {

constexpr uint64_t kTokensPerPiece = 1 << 16;

}  // namespace

StatusOr<std::string> Decode(const DecodeOptions& options) {
  ZG_RETURN_IF_ERROR(CheckTarget(options.out, options.may_replace));
  ZG_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::open(options.tokenizer));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options.out, {tokenizer.path(), options.file}));
  ZG_ASSIGN_OR_RETURN(
      const TokenDataset tokens,
      TokenDataset::FromTokenFile(options.file, static_cast<int>(tokenizer.vocabulary_size())));
  std::optional<AtomicFile> file;
  if (!options.out.empty()) {
    ZG_ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::Create(options.out));
    file.emplace(std::move(created));
  }
  std::string printed;
  uint64_t bytes = 0;
  for (uint64_t begin = 0; begin < tokens.size(); begin += kTokensPerPiece) {
    const uint64_t end = std::min(begin + kTokensPerPiece, tokens.size());
    std::vector<uint32_t> ids;
    for (uint64_t i = begin; i < end; ++i) ids.push_back(static_cast<uint32_t>(tokens[i]));
    const StatusOr<std::string> text = tokenizer.decode(ids);
    ZG_RETURN_IF_ERROR(text.status().WithContext(options.file));
    bytes += text->size();
    if (file) {
      ZG_RETURN_IF_ERROR(file->Write(text->data(), text->size()));
    } else {
      printed += *text;
    }
  }
  if (!file) return printed;
  ZG_RETURN_IF_ERROR(file->Commit());
  return fmt::format("{}: {} of {} tokens\n", options.out, FormatBytes(static_cast<int64_t>(bytes)),
                     tokens.size());
}

}  // namespace zg::tokenizer_tool
