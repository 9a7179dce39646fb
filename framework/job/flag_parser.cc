#include "framework/job/flag_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "framework/base/check.h"

namespace zg {
namespace {

constexpr double kMebibyte = 1 << 20;

// Parses the whole text as a number: no white space, no sign except a minus, decimal.
template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  return number;
}

Status BadValue(const std::string& name, const std::string& got, const std::string& expected) {
  return InvalidArgument("--{}: got '{}', expected {}", name, got, expected);
}

std::string JoinChoices(const std::vector<std::string>& choices) {
  std::string joined;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) joined += i + 1 == choices.size() ? " or " : ", ";
    joined += choices[i];
  }
  return joined;
}

// On lines of their own below a help text, as they are too many to stand beside the flag.
std::string ChoicesBelow(const std::vector<std::string>& choices) {
  constexpr size_t kLineLength = 88;
  std::string text;
  std::string line = "one of ";
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string next = choices[i] + (i + 1 < choices.size() ? "," : "");
    if (line.size() + next.size() > kLineLength) {
      text += "\n" + line;
      line.clear();
    }
    line += (line.empty() || line.back() == ' ' ? "" : " ") + next;
  }
  return text + "\n" + line;
}

// The Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void FlagParser::Add(Flag flag) {
  for (const Flag& other : flags_) {
    ZG_CHECK(other.name != flag.name, "flag --{} is added twice", flag.name);
  }
  flag.section = section_;
  flags_.push_back(std::move(flag));
}

template <typename Integer>
void FlagParser::AddInteger(std::string name, Integer* value, NumberRange range, std::string help,
                            std::string placeholder) {
  const auto assign = [name, value, range](const std::vector<std::string>& texts) -> Status {
    const std::optional<Integer> number = ParseNumber<Integer>(texts[0]);
    if (!number || !range.Contains(static_cast<double>(*number))) {
      const std::string limits = range.ToString();
      return BadValue(name, texts[0], "a whole number" + (limits.empty() ? "" : " " + limits));
    }
    *value = *number;
    return Status::Ok();
  };
  Add({std::move(name), Kind::kSingle, std::move(placeholder), std::move(help), "", assign,
       [value]() -> FlagValue { return int64_t{*value}; }});
}

void FlagParser::add_int(std::string name, int* value, NumberRange range, std::string help,
                         std::string placeholder) {
  AddInteger(std::move(name), value, range, std::move(help), std::move(placeholder));
}

void FlagParser::add_int(std::string name, int64_t* value, NumberRange range, std::string help,
                         std::string placeholder) {
  AddInteger(std::move(name), value, range, std::move(help), std::move(placeholder));
}

void FlagParser::add_double(std::string name, double* value, NumberRange range, std::string help,
                            std::string placeholder) {
  const auto assign = [name, value, range](const std::vector<std::string>& texts) -> Status {
    const std::optional<double> number = ParseNumber<double>(texts[0]);
    if (!number || !range.Contains(*number)) {
      const std::string limits = range.ToString();
      return BadValue(name, texts[0], "a number" + (limits.empty() ? "" : " " + limits));
    }
    *value = *number;
    return Status::Ok();
  };
  Add({std::move(name), Kind::kSingle, std::move(placeholder), std::move(help), "", assign,
       [value]() -> FlagValue { return *value; }});
}

void FlagParser::add_mebibytes(std::string name, int64_t* bytes, NumberRange range,
                               std::string help, std::string placeholder) {
  const auto assign = [name, bytes, range](const std::vector<std::string>& texts) -> Status {
    const std::optional<double> number = ParseNumber<double>(texts[0]);
    const double given = number.value_or(0) * kMebibyte;
    if (!number || !range.Contains(*number) || given < 1) {
      return BadValue(name, texts[0], "a number " + range.ToString());
    }
    *bytes = static_cast<int64_t>(given);
    return Status::Ok();
  };
  Add({std::move(name), Kind::kSingle, std::move(placeholder), std::move(help), "", assign,
       [bytes]() -> FlagValue { return static_cast<double>(*bytes) / kMebibyte; }});
}

void FlagParser::add_string(std::string name, std::string* value, std::string help,
                            std::string placeholder) {
  const auto assign = [value](const std::vector<std::string>& texts) {
    *value = texts[0];
    return Status::Ok();
  };
  Add({std::move(name), Kind::kSingle, std::move(placeholder), std::move(help), "", assign,
       [value]() -> FlagValue { return *value; }});
}

void FlagParser::add_choice(std::string name, std::string* value, std::vector<std::string> choices,
                            std::string help) {
  add_choice(
      std::move(name), std::move(choices), [value](const std::string& text) { *value = text; },
      [value] { return *value; }, std::move(help));
}

void FlagParser::add_choice(std::string name, std::vector<std::string> choices,
                            std::function<void(const std::string& text)> set,
                            std::function<std::string()> get, std::string help) {
  std::string placeholder;
  for (const std::string& choice : choices) {
    placeholder += placeholder.empty() ? choice : "|" + choice;
  }
  constexpr size_t kLongest = 60;
  if (placeholder.size() > kLongest) {
    placeholder = "NAME";
    help += ChoicesBelow(choices);
  }
  const auto assign = [name, set, choices](const std::vector<std::string>& texts) -> Status {
    if (std::find(choices.begin(), choices.end(), texts[0]) == choices.end()) {
      return BadValue(name, texts[0], JoinChoices(choices));
    }
    set(texts[0]);
    return Status::Ok();
  };
  Add({std::move(name), Kind::kSingle, std::move(placeholder), std::move(help), "", assign,
       [get]() -> FlagValue { return get(); }});
}

void FlagParser::add_parsed(std::string name, std::function<Status(const std::string& text)> set,
                            std::function<FlagValue()> get, std::string help,
                            std::string placeholder) {
  const auto assign = [name, set](const std::vector<std::string>& texts) {
    return set(texts[0]).WithContext("--" + name);
  };
  Add({std::move(name), Kind::kSingle, std::move(placeholder), std::move(help), "", assign,
       std::move(get)});
}

void FlagParser::add_strings(std::string name, std::vector<std::string>* value, std::string help,
                             std::string placeholder) {
  const auto assign = [value](const std::vector<std::string>& texts) {
    *value = texts;
    return Status::Ok();
  };
  Add({std::move(name), Kind::kList, std::move(placeholder), std::move(help), "", assign,
       [value]() -> FlagValue { return *value; }});
}

void FlagParser::add_bool(std::string name, bool* value, std::string help) {
  const auto assign = [name, value](const std::vector<std::string>& texts) -> Status {
    if (texts[0] != "true" && texts[0] != "false") {
      return BadValue(name, texts[0], fmt::format("--{0} or --no-{0} without a value", name));
    }
    *value = texts[0] == "true";
    return Status::Ok();
  };
  Add({std::move(name), Kind::kSwitch, "", std::move(help), "", assign,
       [value]() -> FlagValue { return *value; }});
}

namespace {

// Shows a switch as --name,--no-name; CLI11 adds {false} to the second.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    if (const size_t at = name.find("{false}"); at != std::string::npos) name.erase(at, 7);
    return name;
  }
};

}  // namespace

// CLI11 parses the command line into texts; this code interprets them.
struct FlagParser::CommandLine {
  explicit CommandLine(const FlagParser& parser);
  void Add(const Flag& flag);

  CLI::App app;
  CLI::Option* help;
};

FlagParser::CommandLine::CommandLine(const FlagParser& parser) : app(parser.description_) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.allow_extras();
  app.get_formatter()->column_width(30);
  app.get_formatter()->label("OPTIONS", "flags");
  app.set_help_flag();
  for (const Flag& flag : parser.flags_) Add(flag);
  help = app.add_flag("-h,--help", "print this help and exit")->group("Other");
}

void FlagParser::CommandLine::Add(const Flag& flag) {
  const std::string default_text = FormatFlagValue(flag.value());
  CLI::Option* option = nullptr;
  std::string help_text = flag.help;
  if (flag.kind == Kind::kSwitch) {
    option = app.add_flag(fmt::format("--{0},!--no-{0}", flag.name));
    help_text += fmt::format(" [{}]", default_text == "true" ? "on" : "off");
  } else {
    const bool is_list = flag.kind == Kind::kList;
    option = app.add_option("--" + flag.name);
    option->type_name(flag.placeholder);
    option->expected(1, is_list ? CLI::detail::expected_max_vector_size : 1);
    option->allow_extra_args(is_list);
    if (!default_text.empty()) help_text += fmt::format(" [{}]", default_text);
  }
  // Keeps all texts, so that a flag given twice is detected.
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  option->description(help_text);
  option->group(flag.section);
}

std::string FlagParser::given() const {
  std::string given;
  for (const Flag& flag : flags_) {
    if (!flag.is_given) continue;
    const bool is_switch = flag.kind == Kind::kSwitch;
    const bool is_off = is_switch && flag.texts[0] == "false";
    given += fmt::format("{}--{}{}", given.empty() ? "" : " ", is_off ? "no-" : "", flag.name);
    if (!is_switch) given += fmt::format(" {}", fmt::join(flag.texts, " "));
  }
  return given;
}

void FlagParser::copy_given_to(FlagParser* other) const {
  for (Flag& flag : other->flags_) {
    for (const Flag& mine : flags_) {
      if (mine.name != flag.name || !mine.is_given) continue;
      const Status status = flag.assign(mine.texts);
      ZG_CHECK(status.ok(), "--{} is another flag there: {}", flag.name, status.message());
      flag.is_given = true;
      flag.texts = mine.texts;
    }
  }
}

std::string FlagParser::help(std::string_view program) const {
  CommandLine command_line(*this);
  command_line.app.name(std::string(program));
  std::string help = command_line.app.help();
  // CLI11 puts two empty lines between groups, and one at the end.
  for (size_t at; (at = help.find("\n\n\n")) != std::string::npos;) help.erase(at, 1);
  help.erase(help.find_last_not_of('\n') + 1);
  return help + "\n";
}

StatusOr<bool> FlagParser::parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    // CLI11 would take the next argument for the value.
    const std::string_view argument(argv[i]);
    if (argument.size() > 3 && argument.substr(0, 2) == "--" && argument.back() == '=') {
      return InvalidArgument("{}: got no value, expected one after '='",
                             argument.substr(0, argument.size() - 1));
    }
  }
  CommandLine command_line(*this);
  try {
    command_line.app.parse(argc, argv);
  } catch (const CLI::Error& error) {
    return InvalidArgument("{}", error.what());
  }
  if (command_line.help->count() > 0) return true;
  const std::vector<std::string> remaining = command_line.app.remaining();
  for (const std::string& argument : remaining) {
    if (argument.substr(0, 1) == "-") return UnknownFlag(argument);
  }
  for (Flag& flag : flags_) {
    const std::vector<std::string>& texts =
        command_line.app.get_option("--" + flag.name)->results();
    flag.is_given = !texts.empty();
    if (flag.is_given) ZG_RETURN_IF_ERROR(Assign(flag, texts));
  }
  // Last, because a flag without its value takes the next flag as its value, whose own value is
  // then left over.
  if (!remaining.empty()) {
    return InvalidArgument(
        "unexpected argument '{}': every argument is a --flag or the value of one",
        remaining.front());
  }
  return false;
}

Status FlagParser::Assign(Flag& flag, const std::vector<std::string>& texts) {
  if (flag.kind != Kind::kList && texts.size() > 1) {
    return InvalidArgument("--{}: got it {} times, expected it at most once", flag.name,
                           texts.size());
  }
  for (const std::string& text : texts) {
    if (text.empty()) return InvalidArgument("--{}: got an empty value", flag.name);
    if (flag.kind != Kind::kSwitch && text.size() > 2 && text.substr(0, 2) == "--") {
      return InvalidArgument("--{}: got no value, expected {} before {}", flag.name,
                             flag.placeholder, text);
    }
  }
  ZG_RETURN_IF_ERROR(flag.assign(texts));
  flag.texts = texts;
  return Status::Ok();
}

Status FlagParser::UnknownFlag(const std::string& argument) const {
  const std::string given = argument.substr(0, argument.find('='));
  const std::string bare = given.substr(std::min(given.find_first_not_of('-'), given.size()));
  std::string closest;
  size_t closest_distance = 3;  // names further away are not misspellings
  for (const Flag& flag : flags_) {
    const size_t distance = EditDistance(bare, flag.name);
    if (distance < std::min(closest_distance, flag.name.size())) {
      closest = flag.name;
      closest_distance = distance;
    }
  }
  if (closest.empty()) return InvalidArgument("unknown flag {}", given);
  return InvalidArgument("unknown flag {}; did you mean --{}?", given, closest);
}

bool FlagParser::is_given(std::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return flag.is_given;
  }
  ZG_CHECK(false, "there is no flag --{}", name);
  return false;
}

std::vector<ResolvedFlag> FlagParser::resolved() const {
  std::vector<ResolvedFlag> resolved;
  for (const Flag& flag : flags_) resolved.push_back({flag.name, flag.value()});
  return resolved;
}

}  // namespace zg
