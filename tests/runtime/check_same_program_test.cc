#include "framework/runtime/check_same_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ir/parser.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

// The status of every rank; rank 1 has a different program.
std::vector<Status> OnAllRanks(const std::function<Status(Communicator&, bool is_other)>& check) {
  std::vector<Status> by_rank(kRanks);
  const Status status = RunRanks(kRanks, [&](Communicator& communicator) {
    by_rank[communicator.rank()] = check(communicator, communicator.rank() == 1);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return by_rank;
}

// `mine` and `other` are in the lines that the message shows of ranks 0 and 1.
void ExpectDifference(const std::vector<Status>& by_rank, const std::string& mine,
                      const std::string& other) {
  for (const Status& status : by_rank) {
    const std::string& message = status.message();
    EXPECT_THAT(message, HasSubstr("ranks 0 and 1 compiled different programs"));
    const size_t lines = message.find("\n  rank 0: ");
    const size_t other_line = message.find("\n  rank 1: ");
    ASSERT_TRUE(lines < other_line && other_line != std::string::npos) << message;
    EXPECT_THAT(message.substr(lines, other_line - lines), HasSubstr(mine));
    EXPECT_THAT(message.substr(other_line),
                AllOf(HasSubstr(other), HasSubstr("hint: start all ranks from the same binary")));
  }
}

std::vector<Status> CompareTexts(const std::string& text, const std::string& other) {
  RegisterAllOps();
  return OnAllRanks([&](Communicator& communicator, bool is_other) -> Status {
    ZG_ASSIGN_OR_RETURN(const ir::Graph graph, ir::Parse(is_other ? other : text));
    return CheckSameProgram(graph, /*seed=*/1, communicator);
  });
}

const std::string kBegin =
    "graph \"g\" mesh(data=3) micro_batches=3\n"
    "variables:\n"
    "  %a: f32[6] {P} = variable (dtype=\"f32\", role=\"gradient\", shape=[6])\n"
    "  %b: f32[6] {P} = variable (dtype=\"f32\", role=\"gradient\", shape=[6])\n"
    "update:\n";
const std::string kSumA = "  %a.sum: f32[6] {B} = all_reduce %a\n";
const std::string kSumB = "  %b.sum: f32[6] {B} = all_reduce %b\n";

TEST(CheckSameProgram, EqualProgramsAreFine) {
  for (const Status& status : CompareTexts(kBegin + kSumA + kSumB, kBegin + kSumA + kSumB)) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// MPI would sum a's elements of one rank with b's of another.
TEST(CheckSameProgram, SwappedCollectivesAreFound) {
  ExpectDifference(CompareTexts(kBegin + kSumA + kSumB, kBegin + kSumB + kSumA), "all_reduce %a",
                   "all_reduce %b");
}

TEST(CheckSameProgram, AMissingCollectiveIsFound) {
  ExpectDifference(CompareTexts(kBegin + kSumA + kSumB, kBegin + kSumA), "all_reduce %b", "(end)");
  ExpectDifference(CompareTexts(kBegin + kSumA, kBegin + kSumA + kSumB), "(end)", "all_reduce %b");
}

// The externally visible settings of a program.
struct Settings {
  std::vector<MeshAxis> mesh = {{"data", kRanks}};
  int stage = 2;
  int64_t bucket_bytes = 4096;
  DType dtype = DType::kF32;
  uint64_t seed = 1;
  int64_t batch = 4;
  int64_t width = 8;
  double lr = 0.1;
};

struct SmallModel : nn::Module {
  explicit SmallModel(int64_t width) : linear(this, "linear", 8, width) {}
  nn::Linear linear;
  Var forward(Var x) override { return linear(x); }
};

std::vector<Status> CompareSettings(const Settings& mine, const Settings& other) {
  RegisterAllOps();
  return OnAllRanks([&](Communicator& communicator, bool is_other) -> Status {
    const Settings& settings = is_other ? other : mine;
    SmallModel model(settings.width);
    Graph graph("small");
    graph.train(optim::Sgd{.lr = settings.lr}, [&](Inputs& in) {
      return mse_loss(model(in.f32("x", {settings.batch, 8})),
                      in.f32("y", {settings.batch, settings.width}));
    });
    graph.config().mesh = settings.mesh;
    graph.config().dtype = settings.dtype;
    graph.config().enable_zero({.stage = settings.stage, .bucket_bytes = settings.bucket_bytes});
    return make_trainer(graph, communicator, {.seed = settings.seed}).status();
  });
}

TEST(CheckSameProgram, AnySettingOfOneRankIsFound) {
  const Settings mine;
  const auto with = [](const std::function<void(Settings&)>& change) {
    Settings settings;
    change(settings);
    return settings;
  };
  ExpectDifference(CompareSettings(mine, with([](Settings& s) {
                                     s.mesh = {{"shard", 3}};
                                   })),
                   "mesh(data=3)", "mesh(shard=3)");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) {
                                     s.mesh = {{"replica", 1}, {"data", 3}};
                                   })),
                   "mesh(data=3)", "mesh(replica=1, data=3)");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.stage = 1; })), "", "");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.bucket_bytes = 64; })),
                   "linear.bias", "%bucket1");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.dtype = DType::kBF16; })), "",
                   "role=\"master\"");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.seed = 7; })), "seed 1",
                   "seed 7");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.batch = 5; })), "f32[12,8]",
                   "f32[15,8]");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.width = 9; })), "", "");
  ExpectDifference(CompareSettings(mine, with([](Settings& s) { s.lr = 0.2; })), "lr=0.1",
                   "lr=0.2");
}

}  // namespace
}  // namespace zg
