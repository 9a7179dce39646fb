// TextCursor: reads one line of text from left to right: symbols, words, quoted strings, numbers.
// Spaces between them are ignored. Errors name the place, the text found and the text expected:
// `mlp.graph:3:14: got 'linaer', expected ...`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace zg::ir {

class TextCursor {
 public:
  // `place` comes before the column in errors: "mlp.graph:3". `line` must outlive the cursor.
  TextCursor(std::string_view line, std::string place) : line_(line), place_(std::move(place)) {}

  bool AtEnd();                            // nothing but spaces follows
  bool LooksAt(std::string_view symbol);   // without reading it
  bool Consume(std::string_view symbol);   // reads `symbol` if it comes next
  Status Expect(std::string_view symbol);  // an error if something else comes next
  Status ExpectEnd();

  // `what` names the expected text in errors: "an op".
  StatusOr<std::string> Word(std::string_view what, std::string_view more_characters = "");
  StatusOr<std::string> QuotedString(std::string_view what);
  StatusOr<std::string> Name(std::string_view what);  // a word or a quoted string
  StatusOr<int64_t> Integer(std::string_view what);
  StatusOr<double> Number(std::string_view what);  // an integer is one too

  // The run of characters that words and numbers are made of; empty if the next character is
  // another one.
  std::string_view PeekToken();
  void Skip(std::string_view token) { position_ += token.size(); }

  std::string_view ReadUntil(char end);  // and `end` itself, if present
  std::string_view Rest();               // to the end of the line, without spaces around it

  size_t position();  // of the next character that is not a space
  Status Unexpected(std::string_view expected);
  Status ErrorAt(size_t position, const Status& status) const;

 private:
  void SkipSpaces();
  std::string DescribeNext();

  std::string_view line_;
  std::string place_;
  size_t position_ = 0;
};

}  // namespace zg::ir
