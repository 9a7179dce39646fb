#include "framework/text/tokenizer_fields.h"

namespace zg {
namespace {

// Appends the ids of the special token `piece` in "special_tokens".
Status AppendIds(const JsonNode& tokens, const JsonNode& piece, std::vector<uint32_t>* ids) {
  ZG_ASSIGN_OR_RETURN(const JsonNode name_node, piece.Member("id"));
  ZG_ASSIGN_OR_RETURN(const std::string name, name_node.Text());
  ZG_ASSIGN_OR_RETURN(const JsonNode token, tokens.Member(name));
  ZG_ASSIGN_OR_RETURN(const JsonNode list, token.Member("ids"));
  ZG_ASSIGN_OR_RETURN(const size_t size, list.Size());
  for (size_t i = 0; i < size; ++i) {
    ZG_ASSIGN_OR_RETURN(const JsonNode element, list.Element(i));
    ZG_ASSIGN_OR_RETURN(const uint32_t id, element.Number());
    ids->push_back(id);
  }
  return Status::Ok();
}

}  // namespace

Status ReadTokenIds(const JsonNode& node, BpeVocabulary* vocabulary) {
  if (!node.value().is_object()) return node.Error("an object of ids by token");
  for (const auto& [token, id] : node.value().items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= uint64_t{1} << 31) {
      ZG_ASSIGN_OR_RETURN(const JsonNode member, node.Member(token));
      return member.Error("a whole number from 0 to 2^31 - 1");
    }
    vocabulary->ids.emplace(token, id.get<uint32_t>());
  }
  return Status::Ok();
}

Status ReadTemplateIds(const JsonNode& node, std::vector<uint32_t>* begin_ids,
                       std::vector<uint32_t>* end_ids) {
  ZG_RETURN_IF_ERROR(node.HasOnly({"type", "single", "pair", "special_tokens"}));
  ZG_ASSIGN_OR_RETURN(const JsonNode single, node.Member("single"));
  ZG_ASSIGN_OR_RETURN(const JsonNode tokens, node.Member("special_tokens"));
  ZG_ASSIGN_OR_RETURN(const size_t size, single.Size());
  size_t num_texts = 0;
  for (size_t i = 0; i < size; ++i) {
    ZG_ASSIGN_OR_RETURN(const JsonNode piece, single.Element(i));
    ZG_RETURN_IF_ERROR(piece.HasOnly({"SpecialToken", "Sequence"}));
    ZG_ASSIGN_OR_RETURN(const JsonNode special, piece.Member("SpecialToken"));
    if (special.is_null()) {
      ++num_texts;
    } else {
      ZG_RETURN_IF_ERROR(AppendIds(tokens, special, num_texts == 0 ? begin_ids : end_ids));
    }
  }
  return num_texts == 1 ? Status::Ok() : single.Error("the text once");
}

}  // namespace zg
