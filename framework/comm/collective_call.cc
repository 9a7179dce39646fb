#include "framework/comm/collective_call.h"

#include <algorithm>
#include <cstring>

namespace zg {
namespace {

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

uint64_t Mix(uint64_t hash, std::string_view text) {
  hash = Mix(hash, text.size());
  for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, text.data(), sizeof(word));
    hash = Mix(hash, word);
  }
  uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  return Mix(hash, word);
}

template <size_t kSize>
void CopyText(std::string_view text, char (&to)[kSize]) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

template <size_t kSize>
std::string_view Text(const char (&text)[kSize]) {
  return std::string_view(text, strnlen(text, kSize));
}

// The problem with the types of a reduction; empty if there is none.
std::string TypeProblem(const CollectiveCall& call) {
  const auto [terms, sum, order] = call.types;
  const bool are_half = terms == DType::kBF16 || terms == DType::kF16;
  if (terms != sum && !(are_half && sum == DType::kF32)) {
    return fmt::format("terms in {} have no sum in {}", DTypeName(terms), DTypeName(sum));
  }
  if (call.accumulate && are_half && sum == terms) {
    return fmt::format("accumulating in {} would round every time; the sum must be f32",
                       DTypeName(sum));
  }
  if (order == FoldOrder::kPairwise && (terms != DType::kF32 || call.accumulate)) {
    return fmt::format("only f32 terms are added pairwise, and onto nothing else, got {}{}",
                       DTypeName(terms), call.accumulate ? " onto a sum" : "");
  }
  return "";
}

struct Range {
  int64_t begin = 0;
  int64_t bytes = 0;
  int64_t end() const { return begin + bytes; }
  bool IsIn(int64_t arena_bytes) const {
    return begin >= 0 && bytes >= 0 && bytes <= arena_bytes && begin <= arena_bytes - bytes;
  }
  bool Overlaps(const Range& other) const {
    return bytes > 0 && other.bytes > 0 && begin < other.end() && other.begin < end();
  }
};

bool IsReduction(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

}  // namespace

CallRecord MakeCallRecord(const CollectiveCall& call, int64_t sequence) {
  CallRecord record;
  uint64_t hash = Mix(Mix(0, call.operation), call.name);
  for (int64_t word : {call.count, call.input.offset, call.input.rank_stride, call.output.offset,
                       call.output.rank_stride, static_cast<int64_t>(call.types.terms),
                       static_cast<int64_t>(call.types.sum), static_cast<int64_t>(call.types.order),
                       int64_t{call.accumulate}}) {
    hash = Mix(hash, static_cast<uint64_t>(word));
  }
  record.hash = hash;
  record.sequence = sequence;
  record.word = call.word;
  record.count = call.count;
  record.input = call.input;
  record.output = call.output;
  record.types = call.types;
  record.accumulate = call.accumulate;
  CopyText(call.operation, record.operation);
  CopyText(call.name, record.name);
  return record;
}

std::string Describe(const CallRecord& record) {
  return fmt::format("{} '{}' (call {})", Text(record.operation), Text(record.name),
                     record.sequence);
}

std::string DescribeInFull(const CallRecord& record) {
  const auto operand = [](const ArenaOperand& operand) {
    if (operand.rank_stride == 0) return fmt::format("{}", operand.offset);
    return fmt::format("{} + rank * {}", operand.offset, operand.rank_stride);
  };
  std::string types(DTypeName(record.types.terms));
  if (record.types.sum != record.types.terms) {
    types += fmt::format(" into {}", DTypeName(record.types.sum));
  }
  if (record.types.order == FoldOrder::kPairwise) types += " pairwise";
  return fmt::format("{} '{}' (call {}; count {} of {}, input at {}, output at {}{})",
                     Text(record.operation), Text(record.name), record.sequence, record.count,
                     types, operand(record.input), operand(record.output),
                     record.accumulate ? ", accumulate" : "");
}

Status CallMismatch(int rank, const CallRecord& call, int other_rank, const CallRecord& other) {
  return Aborted(
      "the ranks disagree: rank {} calls {}, but rank {} calls {}; every rank must make the same "
      "calls in the same order",
      rank, DescribeInFull(call), other_rank, DescribeInFull(other));
}

Status CheckIsLeftFold(const CollectiveCall& call) {
  if (call.types.order == FoldOrder::kLeft) return Status::Ok();
  return InvalidArgument("{} '{}': terms in the memory of GPUs are not added pairwise",
                         call.operation, call.name);
}

Status CheckOperands(CollectiveKind kind, const CollectiveCall& call, const Group& group,
                     const Arena& arena) {
  const int rank = group.rank();
  const int num_ranks = group.size();
  const int64_t arena_bytes = arena.bytes();
  if (arena.data() == nullptr) {
    return FailedPrecondition("{} '{}' on rank {}: there is no arena; call Arena::Allocate first",
                              call.operation, call.name, group.ranks()[rank]);
  }
  const auto error = [&](const std::string& what) {
    return InvalidArgument("{} '{}' on rank {}: {}", call.operation, call.name, group.ranks()[rank],
                           what);
  };
  // Nothing this large fits into an arena; the limit keeps the products below from overflowing.
  if (call.count < 0 || call.count > (int64_t{1} << 48)) {
    return error(fmt::format("bad count {}", call.count));
  }
  const bool is_reduction = IsReduction(kind);
  const bool same_types = call.types.terms == call.types.sum;
  if (const std::string problem = is_reduction ? TypeProblem(call) : ""; !problem.empty()) {
    return error(problem);
  }
  const int64_t term_bytes = is_reduction ? SizeOf(call.types.terms) : num_ranks;
  const int64_t sum_bytes = is_reduction ? SizeOf(call.types.sum) : num_ranks;
  if (kind == CollectiveKind::kReduceScatter && call.count % num_ranks != 0) {
    return error(fmt::format("{} elements do not divide by {} ranks", call.count, num_ranks));
  }
  Range input{call.input.OffsetOn(rank), call.count * term_bytes};
  Range output{call.output.OffsetOn(rank), call.count * sum_bytes};
  const int64_t part_bytes = input.bytes / num_ranks;
  bool in_place = false;
  if (kind == CollectiveKind::kReduceScatter) {
    output.bytes /= num_ranks;
    in_place = same_types && output.begin == input.begin + rank * part_bytes;
  } else if (kind == CollectiveKind::kAllGather) {
    input.bytes = part_bytes;
    in_place = input.begin == output.begin + rank * part_bytes;
  } else if (kind == CollectiveKind::kAllReduce) {
    in_place = same_types && output.begin == input.begin;
  }

  struct Operand {
    const char* what;
    Range range;
    DType dtype;
  };
  for (const Operand& operand :
       {Operand{"input", input, call.types.terms}, Operand{"output", output, call.types.sum}}) {
    const Range& range = operand.range;
    if (!range.IsIn(arena_bytes)) {
      return error(fmt::format("{} [{}, {}) is not in the arena of {} bytes", operand.what,
                               range.begin, range.end(), arena_bytes));
    }
    if (is_reduction && range.begin % SizeOf(operand.dtype) != 0) {
      return error(fmt::format("{} at {} is not aligned for {}", operand.what, range.begin,
                               DTypeName(operand.dtype)));
    }
  }
  if (input.Overlaps(output) && !(in_place && !call.accumulate)) {
    return error(fmt::format(
        "input [{}, {}) overlaps output [{}, {}){}", input.begin, input.end(), output.begin,
        output.end(),
        in_place ? ", and an accumulating call cannot be in place" : " but is not in place"));
  }
  return Status::Ok();
}

}  // namespace zg
