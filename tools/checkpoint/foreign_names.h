// The tensors of models as other programs store them: their names and layouts beside ours. The
// table is all there is to a format; adding a model is adding its lines.
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
  // Ours, as factor and letter per dim: "4C C". A letter is the same size everywhere in a file; a
  // lower-case one within a number.
  std::string_view shape;
  bool is_transposed = false;  // theirs has the two dims in the other order
  bool is_optional = false;
};

struct ForeignFormat {
  std::string_view name;  // as on the command line
  std::string_view doc;
  std::vector<NameRule> rules;
  std::string_view prefix = "";                // of all their names, or of none
  std::vector<std::string_view> skipped = {};  // their names of what we have no tensor for
  // Their name of a second copy of a tensor of ours, and the tensor's; empty: there is none.
  std::string_view tied_copy = "";
  std::string_view tied_to = "";
  bool has_gaps = false;       // numbers may be left out: of modules without parameters
  bool has_config = false;     // theirs is a directory with a config.json
  std::string_view rows = "";  // the letter of dims that --vocab changes
};

const std::vector<ForeignFormat>& ForeignFormats();
StatusOr<const ForeignFormat*> FindForeignFormat(std::string_view name);

// The number for which `name` is the pattern; -1 for a pattern without one. Nothing when it is not.
std::optional<int> MatchPattern(std::string_view pattern, std::string_view name);
std::string FillPattern(std::string_view pattern, int number);

inline std::string_view NameOn(Side side, const NameRule& rule) {
  return side == Side::kOurs ? rule.ours : rule.theirs;
}

}  // namespace zg::checkpoint_tool
