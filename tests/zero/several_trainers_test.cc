// Several trainers at once, in one process or on the same ranks: ensembles, a student and its teacher, an
// actor and its critic with graphs of their own. Each has the bits that it would have alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kMicroBatches = 6;
constexpr int64_t kSteps = 5;

struct Config {
  int64_t hidden = 8;
  uint64_t seed = 1;
  int stage = 0;
  int64_t overlap_bytes = 0;
};

struct Result {
  std::vector<float> losses;
  float eval = 0;
  std::string parameters;

  bool operator==(const Result& other) const {
    return losses == other.losses && eval == other.eval && parameters == other.parameters;
  }
};

class Member {
 public:
  static StatusOr<std::unique_ptr<Member>> Create(const Config& config,
                                                  Communicator& communicator) {
    auto run = std::make_unique<Member>(config);
    Graph& graph = run->graph_;
    const auto loss = [&](Inputs& in) {
      return mse_loss(run->last_(tanh(run->hidden_(in.f32("x", {2, 5})))), in.f32("y", {2, 3}));
    };
    graph.train(optim::Adam{0.05}, loss);
    graph.eval("validate", loss);
    graph.config().zero.stage = config.stage;
    graph.config().zero.bucket_bytes = 128;
    graph.config().micro_batches = kMicroBatches;
    graph.config().overlap_bytes = config.overlap_bytes;
    TrainerOptions options;
    options.seed = config.seed;
    ZG_ASSIGN_OR_RETURN(run->trainer_, make_trainer(graph, graph.config(), communicator, options));
    return run;
  }
  explicit Member(const Config& config)
      : hidden_(&root_, "hidden", 5, config.hidden), last_(&root_, "last", config.hidden, 3) {}

  Status Step() {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer_->step([&](int64_t micro_batch) {
      Fill(trainer_->steps_done() + micro_batch);
      return trainer_->feed({{"x", x_}, {"y", y_}});
    }));
    result_.losses.push_back(loss);
    return Status::Ok();
  }

  Status Evaluate() {
    Fill(1);
    ZG_RETURN_IF_ERROR(trainer_->eval("validate", {{"x", x_}, {"y", y_}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> loss, trainer_->result("validate"));
    result_.eval = loss[0];
    return Status::Ok();
  }

  StatusOr<Result> Finish() {
    ZG_RETURN_IF_ERROR(Evaluate());
    ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer_->digest_parameters());
    result_.parameters = digest.sha256;
    return result_;
  }

  Trainer& trainer() { return *trainer_; }

 private:
  void Fill(int64_t number) {
    x_.resize(10);
    y_.resize(6);
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = 0.1f * static_cast<float>((i * 3 + number) % 7);
    for (size_t i = 0; i < y_.size(); ++i) y_[i] = 0.3f * static_cast<float>((i + number) % 3);
  }

  nn::Module root_;
  nn::Linear hidden_, last_;
  Graph graph_{"several"};
  std::unique_ptr<Trainer> trainer_;
  Result result_;
  std::vector<float> x_, y_;
};

constexpr char kFrozen[] = "hidden.*";

// `changes`: some parameters are frozen after the second step.
StatusOr<Result> Alone(const Config& config, bool changes, Communicator& communicator) {
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Member> run, Member::Create(config, communicator));
  for (int64_t step = 0; step < kSteps; ++step) {
    if (changes && step == 2) ZG_RETURN_IF_ERROR(run->trainer().freeze(kFrozen));
    ZG_RETURN_IF_ERROR(run->Step());
  }
  return run->Finish();
}

Status ExpectSame(const char* what, const StatusOr<Result>& got, const Result& alone) {
  ZG_RETURN_IF_ERROR(got.status().WithContext(what));
  return *got == alone ? Status::Ok() : InvalidArgument("{}: other bits than alone", what);
}

Status InTurns(const Config& a, const Config& b, Communicator& communicator) {
  ZG_ASSIGN_OR_RETURN(const Result a_alone, Alone(a, /*changes=*/false, communicator));
  ZG_ASSIGN_OR_RETURN(const Result b_alone, Alone(b, /*changes=*/true, communicator));
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Member> first, Member::Create(a, communicator));
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Member> second, Member::Create(b, communicator));
  for (int64_t step = 0; step < kSteps; ++step) {
    ZG_RETURN_IF_ERROR(first->Step());
    if (step == 2) ZG_RETURN_IF_ERROR(second->trainer().freeze(kFrozen));
    ZG_RETURN_IF_ERROR(second->Step());
    ZG_RETURN_IF_ERROR(second->Evaluate());
  }
  for (Member* run : {first.get(), second.get()}) {
    const Executor& executor = run->trainer().executor();
    if (executor.meter().peak_bytes() == executor.plan().arena_bytes) continue;
    return InvalidArgument("measured {}, planned {}", executor.meter().peak_bytes(),
                           executor.plan().arena_bytes);
  }
  ZG_RETURN_IF_ERROR(ExpectSame("the second", second->Finish(), b_alone));
  second.reset();
  ZG_RETURN_IF_ERROR(ExpectSame("a third", Alone(b, /*changes=*/true, communicator), b_alone));
  return ExpectSame("the first", first->Finish(), a_alone);
}

TEST(SeveralTrainers, HaveTheBitsOfEachAlone) {
  RegisterAllOps();
  for (const int ranks : {1, 2, 3}) {
    for (const int stage : {0, 3}) {
      for (const int64_t overlap_bytes : {0, 1 << 20}) {
        const Config small = {8, 1, stage, overlap_bytes}, large = {24, 2, stage, overlap_bytes};
        for (const auto& [a, b] : {std::pair(small, large), std::pair(large, small)}) {
          const Status status = RunRanks(
              ranks, [&](Communicator& communicator) { return InTurns(a, b, communicator); });
          EXPECT_TRUE(status.ok()) << fmt::format("{} ranks, stage {}, overlap {}: {}", ranks,
                                                  stage, overlap_bytes, status.message());
        }
      }
    }
  }
}

TEST(SeveralTrainers, OfAnotherThreadMeanwhileAreAnError) {
  RegisterAllOps();
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Member> run, Member::Create({}, communicator));
    const Communicator::Call call(communicator);  // as if another thread were in one
    for (const Status& error :
         {run->Step(), run->Evaluate(), Member::Create({}, communicator).status()}) {
      EXPECT_EQ(error.message(),
                "two threads use the communicator of rank 0 at once; make trainers, and take their "
                "steps, in one thread of a rank");
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace zg
