// FlagParser: the command line of a program. A program adds its own flags; Job adds the common ones
// (job_options.h). Nothing is guessed: a flag that is unknown, given twice or has a value outside
// of its range is an error that names the flag, the given value and the expected one.
//
//   double learning_rate = 1e-3;
//   zg::FlagParser flags("Trains a classifier of handwritten digits.");
//   flags.section("Model");
//   flags.add_double("lr", &learning_rate, zg::above(0), "learning rate");
//   zg::Job job = zg::Job::start(argc, argv, flags);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/enum_names.h"
#include "framework/base/status.h"
#include "framework/job/flag_value.h"

namespace zg {

class FlagParser {
 public:
  // `description` is the first line of the help.
  explicit FlagParser(std::string description) : description_(std::move(description)) {}

  // The help lists the flags added after this call under this title.
  void section(std::string title) { section_ = std::move(title); }

  // In all of these, `name` has no dashes; `value` holds the default, receives the given value and
  // must outlive the parser; `placeholder` stands for the value in the help.
  void add_int(std::string name, int* value, NumberRange range, std::string help,
               std::string placeholder = "N");
  void add_int(std::string name, int64_t* value, NumberRange range, std::string help,
               std::string placeholder = "N");
  void add_double(std::string name, double* value, NumberRange range, std::string help,
                  std::string placeholder = "X");
  void add_string(std::string name, std::string* value, std::string help,
                  std::string placeholder = "TEXT");
  // A value out of `choices`.
  void add_choice(std::string name, std::string* value, std::vector<std::string> choices,
                  std::string help);
  // A value out of the texts of an enum (base/enum_names.h).
  template <typename Enum>
  void add_enum(std::string name, Enum* value, std::string help) {
    std::vector<std::string> choices;
    for (const std::string_view text : EnumNames<Enum>::kNames) choices.emplace_back(text);
    add_choice(
        std::move(name), std::move(choices),
        [value](const std::string& text) { *value = *ParseEnum<Enum>(text); },
        [value] { return std::string(EnumName(*value)); }, std::move(help));
  }
  // For any type: `set` receives one of the choices, `get` returns the choice of the current value.
  void add_choice(std::string name, std::vector<std::string> choices,
                  std::function<void(const std::string& text)> set,
                  std::function<std::string()> get, std::string help);
  // For any type: `set` parses the given text, and its error is reported with the flag's name;
  // `get` returns the text of the current value.
  void add_parsed(std::string name, std::function<Status(const std::string& text)> set,
                  std::function<FlagValue()> get, std::string help, std::string placeholder);
  // A number of bytes, given in units of 2^20.
  void add_mebibytes(std::string name, int64_t* bytes, NumberRange range, std::string help,
                     std::string placeholder = "MB");
  // --name A B --name C: any number of values, which replace the default.
  void add_strings(std::string name, std::vector<std::string>* value, std::string help,
                   std::string placeholder = "TEXT");
  // --name and --no-name.
  void add_bool(std::string name, bool* value, std::string help);

  // Parses the command line. Returns whether help was requested; if so, no flag has been set. Does
  // not print or exit.
  StatusOr<bool> parse(int argc, const char* const* argv);

  // Whether the flag was on the command line that was parsed.
  bool is_given(std::string_view name) const;

  // The flags that were on the command line, in that form: "--zero 3 --recompute a b".
  std::string given() const;

  // Copies the given flags to those of the same names in `other`.
  void copy_given_to(FlagParser* other) const;

  std::string help(std::string_view program) const;

  // All flags in the order of the help, with their current values.
  std::vector<ResolvedFlag> resolved() const;

 private:
  enum class Kind { kSingle, kList, kSwitch };
  struct Flag {
    std::string name;
    Kind kind = Kind::kSingle;
    std::string placeholder;
    std::string help;
    std::string section;
    std::function<Status(const std::vector<std::string>& texts)> assign;
    std::function<FlagValue()> value;
    bool is_given = false;
    std::vector<std::string> texts = {};  // the given texts
  };

  struct CommandLine;

  void Add(Flag flag);
  template <typename Integer>
  void AddInteger(std::string name, Integer* value, NumberRange range, std::string help,
                  std::string placeholder);
  Status Assign(Flag& flag, const std::vector<std::string>& texts);
  Status UnknownFlag(const std::string& argument) const;

  std::string description_;
  std::string section_ = "Flags";
  std::vector<Flag> flags_;
};

}  // namespace zg
