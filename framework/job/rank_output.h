// RankOutput: splits the output of `mpirun --tag-output` by rank. Returns whole lines without tags,
// never mixed with those of another rank, and keeps each rank's last lines for the case that it
// fails.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zg {

class RankOutput {
 public:
  enum Stream { kOutput, kErrors };

  // Takes the next bytes of one of mpirun's streams and returns the lines to show.
  std::string Filter(Stream stream, std::string_view bytes);

  // Returns the bytes of a stream that are still held back. Call it at the end.
  std::string Finish(Stream stream);

  // The last lines of both streams, the oldest first.
  std::vector<std::string> LastLines(int rank) const;

  // The first rank that wrote an error in the form in which a rank ends its job: "rank 1: ..." by
  // rank 1.
  const std::optional<int>& first_rank_with_error() const { return first_rank_with_error_; }

 private:
  static constexpr int kMpirun = -1;  // the owner of text without a tag
  static constexpr size_t kMaxLines = 10;

  struct StreamState {
    std::string raw;                     // the beginning of a line, as received
    std::map<int, std::string> by_rank;  // the beginning of each rank's line
  };

  std::string TakeRawLine(Stream stream, std::string_view line);
  std::string EndLine(Stream stream, int owner, std::string line);

  StreamState streams_[2];
  std::map<int, std::deque<std::string>> last_lines_;
  std::optional<int> first_rank_with_error_;
};

}  // namespace zg
