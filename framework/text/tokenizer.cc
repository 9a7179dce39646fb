#include "framework/text/tokenizer.h"

#include <filesystem>

#include "framework/text/byte_characters.h"
#include "framework/text/tokenizer_state.h"

namespace zg {
namespace {

constexpr uint32_t kMaxId = (1 << 24) - 1;

// The bytes of every token: for a token of the vocabulary those that its characters represent, for
// an added token its content.
Status FillBytes(const TokenizerParts& parts,
                 std::vector<std::optional<std::string>>* bytes_by_id) {
  const auto put = [&](uint32_t id, std::string bytes) {
    if (id >= bytes_by_id->size()) bytes_by_id->resize(id + 1);
    (*bytes_by_id)[id] = std::move(bytes);
  };
  for (const auto& [token, id] : parts.vocabulary.ids) {
    if (id > kMaxId) {
      return DataLoss("{}: vocabulary: got the id {} for '{}', expected at most {}", parts.path, id,
                      token, kMaxId);
    }
    put(id, CharactersAsBytes(token).value_or(token));
  }
  std::unordered_map<uint32_t, const std::string*> added;
  for (const auto* tokens : {&parts.added_tokens, &parts.late_added_tokens}) {
    for (const AddedToken& token : *tokens) {
      if (token.content.empty() || token.id > kMaxId) {
        return DataLoss("{}: added token '{}' with id {}: expected some text and an id up to {}",
                        parts.path, token.content, token.id, kMaxId);
      }
      const auto in_vocabulary = parts.vocabulary.ids.find(token.content);
      const bool is_other_there =
          in_vocabulary == parts.vocabulary.ids.end()
              ? token.id < bytes_by_id->size() && (*bytes_by_id)[token.id].has_value()
              : in_vocabulary->second != token.id;
      if (is_other_there || !added.emplace(token.id, &token.content).second) {
        return DataLoss("{}: added token '{}': got the id {}, which another token has", parts.path,
                        token.content, token.id);
      }
    }
  }
  for (const auto& [id, content] : added) put(id, *content);
  return Status::Ok();
}

}  // namespace

StatusOr<Tokenizer> Tokenizer::create(const TokenizerParts& parts) {
  if (parts.normalizes_to_nfc && !parts.late_added_tokens.empty()) {
    return InvalidArgument(
        "{}: added token '{}': got \"normalized\": true beside a normalizer, expected false",
        parts.path, parts.late_added_tokens[0].content);
  }
  auto state = std::make_shared<State>();
  state->path = parts.path;
  ZG_ASSIGN_OR_RETURN(state->model, BpeModel::Create(parts.path, parts.vocabulary));
  ZG_RETURN_IF_ERROR(FillBytes(parts, &state->bytes_by_id));
  for (const auto* ids : {&parts.begin_ids, &parts.end_ids}) {
    for (const uint32_t id : *ids) {
      if (id < state->bytes_by_id.size() && state->bytes_by_id[id].has_value()) continue;
      return DataLoss("{}: post_processor: got the id {}, which no token has", parts.path, id);
    }
  }
  state->rules = {parts.pre_tokenizer, parts.normalizes_to_nfc, AddedTokens(parts.added_tokens),
                  AddedTokens(parts.late_added_tokens)};
  state->begin_ids = parts.begin_ids;
  state->end_ids = parts.end_ids;
  return Tokenizer(std::move(state));
}

StatusOr<Tokenizer> Tokenizer::open(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return from_json_file(path);
  const auto has = [&](const char* name) {
    return std::filesystem::exists(path + "/" + name, error);
  };
  if (has("tokenizer.json")) return from_json_file(path + "/tokenizer.json");
  if (has("vocab.bpe")) return from_gpt2_files(path + "/vocab.bpe", path + "/encoder.json");
  if (has("merges.txt")) return from_gpt2_files(path + "/merges.txt", path + "/vocab.json");
  return NotFound(
      "{}: got a directory without a tokenizer, expected tokenizer.json, or vocab.bpe and "
      "encoder.json, or merges.txt and vocab.json",
      path);
}

const std::string& Tokenizer::path() const { return state_->path; }
int64_t Tokenizer::vocabulary_size() const {
  return static_cast<int64_t>(state_->bytes_by_id.size());
}
const std::vector<uint32_t>& Tokenizer::begin_ids() const { return state_->begin_ids; }
const std::vector<uint32_t>& Tokenizer::end_ids() const { return state_->end_ids; }

std::optional<uint32_t> Tokenizer::added_token_id(std::string_view content) const {
  for (const AddedTokens* tokens :
       {&state_->rules.added_tokens, &state_->rules.late_added_tokens}) {
    for (const AddedToken& token : tokens->tokens()) {
      if (token.content == content) return token.id;
    }
  }
  return std::nullopt;
}

StatusOr<std::string> Tokenizer::decode(const std::vector<uint32_t>& ids) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= state_->bytes_by_id.size() || !state_->bytes_by_id[ids[i]].has_value()) {
      return InvalidArgument("{}: got the id {} at position {}, expected one of its tokens",
                             state_->path, ids[i], i);
    }
    text += *state_->bytes_by_id[ids[i]];
  }
  return text;
}

}  // namespace zg
