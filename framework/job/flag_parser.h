// FlagParser: the command line of a program. A program adds its own flags; Job adds the common ones
// (job_options.h). Nothing is guessed: a flag that is unknown, given twice or has a value outside
// its range is an error that names the flag, what was got and what was expected.
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

  // The help lists the flags added from here on under this title.
  void section(std::string title) { section_ = std::move(title); }

  // In all of these: `name` has no dashes; `value` holds the default, receives what is given and
  // must live as long as the parser; `placeholder` stands for the value in the help.
  void add_int(std::string name, int* value, NumberRange range, std::string help,
               std::string placeholder = "N");
  void add_int(std::string name, int64_t* value, NumberRange range, std::string help,
               std::string placeholder = "N");
  void add_double(std::string name, double* value, NumberRange range, std::string help,
                  std::string placeholder = "X");
  void add_string(std::string name, std::string* value, std::string help,
                  std::string placeholder = "TEXT");
  // One of `choices`.
  void add_choice(std::string name, std::string* value, std::vector<std::string> choices,
                  std::string help);
  // One of the texts of an enum (base/enum_names.h).
  template <typename Enum>
  void add_enum(std::string name, Enum* value, std::string help) {
    std::vector<std::string> choices;
    for (const std::string_view text : EnumNames<Enum>::kNames) choices.emplace_back(text);
    add_choice(
        std::move(name), std::move(choices),
        [value](const std::string& text) { *value = *ParseEnum<Enum>(text); },
        [value] { return std::string(EnumName(*value)); }, std::move(help));
  }
  // Of any type: `set` receives one of the choices, `get` says which one the value is now.
  void add_choice(std::string name, std::vector<std::string> choices,
                  std::function<void(const std::string& text)> set,
                  std::function<std::string()> get, std::string help);
  // Of any type: `set` parses what is given, and its error is told with the flag's name; `get` says
  // it.
  void add_parsed(std::string name, std::function<Status(const std::string& text)> set,
                  std::function<FlagValue()> get, std::string help, std::string placeholder);
  // Bytes, given in units of 2^20.
  void add_mebibytes(std::string name, int64_t* bytes, NumberRange range, std::string help,
                     std::string placeholder = "MB");
  // --name A B --name C: any number of values; those given replace the default.
  void add_strings(std::string name, std::vector<std::string>* value, std::string help,
                   std::string placeholder = "TEXT");
  // --name and --no-name.
  void add_bool(std::string name, bool* value, std::string help);

  // Whether help was asked for; if so, no flag has been set. Does not print or exit.
  StatusOr<bool> parse(int argc, const char* const* argv);

  // Whether the flag was on the command line that was parsed.
  bool is_given(std::string_view name) const;

  // The flags that were on the command line, as they would stand on one: "--zero 3 --recompute a
  // b".
  std::string given() const;

  // Gives the flags that were given here to those of the same names in `other`.
  void copy_given_to(FlagParser* other) const;

  std::string help(std::string_view program) const;

  // All flags in the order of the help, with their values of now.
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
    std::vector<std::string> texts = {};  // what was given
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
