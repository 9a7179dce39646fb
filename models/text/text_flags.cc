#include "models/text/text_flags.h"

#include <optional>

namespace zg::models {

void AddTextFlags(FlagParser* parser, TextFlags* flags) {
  parser->section("Data");
  parser->add_strings(
      "data", &flags->data,
      "text files or directories of them, whose bytes are the tokens, or one .bin file of tokens "
      "(nanoGPT, llm.c)",
      "FILE");
  parser->add_int("eval-windows", &flags->eval_windows, at_least(1),
                  "contexts of validation data in a validation");
}

StatusOr<TokenSplit> OpenText(const TextFlags& flags, int64_t vocabulary, int64_t context) {
  if (flags.data.empty()) {
    return InvalidArgument(
        "--data: got nothing, and {} is not there, which Debian's package python3.11-doc has; give "
        "text files",
        kProseDirectory);
  }
  const std::optional<int> of_model =
      vocabulary > 0 ? std::optional<int>(static_cast<int>(vocabulary)) : std::nullopt;
  const StatusOr<TokenDataset> all = TokenDataset::Open(flags.data, of_model);
  ZG_RETURN_IF_ERROR(all.status().WithContext("--data"));
  StatusOr<TokenSplit> data = all->Split(0.1);
  ZG_RETURN_IF_ERROR(data.status().WithContext("--data"));
  for (const TokenDataset* part : {&data->train, &data->validation}) {
    ZG_RETURN_IF_ERROR(part->CheckContext(static_cast<int>(context)).WithContext("--data"));
  }
  return data;
}

}  // namespace zg::models
