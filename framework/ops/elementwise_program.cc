#include "framework/ops/elementwise_program.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "framework/ir/attribute.h"

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

  StatusOr<ElementwiseProgram> Parse(const std::vector<int64_t>& results) {
    std::string_view rest = program_;
    do {
      ZG_RETURN_IF_ERROR(ParseStatement(TakeUntil(';', rest)));
    } while (!rest.empty());
    for (const int64_t result : results) {
      if (result < 0 || result >= static_cast<int64_t>(used_.size())) {
        return Error("it has no t{}", result);
      }
      used_[result] = true;
    }
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
    statement.op = FindElementwiseRow(name);
    if (statement.op == nullptr) return Error("\"{}\" is not an elementwise op", name);
    if (text.empty() || text.back() != ')')
      return Error("\"{}\" has no closing parenthesis", whole);
    text.remove_suffix(1);
    bool has_attribute = false;
    while (!text.empty()) {
      std::string_view argument = TakeUntil(',', text);
      if (argument.find('=') == std::string_view::npos) {
        ZG_ASSIGN_OR_RETURN(const ElementwiseOperand operand, ParseOperand(argument));
        statement.operands.push_back(operand);
        continue;
      }
      const std::string_view key = TakeUntil('=', argument);
      const std::optional<double> value = ParseNumber<double>(argument);
      if (key.empty() || key != statement.op->attribute || !value) {
        return Error("\"{}={}\" is not an attribute of {}", key, argument, name);
      }
      statement.attribute = *value;
      has_attribute = true;
    }
    if (static_cast<int>(statement.operands.size()) != statement.op->num_inputs) {
      return Error("{} takes {} operands, got {}", name, statement.op->num_inputs,
                   statement.operands.size());
    }
    if (has_attribute == statement.op->attribute.empty()) {
      return Error("{} needs its attribute {}", name, statement.op->attribute);
    }
    statements_.push_back(std::move(statement));
    used_.push_back(false);
    return Status::Ok();
  }

  StatusOr<ElementwiseOperand> ParseOperand(std::string_view text) {
    const std::optional<int> index = text.empty() ? std::nullopt : ParseNumber<int>(text.substr(1));
    if (index && *index >= 0 && text[0] == 'i' && *index < num_inputs_) {
      return ElementwiseOperand{true, *index};
    }
    if (index && *index >= 0 && text[0] == 't' && *index < static_cast<int>(statements_.size())) {
      used_[*index] = true;
      return ElementwiseOperand{false, *index};
    }
    return Error("operand \"{}\" is neither one of the {} inputs nor an earlier result", text,
                 num_inputs_);
  }

  const std::string_view program_;
  const int num_inputs_;
  ElementwiseProgram statements_;
  std::vector<bool> used_;  // by a later statement
};

}  // namespace

std::string ToString(const ElementwiseProgram& program) {
  std::vector<std::string> statements;
  for (const ElementwiseStatement& statement : program) {
    std::vector<std::string> arguments;
    for (const ElementwiseOperand& operand : statement.operands) {
      arguments.push_back(fmt::format("{}{}", operand.is_input ? 'i' : 't', operand.index));
    }
    if (!statement.op->attribute.empty()) {
      arguments.push_back(
          fmt::format("{}={}", statement.op->attribute, ir::ToString(statement.attribute)));
    }
    statements.push_back(
        fmt::format("t{}={}({})", statements.size(), statement.op->op, fmt::join(arguments, ",")));
  }
  return fmt::format("{}", fmt::join(statements, ";"));
}

StatusOr<ElementwiseProgram> ParseElementwiseProgram(std::string_view text, int num_inputs,
                                                     const std::vector<int64_t>& results) {
  return Parser(text, num_inputs).Parse(results);
}

int64_t FlopsPerElement(const ElementwiseProgram& program) {
  int64_t flops = 0;
  for (const ElementwiseStatement& statement : program) flops += statement.op->flops;
  return flops;
}

}  // namespace zg
