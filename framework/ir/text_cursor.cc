#include "framework/ir/text_cursor.h"

#include <algorithm>
#include <charconv>

#include "framework/ir/quote.h"

namespace zg::ir {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Parses all of `text` as a number; false if that fails.
template <typename T>
bool ParseNumber(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool TextCursor::AtEnd() {
  SkipSpaces();
  return position_ == line_.size();
}

bool TextCursor::LooksAt(std::string_view symbol) {
  SkipSpaces();
  return line_.substr(position_, symbol.size()) == symbol;
}

bool TextCursor::Consume(std::string_view symbol) {
  if (!LooksAt(symbol)) return false;
  position_ += symbol.size();
  return true;
}

Status TextCursor::Expect(std::string_view symbol) {
  return Consume(symbol) ? Status::Ok() : Unexpected(fmt::format("'{}'", symbol));
}

Status TextCursor::ExpectEnd() {
  return AtEnd() ? Status::Ok() : Unexpected("the end of the line");
}

StatusOr<std::string> TextCursor::Word(std::string_view what, std::string_view more_characters) {
  SkipSpaces();
  size_t end = position_;
  while (end < line_.size() && (IsNameCharacter(line_[end]) ||
                                more_characters.find(line_[end]) != std::string_view::npos)) {
    ++end;
  }
  if (end == position_) return Unexpected(what);
  std::string word(line_.substr(position_, end - position_));
  position_ = end;
  return word;
}

StatusOr<std::string> TextCursor::QuotedString(std::string_view what) {
  const size_t start = position();
  if (!Consume("\"")) return Unexpected(what);
  std::string text;
  while (position_ < line_.size()) {
    const char c = line_[position_++];
    if (c == '"') return text;
    if (c != '\\') {
      text += c;
      continue;
    }
    const char escape = position_ < line_.size() ? line_[position_++] : '\0';
    unsigned code = 0;
    if (escape == '"' || escape == '\\') {
      text += escape;
    } else if (escape == 'n') {
      text += '\n';
    } else if (escape == 't') {
      text += '\t';
    } else if (const std::string_view digits = line_.substr(std::min(position_, line_.size()), 2);
               escape == 'x' && digits.size() == 2 &&
               std::from_chars(digits.data(), digits.data() + 2, code, 16).ptr ==
                   digits.data() + 2) {
      text += static_cast<char>(code);
      position_ += 2;
    } else {
      return ErrorAt(position_ - 1, InvalidArgument("unknown escape in a string, expected one of "
                                                    "\\\" \\\\ \\n \\t \\xNN"));
    }
  }
  return ErrorAt(start, InvalidArgument("the string does not end, expected '\"'"));
}

StatusOr<std::string> TextCursor::Name(std::string_view what) {
  return LooksAt("\"") ? QuotedString(what) : Word(what);
}

StatusOr<int64_t> TextCursor::Integer(std::string_view what) {
  const std::string_view token = PeekToken();
  int64_t number = 0;
  if (!ParseNumber(token, &number)) return Unexpected(what);
  Skip(token);
  return number;
}

StatusOr<double> TextCursor::Number(std::string_view what) {
  const std::string_view token = PeekToken();
  double number = 0;
  if (!ParseNumber(token, &number)) return Unexpected(what);
  Skip(token);
  return number;
}

std::string_view TextCursor::PeekToken() {
  SkipSpaces();
  size_t end = position_;
  while (end < line_.size() &&
         (IsNameCharacter(line_[end]) || line_[end] == '+' || line_[end] == '-')) {
    ++end;
  }
  return line_.substr(position_, end - position_);
}

std::string_view TextCursor::ReadUntil(char end) {
  const size_t start = position_;
  position_ = std::min(line_.find(end, start), line_.size());
  const std::string_view text = line_.substr(start, position_ - start);
  if (position_ < line_.size()) ++position_;
  return text;
}

std::string_view TextCursor::Rest() {
  SkipSpaces();
  std::string_view rest = line_.substr(position_);
  while (!rest.empty() && IsSpace(rest.back())) rest.remove_suffix(1);
  position_ = line_.size();
  return rest;
}

size_t TextCursor::position() {
  SkipSpaces();
  return position_;
}

Status TextCursor::Unexpected(std::string_view expected) {
  const std::string got = DescribeNext();
  return ErrorAt(position_, InvalidArgument("got {}, expected {}", got, expected));
}

Status TextCursor::ErrorAt(size_t position, const Status& status) const {
  return status.WithContext(fmt::format("{}:{}", place_, position + 1));
}

void TextCursor::SkipSpaces() {
  while (position_ < line_.size() && IsSpace(line_[position_])) ++position_;
}

std::string TextCursor::DescribeNext() {
  constexpr size_t kLongest = 40;
  if (AtEnd()) return "the end of the line";
  std::string_view next = PeekToken();
  if (next.empty()) next = line_.substr(position_, 1);
  std::string quoted = Quote(next.substr(0, kLongest));
  quoted.front() = quoted.back() = '\'';
  return quoted;
}

}  // namespace zg::ir
