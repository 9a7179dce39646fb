#include "framework/ir/attribute_parser.h"

namespace zg::ir {

StatusOr<std::vector<int64_t>> ParseIntegers(TextCursor* cursor) {
  ZG_RETURN_IF_ERROR(cursor->Expect("["));
  std::vector<int64_t> integers;
  if (cursor->Consume("]")) return integers;
  do {
    ZG_ASSIGN_OR_RETURN(const int64_t integer, cursor->Integer("an integer"));
    integers.push_back(integer);
  } while (cursor->Consume(","));
  if (!cursor->Consume("]")) return cursor->Unexpected("',' or ']'");
  return integers;
}

StatusOr<Attribute> ParseAttribute(TextCursor* cursor) {
  constexpr std::string_view kWhat = "a value: true, false, 3, 0.5, \"text\" or [4,8]";
  if (cursor->LooksAt("\"")) {
    ZG_ASSIGN_OR_RETURN(std::string text, cursor->QuotedString(kWhat));
    return Attribute(std::move(text));
  }
  if (cursor->LooksAt("[")) {
    ZG_ASSIGN_OR_RETURN(std::vector<int64_t> integers, ParseIntegers(cursor));
    return Attribute(std::move(integers));
  }
  const std::string_view token = cursor->PeekToken();
  if (token == "true" || token == "false") {
    cursor->Skip(token);
    return Attribute(token == "true");
  }
  if (token.find_first_not_of("-0123456789") == std::string_view::npos) {
    ZG_ASSIGN_OR_RETURN(const int64_t integer, cursor->Integer(kWhat));
    return Attribute(integer);
  }
  ZG_ASSIGN_OR_RETURN(const double number, cursor->Number(kWhat));
  return Attribute(number);
}

StatusOr<Attributes> ParseAttributes(TextCursor* cursor) {
  Attributes attributes;
  if (!cursor->Consume("(") || cursor->Consume(")")) return attributes;
  do {
    const size_t position = cursor->position();
    ZG_ASSIGN_OR_RETURN(std::string name, cursor->Word("the name of an attribute"));
    if (attributes.Has(name)) {
      return cursor->ErrorAt(position, InvalidArgument("attribute '{}' is given twice", name));
    }
    ZG_RETURN_IF_ERROR(cursor->Expect("="));
    ZG_ASSIGN_OR_RETURN(Attribute value, ParseAttribute(cursor));
    attributes.Set(std::move(name), std::move(value));
  } while (cursor->Consume(","));
  if (!cursor->Consume(")")) return cursor->Unexpected("',' or ')'");
  return attributes;
}

}  // namespace zg::ir
