#include "framework/runtime/check_same_program.h"

#include <functional>
#include <sstream>

#include "framework/ir/printer.h"

namespace zg {
namespace {

Status FirstDifference(const std::string& expected, const std::string& got, int rank) {
  std::istringstream expected_lines(expected);
  std::istringstream got_lines(got);
  std::string expected_line;
  std::string got_line;
  for (int line = 1;; ++line) {
    const bool expected_more = static_cast<bool>(std::getline(expected_lines, expected_line));
    const bool got_more = static_cast<bool>(std::getline(got_lines, got_line));
    if (expected_more && got_more && expected_line == got_line) continue;
    return Aborted(
        "ranks 0 and {} compiled different programs; the first difference is in line {}:\n  rank "
        "0: {}\n  rank {}: {}\n"
        "  hint: start all ranks from the same binary with the same flags",
        rank, line, expected_more ? expected_line : "(end)", rank, got_more ? got_line : "(end)");
  }
}

}  // namespace

Status CheckSameProgram(const ir::Graph& graph, uint64_t seed, Communicator& communicator) {
  if (communicator.size() == 1) return Status::Ok();
  const std::string text = fmt::format("seed {}\n{}", seed, ir::Print(graph));
  const std::string hash = fmt::format("{:016x}", std::hash<std::string>()(text));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> hashes,
                      communicator.Exchange("compare programs", hash));
  for (int rank = 1; rank < communicator.size(); ++rank) {
    if (hashes[rank] == hashes[0]) continue;
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                        communicator.Exchange("compare program texts", text));
    return FirstDifference(texts[0], texts[rank], rank);
  }
  return Status::Ok();
}

}  // namespace zg
