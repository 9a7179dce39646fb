// Reads the two files of GPT-2's vocabulary: vocab.bpe (merges.txt), encoder.json (vocab.json).
#include "framework/io/mapped_file.h"
#include "framework/io/strict_json.h"
#include "framework/text/json_node.h"
#include "framework/text/oniguruma_pattern.h"
#include "framework/text/tokenizer.h"
#include "framework/text/tokenizer_fields.h"

namespace zg {
namespace {

constexpr std::string_view kVersion = "#version";
constexpr std::string_view kEndOfText = "<|endoftext|>";

Status ReadMerges(const std::string& path, BpeVocabulary* vocabulary) {
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1 && line.substr(0, kVersion.size()) == kVersion) continue;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const size_t space = line.find(' ');
    if (space == line.npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != line.npos) {
      return DataLoss("{}: line {}: got '{}', expected two tokens with a space between them", path,
                      number, line.substr(0, 80));
    }
    vocabulary->merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return Status::Ok();
}

}  // namespace

StatusOr<Tokenizer> Tokenizer::from_gpt2_files(const std::string& merges_path,
                                               const std::string& ids_path) {
  TokenizerParts parts;
  parts.path = merges_path + " and " + ids_path;
  ZG_RETURN_IF_ERROR(ReadMerges(merges_path, &parts.vocabulary));
  ZG_ASSIGN_OR_RETURN(const nlohmann::json ids, ReadStrictJson(ids_path));
  ZG_RETURN_IF_ERROR(ReadTokenIds(JsonNode(ids_path, ids), &parts.vocabulary));
  const auto end_of_text = parts.vocabulary.ids.find(std::string(kEndOfText));
  if (end_of_text != parts.vocabulary.ids.end()) {
    AddedToken token;
    token.id = end_of_text->second;
    token.content = kEndOfText;
    token.is_special = true;
    parts.added_tokens.push_back(token);
  }
  ZG_ASSIGN_OR_RETURN(const std::string pattern, PcreOfOniguruma(kGpt2Pattern));
  ZG_ASSIGN_OR_RETURN(const Regex words, Regex::Compile(pattern));
  parts.pre_tokenizer.splits.push_back(words);
  return create(parts);
}

}  // namespace zg
