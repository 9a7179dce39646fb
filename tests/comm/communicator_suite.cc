#include "tests/comm/communicator_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tests/comm/collective_checks.h"

namespace zg {
namespace {

// Elements per rank's part: odd numbers, and numbers below and above the limits of small
// all-reduces (64 KiB) and of the chunks of messages that are under way at a time (480 KiB).
const int64_t kPartElements[] = {0, 1, 3, 17, 1000, 4099, 65536, 300001};

}  // namespace

void CommunicatorSuite::Run(const RankMain& rank_main, double timeout_s) const {
  const Status status = GetParam().run(timeout_s, rank_main);
  EXPECT_TRUE(status.ok()) << status.ToString();
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

TEST_P(CommunicatorSuite, AddsPairwiseOrSaysThatItCannot) {
  const bool adds_pairwise = GetParam().adds_pairwise;
  Run([adds_pairwise](Communicator& communicator) -> Status {
    for (const int64_t part : kPartElements) {
      const Status status = TestPairwiseSums(communicator, part);
      ZG_RETURN_IF_ERROR(adds_pairwise
                             ? status
                             : ExpectFailure(status, StatusCode::kInvalidArgument,
                                             {"pairwise scatter", "are not added pairwise"}));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, AllReduceIsTheLeftFold) {
  Run([](Communicator& communicator) -> Status {
    std::vector<int64_t> sizes(std::begin(kPartElements), std::end(kPartElements));
    // Around the limit of small all-reduces, and sizes that no number of ranks divides.
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
    // Small numbers, and numbers beyond the limits of small all-reduces and of the chunks of
    // messages.
    for (int64_t part : {1, 21, 4099, 70001}) {
      ZG_RETURN_IF_ERROR(TestWholeNumbers(communicator, part, false));
      ZG_RETURN_IF_ERROR(TestWholeNumbers(communicator, part, true));
    }
    return Status::Ok();
  });
}

TEST_P(CommunicatorSuite, HalvesAreAddedUpInF32) {
  Run([](Communicator& communicator) -> Status {
    // As for integers; the last one takes more than one chunk of 16-bit terms.
    for (const int64_t part : {0, 1, 17, 4099, 140001}) {
      ZG_RETURN_IF_ERROR(TestHalves(communicator, part));
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

TEST_P(CommunicatorSuite, DuplicatesHaveArenasGroupsAndCountersOfTheirOwn) {
  Run([](Communicator& communicator) -> Status {
    ZG_RETURN_IF_ERROR(TestReduceScatter(communicator, 17, false, false));
    std::byte* const arena = communicator.arena().data();
    const int64_t bytes = communicator.traffic()[0].bytes;
    for (int i = 0; i < 2; ++i) {  // also after the first one has gone
      ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> other, communicator.Duplicate());
      ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> third, other->Duplicate());
      if (other->rank() != communicator.rank() || other->transport() != communicator.transport()) {
        return InvalidArgument("rank {}, {}", other->rank(), other->transport());
      }
      ZG_RETURN_IF_ERROR(TestAllReduce(*other, 1000, false, true));
      ZG_RETURN_IF_ERROR(TestAllToAll(*third, 100));
      ZG_RETURN_IF_ERROR(TestReduceScatter(*other, 300001, false, false));
      ZG_RETURN_IF_ERROR(TestGroup(*other, AllRanks(other->size())));
      if (communicator.arena().data() != arena || communicator.traffic()[0].bytes != bytes) {
        return InvalidArgument("a duplicate changes the original");
      }
      ZG_RETURN_IF_ERROR(TestAllGather(*third, 1000, true));
    }
    return TestAllGather(communicator, 10, true);
  });
}

// The bytes that rank 0 receives in an all-reduce: the others' terms of its part, and the other
// parts of the sum.
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
    ZG_RETURN_IF_ERROR(world.AllReduce("c", low, low, 10001, DType::kF32, false));
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
        expect(Kind::kAllReduce, 2, AllReduceBytes(10, n) + AllReduceBytes(10001, n)));
    ZG_RETURN_IF_ERROR(expect(Kind::kAllGather, 1, 123 * (n - 1)));
    return expect(Kind::kAllToAll, 1, 77 * (n - 1));
  });
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

TEST_P(CommunicatorSuite, ExchangesWords) {
  Run([](Communicator& communicator) -> Status {
    const auto word_of = [](int rank, int i) { return ~uint64_t{0} - 1000 * i - rank; };
    std::vector<uint64_t> all(communicator.size());
    for (int i = 0; i < 5; ++i) {
      ZG_RETURN_IF_ERROR(
          communicator.ExchangeWord("words", word_of(communicator.rank(), i), all.data()));
      for (int rank = 0; rank < communicator.size(); ++rank) {
        if (all[rank] != word_of(rank, i)) return InvalidArgument("the word of rank {}", rank);
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

}  // namespace zg
