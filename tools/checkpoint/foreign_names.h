// The tensors of models as other programs store them: their names and layouts beside ours. The
// table is the complete definition of a format; to add a model, add its lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg::checkpoint_tool {

enum class Side { kOurs, kTheirs };

struct NameRule {
  std::string_view ours;    // "blocks.*.mlp.expand.weight"; * is a number, the same in both names
  std::string_view theirs;  // "h.*.mlp.c_fc.weight"
  // Our shape, as factor and letter per dim: "4C C". A letter has the same size everywhere in a
  // file; a lower-case one has the same size for the same number.
  std::string_view shape;
  bool is_transposed = false;  // in theirs the two dims are swapped
  bool is_optional = false;
};

struct ForeignFormat {
  std::string_view name;  // as on the command line
  std::string_view doc;
  std::vector<NameRule> rules;
  std::string_view prefix = "";                // on all their names, or on none
  std::vector<std::string_view> skipped = {};  // their names of tensors that ours lacks
  // Their name of a second copy of one of our tensors, and the tensor's name; empty: there is none.
  std::string_view tied_copy = "";
  std::string_view tied_to = "";
  bool has_gaps = false;       // numbers may be missing: those of modules without parameters
  bool has_config = false;     // theirs is a directory with a config.json
  std::string_view rows = "";  // the letter of the dims that --vocab changes
};

const std::vector<ForeignFormat>& ForeignFormats();
StatusOr<const ForeignFormat*> FindForeignFormat(std::string_view name);

// The number in `name` that the pattern's * stands for; -1 for a pattern without one. Nothing if
// the name does not match.
std::optional<int> MatchPattern(std::string_view pattern, std::string_view name);
std::string FillPattern(std::string_view pattern, int number);

inline std::string_view NameOn(Side side, const NameRule& rule) {
  return side == Side::kOurs ? rule.ours : rule.theirs;
}

}  // namespace zg::checkpoint_tool
