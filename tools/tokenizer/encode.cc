#include <fmt/format.h>

#include "framework/base/format.h"
#include "framework/base/stopwatch.h"
#include "framework/io/mapped_file.h"
#include "framework/io/token_file.h"
#include "framework/text/tokenizer.h"
#include "tools/command/inputs.h"
#include "tools/tokenizer/commands.h"

namespace zg::tokenizer_tool {

StatusOr<std::string> Encode(const EncodeOptions& options) {
  ZG_RETURN_IF_ERROR(CheckTarget(options.out, options.may_replace));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options.out, options.files));
  ZG_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::open(options.tokenizer));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options.out, {tokenizer.path()}));
  std::vector<uint32_t> after_file;
  if (!options.after_file.empty()) {
    const std::optional<uint32_t> id = tokenizer.added_token_id(options.after_file);
    if (!id) {
      return InvalidArgument("--after-file: got '{}', expected an added token of {}",
                             options.after_file, tokenizer.path());
    }
    after_file.push_back(*id);
  }
  ZG_ASSIGN_OR_RETURN(TokenFileWriter writer,
                      TokenFileWriter::Create(options.out, tokenizer.vocabulary_size()));
  TextEncoder encoder(tokenizer);
  const Stopwatch stopwatch;
  uint64_t bytes = 0;
  for (const std::string& path : options.files) {
    ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
    if (file.size() == 0) return DataLoss("{}: the file is empty, expected text", path);
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    ZG_RETURN_IF_ERROR(
        encoder.encode(text, [&](const std::vector<uint32_t>& ids) { return writer.Write(ids); })
            .WithContext(path));
    ZG_RETURN_IF_ERROR(writer.Write(after_file));
    bytes += file.size();
  }
  ZG_RETURN_IF_ERROR(writer.Commit());
  const double seconds = stopwatch.ms() / 1e3;
  return fmt::format("{}: {} tokens, u{}, of {}: {:.3f} bytes per token; {:.1f} MB/s\n",
                     options.out, writer.num_tokens(), 8 * writer.token_bytes(),
                     FormatBytes(static_cast<int64_t>(bytes)),
                     static_cast<double>(bytes) / static_cast<double>(writer.num_tokens()),
                     static_cast<double>(bytes) / 1e6 / seconds);
}

}  // namespace zg::tokenizer_tool
