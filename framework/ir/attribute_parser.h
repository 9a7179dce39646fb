// Reads attributes from text, the inverse of ToString(Attribute): `(epsilon=1e-05, shape=[4,8])`.
#pragma once

#include "framework/ir/attribute.h"
#include "framework/ir/text_cursor.h"

namespace zg::ir {

// `true`, `3`, `0.5`, `"text"` or `[4,8]`; a number with a point or an exponent is a double.
StatusOr<Attribute> ParseAttribute(TextCursor* cursor);

// Parses a list in parentheses; returns no attributes if the next character is not a parenthesis.
StatusOr<Attributes> ParseAttributes(TextCursor* cursor);

// `[4,8]`, also `[]`.
StatusOr<std::vector<int64_t>> ParseIntegers(TextCursor* cursor);

}  // namespace zg::ir
