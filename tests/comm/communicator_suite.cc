#include "tests/comm/communicator_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "framework/tensor/half.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

// Elements per rank's part: odd ones, ones below and above the limits of small all-reduces (64 KiB)
// and of the chunks in which messages travel (256 KiB).
const int64_t kPartElements[] = {0, 1, 3, 17, 1000, 4099, 65536, 140001};

uint64_t HashOf(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Signs and magnitudes from 2^-20 to 2^20 are mixed, so that another order of addition shows.
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

// What accumulating calls start from; the same on all ranks.
float StartOf(int64_t element) { return ContributionOf(1000, element); }

float AccumulatedOf(int num_ranks, int64_t element) {
  float sum = StartOf(element);
  for (int rank = 0; rank < num_ranks; ++rank) sum += ContributionOf(rank, element);
  return sum;
}

// One rank's arena and what it should look like: every byte outside the outputs counts too. The
// workspace is at the end.
class ArenaUnderTest {
 public:
  static StatusOr<ArenaUnderTest> Allocate(Communicator& communicator, int64_t num_floats) {
    const int64_t bytes = (num_floats * 4 + 4095) / 4096 * 4096;
    ZG_ASSIGN_OR_RETURN(
        std::byte* const arena,
        communicator.arena().Allocate(bytes + communicator.arena().workspace_bytes(), bytes));
    if (reinterpret_cast<uintptr_t>(arena) % 4096 != 0) {
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

// Beyond 2^53, so that a detour through f64 shows; sums of up to 1024 ranks fit.
int64_t WholeNumberOf(int rank, int64_t element) {
  return static_cast<int64_t>(HashOf(rank, element)) >> 10;
}

// A reduce-scatter into an output and an all-reduce in place, of i64.
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
  const int64_t first = scatters ? rank * part : 0;  // element of which a sum is the rank's first
  // From the second element on, so that nothing is aligned to a vector.
  const int64_t input = sizeof(Term);
  const int64_t behind_input = (input + elements * sizeof(Term) + 63) / 64 * 64 + sizeof(Sum);
  const int64_t output = mode == Output::kInPlace ? input + first * sizeof(Term) : behind_input;
  const int64_t bytes = (behind_input + num_sums * sizeof(Sum) + 64 + 4095) / 4096 * 4096;
  ZG_ASSIGN_OR_RETURN(
      std::byte* const arena,
      communicator.arena().Allocate(bytes + communicator.arena().workspace_bytes(), bytes));

  const auto term_of = [](int of_rank, int64_t element) {
    return FromF32<Term>(ContributionOf(of_rank, element) / 64);  // f16 has no larger ones
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
  // Rank 0, whose part is a largest one, receives as many as are predicted.
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

Status ExpectFailure(const Status& got, StatusCode code, const std::vector<std::string>& texts) {
  bool is_as_expected = got.code() == code;
  for (const std::string& text : texts) {
    is_as_expected &= got.message().find(text) != std::string::npos;
  }
  if (is_as_expected) return Status::Ok();
  return InvalidArgument("got {}, expected {} with '{}'", got.ToString(), StatusCodeName(code),
                         fmt::join(texts, "', '"));
}

}  // namespace

void CommunicatorSuite::Run(const RankMain& rank_main, double timeout_s) const {
  const Status status = GetParam().run(timeout_s, rank_main);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

std::string TransportName(const testing::TestParamInfo<TransportUnderTest>& info) {
  return info.param.name;
}

TEST_P(CommunicatorSuite, KnowsRankAndSize) {
  Run([this](Communicator& communicator) -> Status {
    if (communicator.size() != num_ranks()) return InvalidArgument("size {}", communicator.size());
    if (communicator.rank() < 0 || communicator.rank() >= num_ranks()) {
      return InvalidArgument("rank {}", communicator.rank());
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, ReduceScatterIsTheLeftFold) {
  Run([](Communicator& communicator) -> Status {
    for (int64_t part : kPartElements) {
      ZG_RETURN_IF_ERROR(TestReduceScatter(communicator, part, false, false));
      ZG_RETURN_IF_ERROR(TestReduceScatter(communicator, part, false, true));
      ZG_RETURN_IF_ERROR(TestReduceScatter(communicator, part, true, false));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, AllReduceIsTheLeftFold) {
  Run([](Communicator& communicator) -> Status {
    std::vector<int64_t> sizes(std::begin(kPartElements), std::end(kPartElements));
    // Around the limit of the small ones, and sizes that no number of ranks divides.
    sizes.insert(sizes.end(), {16383, 16384, 16385, 270001});
    for (int64_t elements : sizes) {
      ZG_RETURN_IF_ERROR(TestAllReduce(communicator, elements, false, false));
      ZG_RETURN_IF_ERROR(TestAllReduce(communicator, elements, false, true));
      ZG_RETURN_IF_ERROR(TestAllReduce(communicator, elements, true, false));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, WholeNumbersAreAddedExactly) {
  Run([](Communicator& communicator) -> Status {
    // Small ones, and beyond the limits of small all-reduces and of the chunks of messages.
    for (int64_t part : {1, 21, 4099, 70001}) {
      ZG_RETURN_IF_ERROR(TestWholeNumbers(communicator, part, false));
      ZG_RETURN_IF_ERROR(TestWholeNumbers(communicator, part, true));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, HalvesAreAddedUpInF32) {
  Run([](Communicator& communicator) -> Status {
    // As for whole numbers; the last one takes more than one chunk of 16-bit terms.
    for (const int64_t part : {0, 1, 17, 4099, 140001}) {
      ZG_RETURN_IF_ERROR(TestHalvesOf<BFloat16>(communicator, DType::kBF16, part));
      ZG_RETURN_IF_ERROR(TestHalvesOf<Float16>(communicator, DType::kF16, part));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, AllGatherHasEveryPart) {
  Run([](Communicator& communicator) -> Status {
    for (int64_t part : kPartElements) {
      ZG_RETURN_IF_ERROR(TestAllGather(communicator, part, false));
      ZG_RETURN_IF_ERROR(TestAllGather(communicator, part, true));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, AllToAllTransposesTheParts) {
  Run([](Communicator& communicator) -> Status {
    for (int64_t part : kPartElements) ZG_RETURN_IF_ERROR(TestAllToAll(communicator, part));
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, ManyCallsInARowDoNotMixUp) {
  Run([](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(
        std::byte* const arena,
        communicator.arena().Allocate(4096 + communicator.arena().workspace_bytes(), 4096));
    auto* const floats = reinterpret_cast<float*>(arena);
    const int n = communicator.size();
    for (int i = 0; i < 500; ++i) {
      floats[0] = static_cast<float>(i + communicator.rank());
      ZG_RETURN_IF_ERROR(
          communicator.world().AllReduce("sum", {0, 0}, {0, 0}, 1, DType::kF32, false));
      const auto expected = static_cast<float>(i * n + n * (n - 1) / 2);
      if (floats[0] != expected) return InvalidArgument("{}: {}", i, floats[0]);
    }
    return Status::Ok();
  });
}

// The bytes that reach rank 0 in an all-reduce: the others' terms of its part, and the other parts
// of the sum.
int64_t AllReduceBytes(int64_t elements, int num_ranks) {
  const int64_t part = (elements + num_ranks - 1) / num_ranks;
  return 4 * (part * (num_ranks - 1) + elements - part);
}

TEST_P(CommunicatorSuite, CountsWhatTheFormulaSays) {
  Run([](Communicator& communicator) -> Status {
    const int n = communicator.size();
    Group& world = communicator.world();
    ZG_RETURN_IF_ERROR(communicator.arena()
                           .Allocate((4 << 20) + communicator.arena().workspace_bytes(), 4 << 20)
                           .status());
    const ArenaOperand low{0, 0};
    const ArenaOperand high{2 << 20, 0};
    ZG_RETURN_IF_ERROR(world.ReduceScatter("a", low, high, 1001 * n, DType::kF32, false));
    ZG_RETURN_IF_ERROR(world.AllReduce("b", low, high, 10, DType::kF32, false));
    ZG_RETURN_IF_ERROR(world.AllReduce("c", low, low, 100001, DType::kF32, false));
    ZG_RETURN_IF_ERROR(world.AllGather("d", low, high, 123));
    ZG_RETURN_IF_ERROR(world.AllToAll("e", low, high, 77));
    ZG_RETURN_IF_ERROR(communicator.Barrier("f"));
    const auto expect = [&](CollectiveKind kind, int64_t count, int64_t bytes) -> Status {
      const Traffic& traffic = communicator.traffic()[static_cast<int>(kind)];
      if (traffic.count == count && traffic.bytes == bytes) return Status::Ok();
      return InvalidArgument("{}: {} calls and {} bytes, expected {} and {}", CollectiveName(kind),
                             traffic.count, traffic.bytes, count, bytes);
    };
    using Kind = CollectiveKind;
    if (communicator.rank() > 0) return Status::Ok();
    ZG_RETURN_IF_ERROR(expect(Kind::kReduceScatter, 1, 1001 * 4 * (n - 1)));
    ZG_RETURN_IF_ERROR(
        expect(Kind::kAllReduce, 2, AllReduceBytes(10, n) + AllReduceBytes(100001, n)));
    ZG_RETURN_IF_ERROR(expect(Kind::kAllGather, 1, 123 * (n - 1)));
    return expect(Kind::kAllToAll, 1, 77 * (n - 1));
  });
}

// All collectives of a group at once, on parts of 1000 elements: `ranks` is any order of ranks.
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

TEST_P(CommunicatorSuite, GroupsOfRanksWorkApart) {
  Run([](Communicator& communicator) -> Status {
    const int n = communicator.size();
    const int rank = communicator.rank();
    std::vector<int> reversed = AllRanks(n);
    std::reverse(reversed.begin(), reversed.end());
    ZG_RETURN_IF_ERROR(TestGroup(communicator, AllRanks(n)));
    ZG_RETURN_IF_ERROR(TestGroup(communicator, reversed));
    ZG_RETURN_IF_ERROR(TestGroup(communicator, {rank}));
    // Groups of two sizes: the even and the odd ranks, twice.
    std::vector<int> alike;
    for (int other = rank % 2; other < n; other += 2) alike.push_back(other);
    ZG_RETURN_IF_ERROR(TestGroup(communicator, alike));
    return TestGroup(communicator, alike);
  });
}

TEST_P(CommunicatorSuite, ExchangesStringsOfAnySize) {
  Run([](Communicator& communicator) -> Status {
    const auto text_of = [](int rank) { return std::string(rank * 70001, 'a' + rank); };
    for (int i = 0; i < 3; ++i) {
      ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          communicator.Exchange("texts", text_of(communicator.rank())));
      if (static_cast<int>(all.size()) != communicator.size()) return InvalidArgument("size");
      for (int rank = 0; rank < communicator.size(); ++rank) {
        if (all[rank] != text_of(rank)) return InvalidArgument("the text of rank {}", rank);
      }
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, ExchangeStatusTellsEveryRankOfAnError) {
  Run([](Communicator& communicator) -> Status {
    ZG_RETURN_IF_ERROR(ExchangeStatus(communicator, "good", Status::Ok()));
    const int last = communicator.size() - 1;
    if (communicator.rank() == last) {
      return ExpectFailure(ExchangeStatus(communicator, "load", NotFound("no such file")),
                           StatusCode::kNotFound, {"no such file"});
    }
    return ExpectFailure(ExchangeStatus(communicator, "load", Status::Ok()), StatusCode::kAborted,
                         {fmt::format("load: rank {} failed: ", last), "no such file"});
  });
}

TEST_P(CommunicatorSuite, ArenaCanBeReplaced) {
  Run([](Communicator& communicator) -> Status {
    for (int64_t part : {1000, 140001, 10}) {
      ZG_RETURN_IF_ERROR(TestAllGather(communicator, part, true));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, TooLargeAnArenaIsAnErrorOnEveryRank) {
  Run([this](Communicator& communicator) -> Status {
    const int64_t bytes = int64_t{1} << 50;
    const Status status = communicator.arena().Allocate(bytes, 0).status();
    std::vector<std::string> texts = {fmt::format("{} bytes", bytes)};
    if (GetParam().counts_memory_of_host) {
      texts = {fmt::format("({} bytes)", bytes * num_ranks()), "available"};
    }
    ZG_RETURN_IF_ERROR(ExpectFailure(status, StatusCode::kFailedPrecondition, texts));
    return TestAllGather(communicator, 10, true);  // still usable
  });
}

TEST_P(CommunicatorSuite, BadOperandsAreErrors) {
  Run([](Communicator& communicator) -> Status {
    const int n = communicator.size();
    ZG_RETURN_IF_ERROR(ExpectFailure(communicator.world().AllGather("early", {0, 0}, {0, 0}, 4),
                                     StatusCode::kFailedPrecondition,
                                     {"all_gather 'early'", "call Arena::Allocate first"}));
    const int64_t bytes = 1 << 16;
    ZG_RETURN_IF_ERROR(communicator.arena()
                           .Allocate(bytes + communicator.arena().workspace_bytes(), bytes)
                           .status());
    const auto bad = [](const Status& status, const std::string& text) {
      return ExpectFailure(status, StatusCode::kInvalidArgument, {text});
    };
    const int64_t end = bytes + communicator.arena().workspace_bytes();
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {end - 4, 0}, {0, 0}, 2, DType::kF32, false),
            "is not in the arena"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {-4, 0}, {0, 0}, 2, DType::kF32, false),
            "input [-4, 4) is not in the arena"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {2, 0}, {64, 0}, 2, DType::kF32, false),
            "is not aligned for f32"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {4, 0}, {64, 0}, 2, DType::kI64, false),
            "input at 4 is not aligned for i64"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {0, 0}, {4, 0}, 2, DType::kF32, false),
            "input [0, 8) overlaps output [4, 12) but is not in place"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {0, 0}, {0, 0}, 2, DType::kF32, true),
            "an accumulating call cannot be in place"));
    const ReductionTypes widened = {DType::kBF16, DType::kF32};
    ZG_RETURN_IF_ERROR(bad(communicator.world().AllReduce("x", {0, 0}, {0, 0}, 2, widened, false),
                           "input [0, 4) overlaps output [0, 8) but is not in place"));
    ZG_RETURN_IF_ERROR(bad(communicator.world().AllReduce("x", {0, 0}, {66, 0}, 2, widened, false),
                           "output at 66 is not aligned for f32"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllReduce("x", {0, 0}, {64, 0}, 2, DType::kF16, true),
            "accumulating in f16 would round every time; the sum must be f32"));
    ZG_RETURN_IF_ERROR(bad(
        communicator.world().AllReduce("x", {0, 0}, {64, 0}, 2, {DType::kF32, DType::kBF16}, false),
        "terms in f32 have no sum in bf16"));
    ZG_RETURN_IF_ERROR(
        bad(communicator.world().AllToAll("x", {0, 0}, {0, 0}, 8), "overlaps output"));
    if (n > 1) {
      ZG_RETURN_IF_ERROR(
          bad(communicator.world().ReduceScatter("x", {0, 0}, {1024, 0}, n + 1, DType::kF32, false),
              fmt::format("{} elements do not divide by {} ranks", n + 1, n)));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, DifferentCallsAreAnErrorOnEveryRank) {
  if (num_ranks() == 1) return;  // Nobody to disagree with.
  struct Case {
    std::string first, others;  // in the description of rank 0's call and of the others'
    std::function<Status(Communicator&, bool is_first)> call;
  };
  const Case cases[] = {
      {"all_gather 'w'", "all_reduce 'w'",
       [](Communicator& communicator, bool is_first) {
         if (is_first) return communicator.world().AllGather("w", {0, 0}, {1024, 0}, 64);
         return communicator.world().AllReduce("w", {0, 0}, {1024, 0}, 64, DType::kF32, false);
       }},
      {"all_reduce 'layer0'", "all_reduce 'layer1'",
       [](Communicator& communicator, bool is_first) {
         const std::string name = is_first ? "layer0" : "layer1";
         return communicator.world().AllReduce(name, {0, 0}, {0, 0}, 64, DType::kF32, false);
       }},
      {"count 840", "count 1680",
       [](Communicator& communicator, bool is_first) {
         return communicator.world().ReduceScatter("g", {0, 0}, {16384, 0}, is_first ? 840 : 1680,
                                                   DType::kF32, false);
       }},
      {"64 of f32", "64 of i64",
       [](Communicator& communicator, bool is_first) {
         const DType dtype = is_first ? DType::kF32 : DType::kI64;
         return communicator.world().AllReduce("h", {0, 0}, {0, 0}, 64, dtype, false);
       }},
      {"64 of bf16, ", "64 of bf16 into f32, ",
       [](Communicator& communicator, bool is_first) {
         const ReductionTypes types = {DType::kBF16, is_first ? DType::kBF16 : DType::kF32};
         return communicator.world().AllReduce("h", {0, 0}, {1024, 0}, 64, types, false);
       }},
      {"barrier 'end'", "exchange 'end'",
       [](Communicator& communicator, bool is_first) {
         if (is_first) return communicator.Barrier("end");
         return communicator.Exchange("end", "text").status();
       }},
  };
  for (const Case& test_case : cases) {
    Run([&](Communicator& communicator) -> Status {
      const int64_t bytes = 1 << 16;
      const Status allocated = communicator.arena()
                                   .Allocate(bytes + communicator.arena().workspace_bytes(), bytes)
                                   .status();
      ZG_RETURN_IF_ERROR(allocated);
      return ExpectFailure(test_case.call(communicator, communicator.rank() == 0),
                           StatusCode::kAborted, {test_case.first, test_case.others});
    });
  }
}

TEST_P(CommunicatorSuite, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  if (num_ranks() == 1) return;  // Nobody to wait for.
  const double timeout_s = 1;
  Run(
      [&](Communicator& communicator) -> Status {
        const int last = communicator.size() - 1;
        ZG_RETURN_IF_ERROR(communicator.Barrier("start"));
        if (communicator.rank() == last) return Status::Ok();
        const Clock::time_point start = Clock::now();
        const Status status = communicator.Barrier("after step 7");
        const double waited_s = std::chrono::duration<double>(Clock::now() - start).count();
        // The first to notice says so, and may tell the others before they notice themselves.
        const StatusCode code = status.code() == StatusCode::kAborted
                                    ? StatusCode::kAborted
                                    : StatusCode::kDeadlineExceeded;
        ZG_RETURN_IF_ERROR(ExpectFailure(
            status, code,
            {"barrier 'after step 7' (call ", fmt::format("on rank {}: ", communicator.rank()),
             fmt::format("no sign of rank {} within 1 s", last), "ZG_COLLECTIVE_TIMEOUT_S"}));
        if (waited_s < timeout_s * 0.9) return InvalidArgument("waited only {} s", waited_s);
        return Status::Ok();
      },
      timeout_s);
}

}  // namespace zg
