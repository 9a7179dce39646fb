// The errors of communicators, for every transport of the suite.
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/comm/collective_checks.h"
#include "tests/comm/communicator_suite.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

TEST_P(CommunicatorSuite, TooLargeAnArenaIsAnErrorOnEveryRank) {
  Run([this](Communicator& communicator) -> Status {
    const int64_t bytes = int64_t{1} << 50;
    const Status status = communicator.arena().Allocate(bytes, 0).status();
    std::vector<std::string> texts = {fmt::format("{} bytes", bytes)};
    if (!communicator.device().is_host()) texts = {"bytes are missing"};
    if (GetParam().counts_memory_of_host) {
      texts = {"available"};
      if (GetParam().is_on_one_host)
        texts.push_back(fmt::format("({} bytes)", bytes * num_ranks()));
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
  if (num_ranks() == 1) return;  // no other rank to disagree with
  struct Case {
    std::string first, others;  // in the descriptions of rank 0's call and of the others'
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
  if (num_ranks() == 1) return;  // no other rank to wait for
  const double timeout_s = 1;
  Run(
      [&](Communicator& communicator) -> Status {
        const int last = communicator.size() - 1;
        ZG_RETURN_IF_ERROR(communicator.Barrier("start"));
        if (communicator.rank() == last) return Status::Ok();
        const Clock::time_point start = Clock::now();
        const Status status = communicator.Barrier("after step 7");
        const double waited_s = std::chrono::duration<double>(Clock::now() - start).count();
        // The first rank to notice reports it, and may tell the others before they notice
        // themselves.
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
