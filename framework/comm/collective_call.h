// CollectiveCall: the arguments of one rank's call of a collective. The ranks compare their calls
// before they touch any data (they exchange CallRecords), and each checks its own operands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/comm/arena.h"
#include "framework/comm/group.h"
#include "framework/comm/reduction_types.h"
#include "framework/comm/traffic.h"
#include "framework/tensor/dtype.h"

namespace zg {

struct CollectiveCall {
  std::string_view operation;  // "all_reduce", ..., "barrier"
  std::string_view name;
  int64_t count = 0;  // elements of a reduction; bytes per part of other collectives
  ArenaOperand input;
  ArenaOperand output;
  ReductionTypes types = DType::kU8;  // of a reduction
  bool accumulate = false;
  uint64_t word = 0;  // sent with the call; may differ between ranks
};

// A call in a form for other ranks: a hash to compare and the rest to print.
struct CallRecord {
  uint64_t hash = 0;     // of everything except the sequence number and the word
  int64_t sequence = 0;  // number of calls that this rank has made, including this one
  uint64_t word = 0;
  int64_t count = 0;
  ArenaOperand input;
  ArenaOperand output;
  ReductionTypes types = DType::kU8;
  bool accumulate = false;
  char operation[16] = {};
  char name[99] = {};  // longer names are truncated
};
static_assert(sizeof(CallRecord) == 3 * 64);

CallRecord MakeCallRecord(const CollectiveCall& call, int64_t sequence);

// "all_gather 'gpt.block3' (call 17)"; the second one also has sizes and offsets.
std::string Describe(const CallRecord& record);
std::string DescribeInFull(const CallRecord& record);

// The error if two ranks' calls have different hashes.
Status CallMismatch(int rank, const CallRecord& call, int other_rank, const CallRecord& other);

// Checks that the rank has an arena, that its operands are inside it, and that they overlap only
// where that is allowed.
Status CheckOperands(CollectiveKind kind, const CollectiveCall& call, const Group& group,
                     const Arena& arena);

// The error of a transport whose sums are left folds only, for a sum in another order.
Status CheckIsLeftFold(const CollectiveCall& call);

// Parts [begin(r), begin(r + 1)) of `total` bytes or elements, `part` each except the last ones.
struct Parts {
  int64_t total = 0;
  int64_t part = 0;
  int64_t begin(int rank) const { return std::min(rank * part, total); }
  int64_t count(int rank) const { return begin(rank + 1) - begin(rank); }
};

}  // namespace zg
