#include "framework/job/same_options.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace zg {
namespace {

// Removes the first line from `text` and returns it.
std::string_view NextLine(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

// Splits "seed = 7" into {"seed", "7"}.
std::pair<std::string_view, std::string_view> NameAndValue(std::string_view line) {
  const size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return {line, ""};
  return {line.substr(0, equals), line.substr(equals + 3)};
}

// The first difference between rank 0 and another.
Status Difference(std::string_view text_of_0, std::string_view text, int rank) {
  while (true) {
    const auto [name_on_0, value_on_0] = NameAndValue(NextLine(&text_of_0));
    const auto [name, value] = NameAndValue(NextLine(&text));
    if (name_on_0 != name) {
      return InvalidArgument(
          "rank {} is another program than rank 0: it has a flag --{} in the "
          "place of --{}; start the same program on every rank",
          rank, name, name_on_0);
    }
    if (value_on_0 != value) {
      return InvalidArgument(
          "--{}: rank {} has '{}', rank 0 has '{}'; start every rank with the same flags", name,
          rank, value, value_on_0);
    }
  }
}

}  // namespace

Status CheckSameOptions(Communicator& communicator, const std::string& flags_text) {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                      communicator.Exchange("compare flags", flags_text));
  for (int rank = 1; rank < communicator.size(); ++rank) {
    if (texts[rank] != texts[0]) return Difference(texts[0], texts[rank], rank);
  }
  return Status::Ok();
}

}  // namespace zg
