#include "framework/kernels/cpu/elementwise_program.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace zg {
namespace {

// The text before the first `separator`; removes both from `text`. Without one, all of it.
std::string_view TakeUntil(char separator, std::string_view& text) {
  const size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Parser {
 public:
  Parser(std::string_view program, int num_inputs) : program_(program), num_inputs_(num_inputs) {}

  StatusOr<std::vector<ElementwiseStatement>> Parse() {
    std::string_view rest = program_;
    do {
      ZG_RETURN_IF_ERROR(ParseStatement(TakeUntil(';', rest)));
    } while (!rest.empty());
    for (size_t i = 0; i + 1 < used_.size(); ++i) {
      if (!used_[i]) return Error("t{} is never used", i);
    }
    return std::move(statements_);
  }

 private:
  template <typename... Args>
  Status Error(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidArgument("fused_elementwise: program \"{}\": {}", program_,
                           fmt::format(format, std::forward<Args>(args)...));
  }

  Status ParseStatement(std::string_view text) {
    const std::string_view whole = text;
    const std::string result = fmt::format("t{}", statements_.size());
    if (TakeUntil('=', text) != result) {
      return Error("got \"{}\", expected \"{}=op(...)\"", whole, result);
    }
    const std::string_view name = TakeUntil('(', text);
    ElementwiseStatement statement;
    statement.op = FindElementwiseOp(name);
    if (statement.op == nullptr) return Error("\"{}\" is not an elementwise op", name);
    if (text.empty() || text.back() != ')')
      return Error("\"{}\" has no closing parenthesis", whole);
    text.remove_suffix(1);
    bool has_scalar = false;
    while (!text.empty()) {
      std::string_view argument = TakeUntil(',', text);
      if (argument.find('=') == std::string_view::npos) {
        ZG_ASSIGN_OR_RETURN(ElementwiseStatement::Operand operand, ParseOperand(argument));
        statement.operands.push_back(operand);
        continue;
      }
      const std::string_view key = TakeUntil('=', argument);
      const std::optional<double> value = ParseNumber<double>(argument);
      if (key.empty() || key != statement.op->scalar_attribute || !value) {
        return Error("\"{}={}\" is not an attribute of {}", key, argument, name);
      }
      statement.scalar = static_cast<float>(*value);
      has_scalar = true;
    }
    if (static_cast<int>(statement.operands.size()) != statement.op->num_inputs) {
      return Error("{} takes {} operands, got {}", name, statement.op->num_inputs,
                   statement.operands.size());
    }
    if (has_scalar == statement.op->scalar_attribute.empty()) {
      return Error("{} needs its attribute {}", name, statement.op->scalar_attribute);
    }
    statements_.push_back(std::move(statement));
    used_.push_back(false);
    return Status::Ok();
  }

  StatusOr<ElementwiseStatement::Operand> ParseOperand(std::string_view text) {
    const std::optional<int> index = text.empty() ? std::nullopt : ParseNumber<int>(text.substr(1));
    if (index && *index >= 0 && text[0] == 'i' && *index < num_inputs_) {
      return ElementwiseStatement::Operand{true, *index};
    }
    if (index && *index >= 0 && text[0] == 't' && *index < static_cast<int>(statements_.size())) {
      used_[*index] = true;
      return ElementwiseStatement::Operand{false, *index};
    }
    return Error("operand \"{}\" is neither one of the {} inputs nor an earlier result", text,
                 num_inputs_);
  }

  const std::string_view program_;
  const int num_inputs_;
  std::vector<ElementwiseStatement> statements_;
  std::vector<bool> used_;  // by a later statement
};

}  // namespace

StatusOr<std::vector<ElementwiseStatement>> ParseElementwiseProgram(std::string_view program,
                                                                    int num_inputs) {
  return Parser(program, num_inputs).Parse();
}

}  // namespace zg
