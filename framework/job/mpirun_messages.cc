#include "framework/job/mpirun_messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace zg {
namespace {

const std::string& Edge() {
  static const auto* const edge = new std::string(std::string(74, '-') + "\n");
  return *edge;
}

constexpr size_t kMaxBoxBytes = 8192;

// mpirun's notice that it forwards a signal, which the sender knows already.
constexpr std::string_view kForwarding = "mpirun: Forwarding signal ";

bool MayBeForwarding(std::string_view line) {
  const size_t compared = std::min(line.size(), kForwarding.size());
  return line.substr(0, compared) == kForwarding.substr(0, compared);
}

// The digits after `before`, or "".
std::string NumberAfter(const std::string& text, std::string_view before) {
  const size_t found = text.find(before);
  if (found == std::string::npos) return "";
  const size_t begin = found + before.size();
  const size_t end = text.find_first_not_of("0123456789", begin);
  return text.substr(begin, end == std::string::npos ? end : end - begin);
}

// The characters after `before`, up to white space.
std::string WordAfter(const std::string& text, std::string_view before) {
  const size_t found = text.find(before);
  if (found == std::string::npos) return "";
  const size_t begin = found + before.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

std::optional<RankEnd> ParseRankEnd(const std::string& box) {
  const auto rank_end = [](const std::string& rank, const std::string& host,
                           const std::string& how) -> std::optional<RankEnd> {
    if (rank.empty()) return std::nullopt;
    return RankEnd{std::stoi(rank), host, how};
  };
  if (Has(box, "MPI_ABORT was invoked")) {
    return rank_end(NumberAfter(box, "invoked on rank "), "", kEndedTheJob);
  }
  if (Has(box, "exited with non-zero status")) {
    const size_t name = box.find("Process name: [[");
    if (name == std::string::npos) return std::nullopt;
    const std::string code = NumberAfter(box, "Exit code:    ");
    if (code.empty()) return std::nullopt;
    return rank_end(NumberAfter(box.substr(name + 16), "],"), "", "ended with exit code " + code);
  }
  const std::string rank = NumberAfter(box, "process rank ");
  const std::string host = WordAfter(box, "node ");
  if (const size_t found = box.find("exited on signal "); found != std::string::npos) {
    const std::string signal = box.substr(found + 17, box.find(".\n", found) - found - 17);
    return rank_end(rank, host, "was ended by signal " + signal);
  }
  if (Has(box, "exiting improperly")) {
    return rank_end(rank, host, "left the job before its end, without an error");
  }
  return std::nullopt;
}

std::string ParseLostHost(const std::string& box) {
  if (!Has(box, "lost communication with a remote daemon")) return "";
  const size_t remote = box.find("Remote daemon");
  return remote == std::string::npos ? "" : WordAfter(box.substr(remote), "on node ");
}

std::string RewriteMpirunBox(const std::string& box) {
  // The rank has printed why it aborts; the other box only introduces the next.
  if (Has(box, "MPI_ABORT was invoked") || Has(box, "Primary job  terminated normally")) return "";
  if (const std::string host = ParseLostHost(box); !host.empty()) {
    return fmt::format("the connection to host {} was lost; the job was ended\n", host);
  }
  const std::optional<RankEnd> end = ParseRankEnd(box);
  return end ? fmt::format("rank {} {}; the job was ended\n", end->rank, end->how) : box;
}

std::string MpirunMessages::Filter(std::string_view bytes) {
  std::string shown;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool is_whole = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, is_whole ? end + 1 : bytes.size());
    bytes.remove_prefix(piece.size());

    if (is_in_line_) {  // the rest of a line that is not an edge
      shown += piece;
      is_in_line_ = !is_whole;
      continue;
    }
    line_ += piece;
    const bool may_be_mpiruns =
        Edge().compare(0, line_.size(), line_) == 0 || MayBeForwarding(line_);
    if (!is_whole && (may_be_mpiruns || !box_.empty())) continue;
    shown += TakeLine(std::exchange(line_, ""));
    is_in_line_ = !is_whole;
  }
  return shown;
}

std::string MpirunMessages::TakeLine(std::string_view line) {
  const bool is_edge = line == Edge();
  if (box_.empty()) {
    if (!is_edge) return MayBeForwarding(line) ? "" : std::string(line);
    box_ = line;
    return "";
  }
  box_ += line;
  if (is_edge) {
    if (!first_end_) first_end_ = ParseRankEnd(box_);
    if (lost_host_.empty()) lost_host_ = ParseLostHost(box_);
    return RewriteMpirunBox(std::exchange(box_, ""));
  }
  if (box_.size() > kMaxBoxBytes) return std::exchange(box_, "");  // it was not a box
  return "";
}

std::string MpirunMessages::Finish() {
  is_in_line_ = false;
  return std::exchange(box_, "") + std::exchange(line_, "");
}

}  // namespace zg
