// MpirunMessages: a filter for the standard error of mpirun. The ranks' own output passes at once
// and unchanged. Each box in which mpirun explains an end becomes one line that names the rank, or
// nothing if that rank has printed its own error. Notices about forwarded signals are removed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zg {

// The rank that mpirun blames for the end of a job.
struct RankEnd {
  int rank = 0;
  std::string host;  // "" if the box does not say
  std::string how;   // "was ended by signal 9 (Killed)", "ended with exit code 3", ...
};

inline constexpr char kEndedTheJob[] = "ended the job with an error";

class MpirunMessages {
 public:
  // Takes the next bytes and returns those to show. Holds back only bytes that may be part of a
  // box.
  std::string Filter(std::string_view bytes);

  // Returns the bytes still held back. Call it at the end.
  std::string Finish();

  // The rank of the first box that blames one.
  const std::optional<RankEnd>& first_end() const { return first_end_; }
  // The host that mpirun lost the connection to, or "".
  const std::string& lost_host() const { return lost_host_; }

 private:
  // The next whole line, or a line without its end if no box can begin so.
  std::string TakeLine(std::string_view line);

  std::string line_;  // the beginning of a line that may be a box's edge
  std::string box_;   // an open box, from its first edge
  bool is_in_line_ = false;
  std::optional<RankEnd> first_end_;
  std::string lost_host_;
};

// Returns nothing, or "", for a box about something else.
std::optional<RankEnd> ParseRankEnd(const std::string& box);
std::string ParseLostHost(const std::string& box);

// The text to show for a box, which is given with its edges. Unknown boxes stay as they are.
std::string RewriteMpirunBox(const std::string& box);

}  // namespace zg
