#include "tests/comm/collective_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "framework/tensor/half.h"

namespace zg {

namespace {

uint64_t HashOf(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Mixes signs and magnitudes from 2^-20 to 2^20, so that another order of addition is detected.
float ContributionOf(int rank, int64_t element) {
  const uint64_t hash = HashOf(rank, element);
  const auto sign_and_mantissa = static_cast<uint32_t>(hash) & 0x807FFFFF;
  const auto exponent = static_cast<uint32_t>(127 - 20 + (hash >> 32) % 41);
  const uint32_t bits = sign_and_mantissa | exponent << 23;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float LeftFoldOf(int num_ranks, int64_t element) {
  float sum = ContributionOf(0, element);
  for (int rank = 1; rank < num_ranks; ++rank) sum += ContributionOf(rank, element);
  return sum;
}

// The start value of accumulating calls, the same on all ranks.
float StartOf(int64_t element) { return ContributionOf(1000, element); }

float AccumulatedOf(int num_ranks, int64_t element) {
  float sum = StartOf(element);
  for (int rank = 0; rank < num_ranks; ++rank) sum += ContributionOf(rank, element);
  return sum;
}

// One rank's arena and its expected content, where every byte outside of the outputs counts too.
// The workspace is at the end.
class ArenaUnderTest {
 public:
  static StatusOr<ArenaUnderTest> Allocate(Communicator& communicator, int64_t num_floats) {
    const int64_t bytes = (num_floats * 4 + 4095) / 4096 * 4096;
    ZG_ASSIGN_OR_RETURN(
        std::byte* const arena,
        communicator.arena().Allocate(bytes + communicator.arena().workspace_bytes(), bytes));
    const uintptr_t alignment = communicator.device().is_host() ? 4096 : 256;
    if (reinterpret_cast<uintptr_t>(arena) % alignment != 0) {
      return InvalidArgument("the arena is not aligned");
    }
    if (bytes <= 0 || arena[0] != std::byte{0} || arena[bytes - 1] != std::byte{0}) {
      return InvalidArgument("the arena is not zeroed");
    }
    std::fill_n(arena, static_cast<size_t>(bytes), std::byte{0x5A});
    return ArenaUnderTest(reinterpret_cast<float*>(arena), bytes / 4);
  }

  // Writes a value now, and expects it to stay.
  void Write(int64_t index, float value) { floats_[index] = expected_[index] = value; }
  // Expects a value after the collective.
  void Expect(int64_t index, float value) { expected_[index] = value; }

  Status Check(std::string_view what) const {
    if (std::memcmp(floats_, expected_.data(), expected_.size() * 4) == 0) return Status::Ok();
    size_t i = 0;
    while (std::memcmp(&floats_[i], &expected_[i], 4) == 0) ++i;
    return InvalidArgument("{}: element {} is {}, expected {}", what, i, floats_[i], expected_[i]);
  }

 private:
  ArenaUnderTest(float* floats, int64_t num_floats)
      : floats_(floats), expected_(floats, floats + num_floats) {}

  float* floats_;
  std::vector<float> expected_;
};

std::string CaseName(const Communicator& communicator, int64_t elements, bool in_place,
                     bool accumulate) {
  return fmt::format("rank {} of {}, {} elements a part{}{}", communicator.rank(),
                     communicator.size(), elements, in_place ? ", in place" : "",
                     accumulate ? ", accumulate" : "");
}

}  // namespace

// A reduce-scatter, and an all-reduce in place of its terms.
Status TestPairwiseSums(Communicator& communicator, int64_t part) {
  const int n = communicator.size();
  const int64_t elements = part * n;
  ZG_ASSIGN_OR_RETURN(ArenaUnderTest arena,
                      ArenaUnderTest::Allocate(communicator, elements + part + 16));
  const auto sum_of = [n](int64_t element) {
    std::vector<float> sums;
    for (int rank = 0; rank < n; ++rank) sums.push_back(ContributionOf(rank, element));
    for (; sums.size() > 1; sums.resize((sums.size() + 1) / 2)) {
      for (size_t i = 0; 2 * i < sums.size(); ++i) {
        sums[i] = 2 * i + 1 < sums.size() ? sums[2 * i] + sums[2 * i + 1] : sums[2 * i];
      }
    }
    return sums[0];
  };
  const ReductionTypes types = {DType::kF32, DType::kF32, FoldOrder::kPairwise};
  const int64_t output = 1 + elements + 3;
  for (int64_t i = 0; i < elements; ++i) {
    arena.Write(1 + i, ContributionOf(communicator.rank(), i));
  }
  for (int64_t i = 0; i < part; ++i)
    arena.Expect(output + i, sum_of(communicator.rank() * part + i));
  ZG_RETURN_IF_ERROR(communicator.world().ReduceScatter("pairwise scatter", {4, 0}, {output * 4, 0},
                                                        elements, types, false));
  ZG_RETURN_IF_ERROR(arena.Check(CaseName(communicator, part, false, false)));
  for (int64_t i = 0; i < elements; ++i) arena.Expect(1 + i, sum_of(i));
  ZG_RETURN_IF_ERROR(
      communicator.world().AllReduce("pairwise sum", {4, 0}, {4, 0}, elements, types, false));
  return arena.Check(CaseName(communicator, part, true, false));
}

Status TestReduceScatter(Communicator& communicator, int64_t part, bool in_place, bool accumulate) {
  const int n = communicator.size();
  const int rank = communicator.rank();
  const int64_t elements = part * n;
  // input, gap, output: from element 1, so that nothing is aligned to a vector.
  ZG_ASSIGN_OR_RETURN(ArenaUnderTest arena,
                      ArenaUnderTest::Allocate(communicator, elements + part + 16));
  const int64_t input = 1;
  const int64_t output = in_place ? input + rank * part : input + elements + 3;
  for (int64_t i = 0; i < elements; ++i) arena.Write(input + i, ContributionOf(rank, i));
  for (int64_t i = 0; i < part; ++i) {
    const int64_t element = rank * part + i;
    if (accumulate) arena.Write(output + i, StartOf(element));
    arena.Expect(output + i, accumulate ? AccumulatedOf(n, element) : LeftFoldOf(n, element));
  }
  const ArenaOperand output_operand =
      in_place ? ArenaOperand{input * 4, part * 4} : ArenaOperand{output * 4, 0};
  ZG_RETURN_IF_ERROR(communicator.world().ReduceScatter(
      "reduce-scatter test", {input * 4, 0}, output_operand, elements, DType::kF32, accumulate));
  return arena.Check(CaseName(communicator, part, in_place, accumulate));
}

Status TestAllReduce(Communicator& communicator, int64_t elements, bool in_place, bool accumulate) {
  const int n = communicator.size();
  ZG_ASSIGN_OR_RETURN(ArenaUnderTest arena,
                      ArenaUnderTest::Allocate(communicator, 2 * elements + 16));
  const int64_t input = 1;
  const int64_t output = in_place ? input : input + elements + 2;
  for (int64_t i = 0; i < elements; ++i) {
    arena.Write(input + i, ContributionOf(communicator.rank(), i));
    if (accumulate) arena.Write(output + i, StartOf(i));
    arena.Expect(output + i, accumulate ? AccumulatedOf(n, i) : LeftFoldOf(n, i));
  }
  ZG_RETURN_IF_ERROR(communicator.world().AllReduce(
      "all-reduce test", {input * 4, 0}, {output * 4, 0}, elements, DType::kF32, accumulate));
  return arena.Check(CaseName(communicator, elements, in_place, accumulate));
}

namespace {

// Beyond 2^53, so that a conversion through f64 is detected; sums over up to 1024 ranks fit.
int64_t WholeNumberOf(int rank, int64_t element) {
  return static_cast<int64_t>(HashOf(rank, element)) >> 10;
}

// A reduce-scatter into an output and an all-reduce in place, of i64.
}  // namespace

Status TestWholeNumbers(Communicator& communicator, int64_t part, bool accumulate) {
  const int n = communicator.size();
  const int64_t elements = part * n;
  const int64_t input_bytes = (elements * 8 + 63) / 64 * 64;
  const int64_t bytes = (input_bytes + part * 8 + 4095) / 4096 * 4096;
  ZG_ASSIGN_OR_RETURN(
      std::byte* const arena,
      communicator.arena().Allocate(bytes + communicator.arena().workspace_bytes(), bytes));
  auto* const input = reinterpret_cast<int64_t*>(arena);
  auto* const output = reinterpret_cast<int64_t*>(arena + input_bytes);
  for (int64_t i = 0; i < elements; ++i) input[i] = WholeNumberOf(communicator.rank(), i);
  std::fill_n(output, part, accumulate ? 7 : -1);
  const auto sum_of = [n](int64_t element) {
    int64_t sum = 0;
    for (int rank = 0; rank < n; ++rank) sum += WholeNumberOf(rank, element);
    return sum;
  };
  ZG_RETURN_IF_ERROR(communicator.world().ReduceScatter("sum of parts", {0, 0}, {input_bytes, 0},
                                                        elements, DType::kI64, accumulate));
  for (int64_t i = 0; i < part; ++i) {
    const int64_t expected = sum_of(communicator.rank() * part + i) + (accumulate ? 7 : 0);
    if (output[i] == expected) continue;
    return InvalidArgument("reduce-scatter, {}: {}, expected {}", i, output[i], expected);
  }
  ZG_RETURN_IF_ERROR(
      communicator.world().AllReduce("sum of all", {0, 0}, {0, 0}, elements, DType::kI64, false));
  for (int64_t i = 0; i < elements; ++i) {
    if (input[i] == sum_of(i)) continue;
    return InvalidArgument("all-reduce, {}: {}, expected {}", i, input[i], sum_of(i));
  }
  return Status::Ok();
}

namespace {

enum class Output { kSeparate, kInPlace, kAccumulates };

// A reduction of 16-bit terms, all bytes of the arena compared, and its traffic.
template <typename Term, typename Sum>
Status TestHalves(Communicator& communicator, CollectiveKind kind, ReductionTypes types,
                  int64_t part, Output mode) {
  const int n = communicator.size();
  const int rank = communicator.rank();
  const bool scatters = kind == CollectiveKind::kReduceScatter;
  const int64_t elements = scatters ? part * n : part;
  const int64_t num_sums = scatters ? part : elements;
  const int64_t first = scatters ? rank * part : 0;  // the first element of the rank's part of a
                                                     // sum
  // From the second element on, so that nothing is aligned to a vector.
  const int64_t input = sizeof(Term);
  const int64_t behind_input = (input + elements * sizeof(Term) + 63) / 64 * 64 + sizeof(Sum);
  const int64_t output = mode == Output::kInPlace ? input + first * sizeof(Term) : behind_input;
  const int64_t bytes = (behind_input + num_sums * sizeof(Sum) + 64 + 4095) / 4096 * 4096;
  ZG_ASSIGN_OR_RETURN(
      std::byte* const arena,
      communicator.arena().Allocate(bytes + communicator.arena().workspace_bytes(), bytes));

  const auto term_of = [](int of_rank, int64_t element) {
    return FromF32<Term>(ContributionOf(of_rank, element) / 64);  // the maximum of f16 is smaller
  };
  for (int64_t i = 0; i < elements; ++i) {
    const Term term = term_of(rank, i);
    std::memcpy(arena + input + i * sizeof(Term), &term, sizeof(Term));
  }
  std::vector<Sum> sums(num_sums);
  for (int64_t i = 0; i < num_sums; ++i) {
    const bool continues = mode == Output::kAccumulates;
    float sum = continues ? StartOf(first + i) : ToF32(term_of(0, first + i));
    const Sum start = FromF32<Sum>(sum);
    if (continues) std::memcpy(arena + output + i * sizeof(Sum), &start, sizeof(Sum));
    for (int r = continues ? 0 : 1; r < n; ++r) sum += ToF32(term_of(r, first + i));
    sums[i] = FromF32<Sum>(sum);
  }
  std::vector<std::byte> expected(arena, arena + bytes);
  std::copy_n(reinterpret_cast<const std::byte*>(sums.data()), num_sums * sizeof(Sum),
              expected.data() + output);

  const Traffic before = communicator.traffic()[static_cast<int>(kind)];
  const ArenaOperand output_operand = mode == Output::kInPlace && scatters
                                          ? ArenaOperand{input, part * int64_t{sizeof(Term)}}
                                          : ArenaOperand{output, 0};
  const bool accumulate = mode == Output::kAccumulates;
  ZG_RETURN_IF_ERROR(
      scatters ? communicator.world().ReduceScatter("sum of parts", {input, 0}, output_operand,
                                                    elements, types, accumulate)
               : communicator.world().AllReduce("sum of all", {input, 0}, output_operand, elements,
                                                types, accumulate));
  const std::string what = fmt::format(
      "{} of {} {} into {}, {}", CollectiveName(kind), elements, DTypeName(types.terms),
      DTypeName(types.sum), CaseName(communicator, part, mode == Output::kInPlace, accumulate));
  const auto differs = std::mismatch(expected.begin(), expected.end(), arena).first;
  if (differs != expected.end()) {
    return InvalidArgument("{}: byte {} differs", what, differs - expected.begin());
  }
  const Traffic after = communicator.traffic()[static_cast<int>(kind)];
  // Rank 0, which has the largest part, receives as many bytes as predicted.
  const int64_t chunk = (elements + n - 1) / n;
  const int64_t received =
      chunk * (n - 1) * sizeof(Term) + (scatters ? 0 : (elements - chunk) * sizeof(Sum));
  if (after.count == before.count + 1 &&
      (communicator.rank() > 0 || after.bytes == before.bytes + received)) {
    return Status::Ok();
  }
  return InvalidArgument("{}: counted {} bytes", what, after.bytes - before.bytes);
}

template <typename Term>
Status TestHalvesOf(Communicator& communicator, DType dtype, int64_t part) {
  for (const auto kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
    for (const Output mode : {Output::kSeparate, Output::kInPlace}) {
      ZG_RETURN_IF_ERROR((TestHalves<Term, Term>(communicator, kind, dtype, part, mode)));
    }
    for (const Output mode : {Output::kSeparate, Output::kAccumulates}) {
      ZG_RETURN_IF_ERROR(
          (TestHalves<Term, float>(communicator, kind, {dtype, DType::kF32}, part, mode)));
    }
  }
  return Status::Ok();
}

}  // namespace

Status TestHalves(Communicator& communicator, int64_t part) {
  ZG_RETURN_IF_ERROR(TestHalvesOf<BFloat16>(communicator, DType::kBF16, part));
  return TestHalvesOf<Float16>(communicator, DType::kF16, part);
}

Status TestAllGather(Communicator& communicator, int64_t part, bool in_place) {
  const int n = communicator.size();
  const int rank = communicator.rank();
  ZG_ASSIGN_OR_RETURN(ArenaUnderTest arena,
                      ArenaUnderTest::Allocate(communicator, part * (n + 1) + 16));
  const int64_t output = 1;
  const int64_t input = in_place ? output + rank * part : output + part * n + 3;
  for (int64_t i = 0; i < part; ++i) {
    arena.Write(input + i, ContributionOf(rank, i));
    for (int peer = 0; peer < n; ++peer) {
      arena.Expect(output + peer * part + i, ContributionOf(peer, i));
    }
  }
  const ArenaOperand input_operand =
      in_place ? ArenaOperand{output * 4, part * 4} : ArenaOperand{input * 4, 0};
  ZG_RETURN_IF_ERROR(
      communicator.world().AllGather("all-gather test", input_operand, {output * 4, 0}, part * 4));
  return arena.Check(CaseName(communicator, part, in_place, false));
}

Status TestAllToAll(Communicator& communicator, int64_t part) {
  const int n = communicator.size();
  const int rank = communicator.rank();
  ZG_ASSIGN_OR_RETURN(ArenaUnderTest arena,
                      ArenaUnderTest::Allocate(communicator, 2 * part * n + 16));
  const int64_t input = 1;
  const int64_t output = input + part * n + 2;
  for (int64_t i = 0; i < part; ++i) {
    for (int peer = 0; peer < n; ++peer) {
      arena.Write(input + peer * part + i, ContributionOf(rank * n + peer, i));
      arena.Expect(output + peer * part + i, ContributionOf(peer * n + rank, i));
    }
  }
  ZG_RETURN_IF_ERROR(
      communicator.world().AllToAll("all-to-all test", {input * 4, 0}, {output * 4, 0}, part * 4));
  return arena.Check(CaseName(communicator, part, false, false));
}

Status TestGroup(Communicator& communicator, const std::vector<int>& ranks) {
  ZG_ASSIGN_OR_RETURN(Group* const group, communicator.GroupOf(ranks));
  const int n = group->size();
  if (group->ranks() != ranks || ranks[group->rank()] != communicator.rank()) {
    return InvalidArgument("another group");
  }
  constexpr int64_t kPart = 1000;
  const int64_t whole_bytes = n * kPart * 4;
  // The same for groups of every size.
  const int64_t workspace = (2 * communicator.size() * kPart * 4 + 63) / 64 * 64;
  ZG_ASSIGN_OR_RETURN(std::byte* const arena,
                      communicator.arena().Allocate(
                          workspace + communicator.arena().workspace_bytes() + 64, workspace));
  auto* const input = reinterpret_cast<float*>(arena);
  float* const output = input + n * kPart;
  const auto fill = [&] {
    for (int64_t i = 0; i < n * kPart; ++i) input[i] = ContributionOf(communicator.rank(), i);
    return communicator.Barrier("filled");
  };
  std::vector<int> in_job_order = ranks;
  std::sort(in_job_order.begin(), in_job_order.end());
  const auto sum_of = [&](int64_t element) {
    float sum = ContributionOf(in_job_order[0], element);
    for (int i = 1; i < n; ++i) sum += ContributionOf(in_job_order[i], element);
    return sum;
  };
  const auto expect = [&](const char* what, int64_t i, float got, float expected) -> Status {
    if (std::memcmp(&got, &expected, sizeof(got)) == 0) return Status::Ok();
    return InvalidArgument("{} of {} ranks, element {}: got {}, expected {}", what, n, i, got,
                           expected);
  };
  const ArenaOperand from = {0, 0};
  const ArenaOperand to = {whole_bytes, 0};
  const int64_t own_begin = group->rank() * kPart;
  ZG_RETURN_IF_ERROR(fill());
  ZG_RETURN_IF_ERROR(group->ReduceScatter("a", from, to, n * kPart, DType::kF32, false));
  for (int64_t i = 0; i < kPart; ++i) {
    ZG_RETURN_IF_ERROR(expect("reduce_scatter", i, output[i], sum_of(own_begin + i)));
  }
  ZG_RETURN_IF_ERROR(group->AllReduce("b", from, to, n * kPart - 3, DType::kF32, false));
  for (int64_t i = 0; i < n * kPart - 3; ++i) {
    ZG_RETURN_IF_ERROR(expect("all_reduce", i, output[i], sum_of(i)));
  }
  ZG_RETURN_IF_ERROR(group->AllGather("c", from, to, kPart * 4));
  for (int64_t i = 0; i < n * kPart; ++i) {
    ZG_RETURN_IF_ERROR(
        expect("all_gather", i, output[i], ContributionOf(ranks[i / kPart], i % kPart)));
  }
  ZG_RETURN_IF_ERROR(group->AllToAll("d", from, to, kPart * 4));
  for (int64_t i = 0; i < n * kPart; ++i) {
    ZG_RETURN_IF_ERROR(expect("all_to_all", i, output[i],
                              ContributionOf(ranks[i / kPart], own_begin + i % kPart)));
  }
  return communicator.Barrier("tested");
}

}  // namespace zg
