// Reads Hugging Face's tokenizer.json. A setting that would change ids and is not supported is an
// error; the other keys are checked and ignored.
#include <algorithm>

#include "framework/io/strict_json.h"
#include "framework/text/json_node.h"
#include "framework/text/oniguruma_pattern.h"
#include "framework/text/tokenizer.h"
#include "framework/text/tokenizer_fields.h"

namespace zg {
namespace {

// The type of a component; empty if there is none.
StatusOr<std::string> TypeOf(const JsonNode& node) {
  if (node.is_null()) return std::string();
  ZG_ASSIGN_OR_RETURN(const JsonNode type, node.Member("type"));
  return type.Text();
}

Status ExpectNull(const JsonNode& parent, const std::string& name) {
  ZG_ASSIGN_OR_RETURN(const JsonNode node, parent.Member(name));
  return node.is_null() ? Status::Ok() : node.Error("null; this is not supported");
}

Status ExpectBoolean(const JsonNode& parent, const std::string& name, bool expected) {
  ZG_ASSIGN_OR_RETURN(const JsonNode node, parent.Member(name));
  if (node.value() == expected) return Status::Ok();
  return node.Error(expected ? "true; else is not supported" : "false; else is not supported");
}

// Calls `read` for every element of the array `name`.
template <typename Read>
Status ForEach(const JsonNode& parent, const std::string& name, const Read& read) {
  ZG_ASSIGN_OR_RETURN(const JsonNode list, parent.Member(name));
  ZG_ASSIGN_OR_RETURN(const size_t size, list.Size());
  for (size_t i = 0; i < size; ++i) {
    ZG_ASSIGN_OR_RETURN(const JsonNode element, list.Element(i));
    ZG_RETURN_IF_ERROR(read(element));
  }
  return Status::Ok();
}

Status ReadNormalizer(const JsonNode& node, TokenizerParts* parts) {
  ZG_ASSIGN_OR_RETURN(const std::string type, TypeOf(node));
  if (type.empty()) return Status::Ok();
  if (type == "NFC") {
    parts->normalizes_to_nfc = true;
    return node.HasOnly({"type"});
  }
  if (type == "Sequence") {
    ZG_RETURN_IF_ERROR(node.HasOnly({"type", "normalizers"}));
    return ForEach(node, "normalizers",
                   [&](const JsonNode& element) { return ReadNormalizer(element, parts); });
  }
  return node.Member("type")->Error("NFC, or a Sequence of it");
}

class PreTokenizerReader {
 public:
  explicit PreTokenizerReader(TokenizerParts* parts) : splits_(parts->pre_tokenizer.splits) {}

  Status Read(const JsonNode& node) {
    ZG_RETURN_IF_ERROR(ReadNode(node));
    return is_complete_ ? Status::Ok() : node.Error("a ByteLevel at the end of it");
  }

 private:
  Status ReadNode(const JsonNode& node) {
    ZG_ASSIGN_OR_RETURN(const JsonNode type_node, node.Member("type"));
    ZG_ASSIGN_OR_RETURN(const std::string type, type_node.Text());
    if (type == "Sequence") {
      ZG_RETURN_IF_ERROR(node.HasOnly({"type", "pretokenizers"}));
      return ForEach(node, "pretokenizers",
                     [&](const JsonNode& element) { return ReadNode(element); });
    }
    if (is_complete_) return type_node.Error("nothing after ByteLevel");
    if (type == "ByteLevel") return ReadByteLevel(node);
    if (type == "Split") return ReadSplit(node);
    if (type == "Digits") return ReadDigits(node);
    return type_node.Error("ByteLevel, Split, Digits, or a Sequence of them");
  }

  Status ReadByteLevel(const JsonNode& node) {
    ZG_RETURN_IF_ERROR(node.HasOnly({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    ZG_RETURN_IF_ERROR(ExpectBoolean(node, "add_prefix_space", false));
    is_complete_ = true;
    ZG_ASSIGN_OR_RETURN(const JsonNode use_regex, node.Member("use_regex"));
    if (use_regex.is_null()) return Add(node, kGpt2Pattern);
    ZG_ASSIGN_OR_RETURN(const bool is_used, use_regex.Boolean());
    return is_used ? Add(node, kGpt2Pattern) : Status::Ok();
  }

  Status ReadSplit(const JsonNode& node) {
    ZG_RETURN_IF_ERROR(node.HasOnly({"type", "pattern", "behavior", "invert"}));
    ZG_ASSIGN_OR_RETURN(const JsonNode behavior, node.Member("behavior"));
    if (behavior.value() != "Isolated") return behavior.Error("Isolated; else is not supported");
    ZG_ASSIGN_OR_RETURN(const JsonNode invert, node.Member("invert"));
    ZG_RETURN_IF_ERROR(invert.Boolean().status());  // both keep matches and the text between them
    ZG_ASSIGN_OR_RETURN(const JsonNode pattern, node.Member("pattern"));
    ZG_RETURN_IF_ERROR(pattern.HasOnly({"Regex", "String"}));
    ZG_ASSIGN_OR_RETURN(const JsonNode regex, pattern.Member("Regex"));
    ZG_ASSIGN_OR_RETURN(const JsonNode literal, pattern.Member("String"));
    if (regex.is_null() == literal.is_null()) return pattern.Error("Regex or String");
    if (!regex.is_null()) {
      ZG_ASSIGN_OR_RETURN(const std::string text, regex.Text());
      return Add(regex, text);
    }
    ZG_ASSIGN_OR_RETURN(const std::string text, literal.Text());
    ZG_ASSIGN_OR_RETURN(const Regex split, Regex::Literal(text));
    splits_.push_back(split);
    return Status::Ok();
  }

  Status ReadDigits(const JsonNode& node) {
    ZG_RETURN_IF_ERROR(node.HasOnly({"type", "individual_digits"}));
    ZG_ASSIGN_OR_RETURN(const JsonNode individual, node.Member("individual_digits"));
    ZG_ASSIGN_OR_RETURN(const bool is_individual, individual.Boolean());
    return Add(node, is_individual ? "\\p{N}" : "\\p{N}+");
  }

  Status Add(const JsonNode& node, const std::string& pattern) {
    const StatusOr<std::string> translated = PcreOfOniguruma(pattern);
    if (!translated.ok()) return node.Error("a supported regex: " + translated.status().message());
    const StatusOr<Regex> split = Regex::Compile(*translated);
    if (!split.ok()) return node.Error("a supported regex: " + split.status().message());
    splits_.push_back(*split);
    return Status::Ok();
  }

  std::vector<Regex>& splits_;
  bool is_complete_ = false;  // ByteLevel was found
};

Status ReadPostProcessor(const JsonNode& node, TokenizerParts* parts) {
  ZG_ASSIGN_OR_RETURN(const std::string type, TypeOf(node));
  if (type.empty() || type == "ByteLevel") return Status::Ok();  // it only changes offsets
  if (type == "Sequence") {
    ZG_RETURN_IF_ERROR(node.HasOnly({"type", "processors"}));
    return ForEach(node, "processors",
                   [&](const JsonNode& element) { return ReadPostProcessor(element, parts); });
  }
  if (type == "TemplateProcessing" && parts->begin_ids.empty() && parts->end_ids.empty()) {
    return ReadTemplateIds(node, &parts->begin_ids, &parts->end_ids);
  }
  return node.Member("type")->Error("ByteLevel, one TemplateProcessing, or a Sequence of them");
}

Status ReadDecoder(const JsonNode& node) {
  ZG_ASSIGN_OR_RETURN(const JsonNode type, node.Member("type"));
  return type.value() == "ByteLevel" ? Status::Ok() : type.Error("ByteLevel");
}

Status ReadAddedToken(const JsonNode& node, TokenizerParts* parts) {
  ZG_RETURN_IF_ERROR(
      node.HasOnly({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  ZG_RETURN_IF_ERROR(ExpectBoolean(node, "single_word", false));
  AddedToken token;
  ZG_ASSIGN_OR_RETURN(const JsonNode id, node.Member("id"));
  ZG_ASSIGN_OR_RETURN(token.id, id.Number());
  ZG_ASSIGN_OR_RETURN(const JsonNode content, node.Member("content"));
  ZG_ASSIGN_OR_RETURN(token.content, content.Text());
  ZG_ASSIGN_OR_RETURN(const JsonNode lstrip, node.Member("lstrip"));
  ZG_ASSIGN_OR_RETURN(token.takes_space_before, lstrip.Boolean());
  ZG_ASSIGN_OR_RETURN(const JsonNode rstrip, node.Member("rstrip"));
  ZG_ASSIGN_OR_RETURN(token.takes_space_behind, rstrip.Boolean());
  ZG_ASSIGN_OR_RETURN(const JsonNode special, node.Member("special"));
  ZG_ASSIGN_OR_RETURN(token.is_special, special.Boolean());
  ZG_ASSIGN_OR_RETURN(const JsonNode normalized, node.Member("normalized"));
  ZG_ASSIGN_OR_RETURN(const bool is_late, normalized.Boolean());
  (is_late ? parts->late_added_tokens : parts->added_tokens).push_back(std::move(token));
  return Status::Ok();
}

StatusOr<std::pair<std::string, std::string>> ReadMerge(const JsonNode& node) {
  if (node.value().is_array() && node.value().size() == 2) {
    ZG_ASSIGN_OR_RETURN(const JsonNode left, node.Element(0));
    ZG_ASSIGN_OR_RETURN(const JsonNode right, node.Element(1));
    ZG_ASSIGN_OR_RETURN(std::string left_text, left.Text());
    ZG_ASSIGN_OR_RETURN(std::string right_text, right.Text());
    return std::make_pair(std::move(left_text), std::move(right_text));
  }
  ZG_ASSIGN_OR_RETURN(const std::string text, node.Text());
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) {
    return node.Error("two tokens with a space between them");
  }
  return std::make_pair(text.substr(0, space), text.substr(space + 1));
}

Status ReadModel(const JsonNode& node, TokenizerParts* parts) {
  ZG_RETURN_IF_ERROR(node.HasOnly({"type", "dropout", "unk_token", "continuing_subword_prefix",
                                   "end_of_word_suffix", "fuse_unk", "byte_fallback",
                                   "ignore_merges", "vocab", "merges"}));
  ZG_ASSIGN_OR_RETURN(const JsonNode type, node.Member("type"));
  if (!type.is_null() && type.value() != "BPE") return type.Error("BPE");
  ZG_ASSIGN_OR_RETURN(const JsonNode dropout, node.Member("dropout"));
  if (!dropout.is_null() && dropout.value() != 0) return dropout.Error("null or 0");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ZG_ASSIGN_OR_RETURN(const JsonNode affix, node.Member(name));
    if (!affix.is_null() && affix.value() != "") return affix.Error("null or \"\"");
  }
  // No byte is unknown, so unk_token and fuse_unk have no effect.
  ZG_ASSIGN_OR_RETURN(const JsonNode fallback, node.Member("byte_fallback"));
  if (!fallback.is_null()) ZG_RETURN_IF_ERROR(ExpectBoolean(node, "byte_fallback", false));
  ZG_ASSIGN_OR_RETURN(const JsonNode ignore, node.Member("ignore_merges"));
  if (!ignore.is_null()) {
    ZG_ASSIGN_OR_RETURN(parts->vocabulary.keeps_whole_words, ignore.Boolean());
  }
  ZG_ASSIGN_OR_RETURN(const JsonNode ids, node.Member("vocab"));
  ZG_RETURN_IF_ERROR(ReadTokenIds(ids, &parts->vocabulary));
  return ForEach(node, "merges", [&](const JsonNode& element) -> Status {
    ZG_ASSIGN_OR_RETURN(auto merge, ReadMerge(element));
    parts->vocabulary.merges.push_back(std::move(merge));
    return Status::Ok();
  });
}

Status ReadTop(const JsonNode& top, TokenizerParts* parts) {
  ZG_RETURN_IF_ERROR(top.HasOnly({"version", "truncation", "padding", "added_tokens", "normalizer",
                                  "pre_tokenizer", "post_processor", "decoder", "model"}));
  ZG_ASSIGN_OR_RETURN(const JsonNode version, top.Member("version"));
  if (version.value() != "1.0") return version.Error("\"1.0\"");
  ZG_RETURN_IF_ERROR(ExpectNull(top, "truncation"));
  ZG_RETURN_IF_ERROR(ExpectNull(top, "padding"));
  ZG_ASSIGN_OR_RETURN(const JsonNode model, top.Member("model"));
  ZG_RETURN_IF_ERROR(ReadModel(model, parts));
  ZG_RETURN_IF_ERROR(ForEach(top, "added_tokens",
                             [&](const JsonNode& token) { return ReadAddedToken(token, parts); }));
  ZG_ASSIGN_OR_RETURN(const JsonNode normalizer, top.Member("normalizer"));
  ZG_RETURN_IF_ERROR(ReadNormalizer(normalizer, parts));
  ZG_ASSIGN_OR_RETURN(const JsonNode pre_tokenizer, top.Member("pre_tokenizer"));
  ZG_RETURN_IF_ERROR(PreTokenizerReader(parts).Read(pre_tokenizer));
  ZG_ASSIGN_OR_RETURN(const JsonNode post_processor, top.Member("post_processor"));
  ZG_RETURN_IF_ERROR(ReadPostProcessor(post_processor, parts));
  ZG_ASSIGN_OR_RETURN(const JsonNode decoder, top.Member("decoder"));
  return ReadDecoder(decoder);
}

}  // namespace

StatusOr<Tokenizer> Tokenizer::from_json_file(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const nlohmann::json json, ReadStrictJson(path));
  TokenizerParts parts;
  parts.path = path;
  ZG_RETURN_IF_ERROR(ReadTop(JsonNode(path, json), &parts));
  return create(parts);
}

}  // namespace zg
