#include "models/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/text/encoded_text.h"

namespace zg::models {

StatusOr<Text> Text::Open(const TextFlags& flags, int64_t vocabulary, int64_t context,
                          const std::string& vocabulary_flag) {
  if (flags.data.empty()) {
    return InvalidArgument(
        "--data: got nothing, and {} is not there, which Debian's package python3.11-doc has; give "
        "text files",
        kProseDirectory);
  }
  std::optional<Tokenizer> tokenizer;
  if (!flags.tokenizer.empty()) {
    StatusOr<Tokenizer> opened = Tokenizer::open(flags.tokenizer);
    ZG_RETURN_IF_ERROR(opened.status().WithContext("--tokenizer"));
    tokenizer = std::move(*opened);
  }
  std::string from = "--data";  // the flags that an error is about
  if (!vocabulary_flag.empty()) {
    from += " with " + vocabulary_flag;
  } else if (tokenizer) {
    from += " with --tokenizer " + flags.tokenizer;
  }
  if (vocabulary == 0 && tokenizer) vocabulary = tokenizer->vocabulary_size();
  const std::optional<int> of_model =
      vocabulary > 0 ? std::optional<int>(static_cast<int>(vocabulary)) : std::nullopt;
  const bool is_encoded_here =
      tokenizer && std::none_of(flags.data.begin(), flags.data.end(), TokenDataset::IsTokenFile);

  const StatusOr<TokenDataset> all =
      TokenDataset::Open(flags.data, is_encoded_here ? std::nullopt : of_model);
  ZG_RETURN_IF_ERROR(all.status().WithContext(from));
  StatusOr<TokenSplit> split = all->Split(flags.validation_fraction);
  ZG_RETURN_IF_ERROR(split.status().WithContext(
      fmt::format("--data with --validation-fraction {}", flags.validation_fraction)));
  for (TokenDataset* part : {&split->train, &split->validation}) {
    // Texts are split before they are encoded, so every vocabulary is validated on the same text.
    if (is_encoded_here) {
      StatusOr<TokenDataset> encoded = EncodeText(*part, *tokenizer, *of_model);
      ZG_RETURN_IF_ERROR(encoded.status().WithContext(from));
      *part = std::move(*encoded);
    }
    ZG_RETURN_IF_ERROR(part->CheckContext(static_cast<int>(context))
                           .WithContext(fmt::format("--data with --context {}", context)));
  }
  return Text(std::move(*split), std::move(tokenizer));
}

StatusOr<std::vector<int64_t>> Text::Prompt(const SampleFlags& flags, int64_t context) const {
  if (!flags.prompt.empty()) return TokensOfPrompt(flags.prompt, context);
  const TokenDataset& data = tokens_.validation;
  std::vector<int64_t> prompt;
  const uint64_t size = std::min<uint64_t>(context / 2 + 1, data.size());
  for (uint64_t i = 0; i < size; ++i) prompt.push_back(data[i]);
  return prompt;
}

StatusOr<std::vector<int64_t>> Text::TokensOfPrompt(const std::string& prompt,
                                                    int64_t context) const {
  std::vector<int64_t> tokens;
  if (tokenizer_) {
    ZG_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, TextEncoder(*tokenizer_).encode(prompt));
    tokens.assign(ids.begin(), ids.end());
  } else if (!is_readable()) {
    return InvalidArgument(
        "--prompt: got a text for a model of {} tokens, expected one of bytes; give the --tokenizer "
        "whose tokens they are",
        vocabulary());
  } else {
    for (const char c : prompt) tokens.push_back(static_cast<unsigned char>(c));
  }
  if (static_cast<int64_t>(tokens.size()) > context) {
    return InvalidArgument(
        "--prompt: got a text of {} tokens, expected at most {}, what the model sees; give a shorter "
        "one",
        tokens.size(), context);
  }
  for (const int64_t token : tokens) {
    if (token < vocabulary()) continue;
    return InvalidArgument("--prompt: it has the token {}, the model knows 0 to {}", token,
                           vocabulary() - 1);
  }
  return tokens;
}

std::string Text::Continuation(const SampleFlags& flags, const std::vector<int64_t>& tokens) const {
  const std::string continued = !flags.prompt.empty() ? "prompt"
                                : is_readable()       ? "validation text"
                                                      : "validation tokens";
  const std::string shown =
      !is_readable() ? fmt::to_string(fmt::join(tokens, " "))
                     : PrintableText(tokenizer_ ? BytesOfSample(tokens, *tokenizer_) : tokens);
  return fmt::format("\nIt continues the {} with:\n{}\n", continued, shown);
}

StatusOr<std::string> Text::LossLines(double nats_per_token, uint64_t num_tokens,
                                      const std::string& remark) const {
  const double bits_per_token = nats_per_token / std::log(2.0);
  const std::string line = fmt::format("  validation  loss {:.4f} nats per token ({:.3f} bits){}\n",
                                       nats_per_token, bits_per_token, remark);
  if (!tokenizer_) return line;
  const StatusOr<std::string> text = DecodeTokens(tokens_.validation, 1, num_tokens, *tokenizer_);
  ZG_RETURN_IF_ERROR(text.status().WithContext("--tokenizer"));
  const double bytes_per_token =
      static_cast<double>(text->size()) / static_cast<double>(num_tokens);
  return line + fmt::format("  {:.4f} bits per byte, {:.3f} bytes per token\n",
                            bits_per_token / bytes_per_token, bytes_per_token);
}

}  // namespace zg::models
