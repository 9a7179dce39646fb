#include "framework/text/tokenizer_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/text/oniguruma_pattern.h"

namespace zg {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kGpt2 = "gpt2";

StatusOr<NamedPattern> FindPattern(std::string_view name) {
  std::string names;
  for (const NamedPattern& known : NamedPatterns()) {
    if (known.name == name) return known;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return InvalidArgument("pattern: got '{}', expected one of {}", name, names);
}

Json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json PreTokenizerAsJson(const NamedPattern& pattern) {
  if (pattern.name == kGpt2) return ByteLevel(true);
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern.pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, ByteLevel(false)})}};
}

Json AddedTokenAsJson(const AddedToken& token) {
  return {{"id", token.id},
          {"content", token.content},
          {"single_word", false},
          {"lstrip", token.takes_space_before},
          {"rstrip", token.takes_space_behind},
          {"normalized", false},
          {"special", token.is_special}};
}

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

const std::vector<NamedPattern>& NamedPatterns() {
  static const std::vector<NamedPattern> patterns = {
      {kGpt2, kGpt2Pattern},
      {"llama3",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
      {"qwen2",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
  };
  return patterns;
}

StatusOr<PreTokenizer> NamedPreTokenizer(std::string_view name) {
  ZG_ASSIGN_OR_RETURN(const NamedPattern known, FindPattern(name));
  ZG_ASSIGN_OR_RETURN(const std::string pattern, PcreOfOniguruma(known.pattern));
  ZG_ASSIGN_OR_RETURN(Regex split, Regex::Compile(pattern));
  return PreTokenizer{{std::move(split)}};
}

StatusOr<std::string> TokenizerAsJson(const TokenizerParts& parts, std::string_view pattern_name) {
  ZG_ASSIGN_OR_RETURN(const NamedPattern pattern, FindPattern(pattern_name));
  Json top = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  top["added_tokens"] = Json::array();
  for (const AddedToken& token : parts.added_tokens) {
    top["added_tokens"].push_back(AddedTokenAsJson(token));
  }
  top["normalizer"] = nullptr;
  top["pre_tokenizer"] = PreTokenizerAsJson(pattern);
  top["post_processor"] = nullptr;
  top["decoder"] = ByteLevel(true);
  const Json model = {{"type", "BPE"},
                      {"dropout", nullptr},
                      {"unk_token", nullptr},
                      {"continuing_subword_prefix", nullptr},
                      {"end_of_word_suffix", nullptr},
                      {"fuse_unk", false},
                      {"byte_fallback", false},
                      {"ignore_merges", false}};
  // The two large lists are written without the JSON library, one item per line.
  std::vector<std::pair<uint32_t, const std::string*>> tokens;
  for (const auto& [token, id] : parts.vocabulary.ids) tokens.emplace_back(id, &token);
  std::sort(tokens.begin(), tokens.end());
  std::string vocabulary, merges;
  for (const auto& [id, token] : tokens) {
    vocabulary += fmt::format("{}\n{}: {}", vocabulary.empty() ? "" : ",", Quoted(*token), id);
  }
  for (const auto& [left, right] : parts.vocabulary.merges) {
    merges += fmt::format("{}\n[{}, {}]", merges.empty() ? "" : ",", Quoted(left), Quoted(right));
  }
  std::string text = top.dump(1);
  text.resize(text.size() - 2);  // without "\n}"
  std::string model_text = model.dump(1);
  model_text.resize(model_text.size() - 2);
  return fmt::format("{},\n \"model\": {},\n \"vocab\": {{{}\n}},\n \"merges\": [{}\n]}}}}\n", text,
                     model_text, vocabulary, merges);
}

}  // namespace zg
