// SBP: the placement of one value on the ranks along one mesh axis (the vocabulary of OneFlow,
// arXiv 2110.15032).
//   B      broadcast: every rank holds the whole value
//   S(i)   split: rank r holds the r-th of equal parts along dim i
//   S(i:g) the same in each of g equal groups along dim i: for a dim of q, k and v side by side,
//          S(i:3) gives rank r the r-th part of each
//   P      partial: every rank holds a whole-shaped term; the value is their sum, in rank order
// An NdSbp has one Sbp per mesh axis; text form `{S(0)}`, `{S(0),B}`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg {

class Sbp {
 public:
  enum class Kind { kBroadcast, kSplit, kPartial };

  static Sbp B() { return Sbp(Kind::kBroadcast, 0); }
  static Sbp S(int dim, int groups = 1) { return Sbp(Kind::kSplit, dim, groups); }
  static Sbp P() { return Sbp(Kind::kPartial, 0); }

  bool is_broadcast() const { return kind_ == Kind::kBroadcast; }
  bool is_split() const { return kind_ == Kind::kSplit; }
  bool is_partial() const { return kind_ == Kind::kPartial; }
  int dim() const { return dim_; }        // only for a split
  int groups() const { return groups_; }  // only for a split
  std::string ToString() const;

  friend bool operator==(Sbp a, Sbp b) {
    return a.kind_ == b.kind_ && a.dim_ == b.dim_ && a.groups_ == b.groups_;
  }
  friend bool operator!=(Sbp a, Sbp b) { return !(a == b); }

 private:
  Sbp(Kind kind, int dim, int groups = 1) : kind_(kind), dim_(dim), groups_(groups) {}
  Kind kind_;
  int dim_;
  int groups_;
};

using NdSbp = std::vector<Sbp>;

std::string ToString(const NdSbp& sbp);             // "{S(0),B}"
StatusOr<NdSbp> ParseNdSbp(std::string_view text);  // the inverse
StatusOr<Sbp> ParseSbp(std::string_view text);      // "S(0)"

}  // namespace zg
