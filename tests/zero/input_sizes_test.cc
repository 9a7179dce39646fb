// A graph whose inputs have several sizes: each step runs at one of them, with the same bits as a
// program of that size alone, at any stage and number of ranks.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/comm/host_staged.h"
#include "framework/nn/nn.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSamples = 2, kWords = 11, kChannels = 8, kLongest = 7;
const std::vector<int64_t> kSizes = {3, 5, kLongest};

// With a buffer, dropout, and a parameter of which short texts use a part.
struct Model : nn::Module {
  Model()
      : positions(this, "positions", {kLongest, kChannels}, Initializer::Normal(0.5)),
        embedding(this, "embedding", kWords, kChannels),
        norm(this, "norm", kChannels),
        attention(this, "attention", kChannels, /*heads=*/2, /*dropout=*/0.25),
        output(this, "output", kChannels, kWords) {}

  Var forward(Var words) override {
    const int64_t length = words.dim(1);
    const Var x = embedding(words) + slice(positions, 0, 0, length);
    nn::AttentionMasks masks;
    masks.causal = true;
    return output(attention(transpose(norm(transpose(x, 1, 2)), 1, 2), masks));
  }

  nn::Parameter positions;
  nn::Embedding embedding;
  nn::BatchNorm1d norm;
  nn::MultiheadAttention attention;
  nn::Linear output;
};

struct Config {
  int stage = 0;
  DType dtype = DType::kF32;
  int64_t micro_batches = 6;
  int64_t overlap_bytes = 0;
  bool update_early = false;
  bool on_device = false;
  std::vector<int64_t> sizes = kSizes;  // one: a graph of one size
  bool profile = false;
};

// The model, its graph and its trainer.
class SizedRun {
 public:
  SizedRun(const Config& config, Communicator& communicator) : graph_("texts") {
    const auto build = [&](Inputs& in, int64_t length) -> Outputs {
      const Var words = in.i64("words", {kSamples, length}), next = in.i64("next", {kSamples, length});
      const Var logits = model_(words);
      return {{"loss", cross_entropy(logits, next)}, {"logits", logits}};
    };
    if (config.sizes.size() == 1) {
      graph_.train(optim::AdamW{0.02}, [&](Inputs& in) { return build(in, config.sizes[0]); });
    } else {
      graph_.train(optim::AdamW{0.02}, config.sizes, build);
    }
    graph_.eval("first", [&](Inputs& in) { return model_(in.i64("words", {kSamples, 2})); });
    CompileOptions& options = graph_.config();
    options.zero.stage = config.stage;
    options.zero.bucket_bytes = 512;
    options.zero.shard_min_elements = 0;
    options.dtype = config.dtype;
    options.micro_batches = config.micro_batches;
    options.overlap_bytes = config.overlap_bytes;
    options.update_early = config.update_early;
    TrainerOptions trainer_options;
    trainer_options.profile = config.profile;
    if (config.on_device) trainer_options.kernels = &FakeDeviceKernels();
    made_ = make_trainer(graph_, communicator, trainer_options);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }

  // The step that is next; its size and data follow from its number.
  StatusOr<float> Step(const std::vector<std::string>& groups = {}) {
    const int64_t step = trainer().steps_done();
    if (trainer().size() != 0) ZG_RETURN_IF_ERROR(trainer().set_size(SizeOf(step)));
    const auto feed = [&](int64_t micro_batch) { return Feed(step, micro_batch); };
    return groups.empty() ? trainer().step(feed) : trainer().step_groups(groups, feed);
  }

  static int64_t SizeOf(int64_t step) { return kSizes[(2 + step * 5 / 3) % kSizes.size()]; }

  Status Feed(int64_t step, int64_t micro_batch) {
    words_.clear();
    next_.clear();
    for (int64_t i = 0; i < kSamples * SizeOf(step); ++i) {
      words_.push_back((step * 31 + micro_batch * 7 + i * 3) % kWords);
      next_.push_back((words_.back() * 5 + 1) % kWords);
    }
    return trainer().feed({{"words", words_}, {"next", next_}});
  }

 private:
  Model model_;
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = NotFound("not made");
  std::vector<int64_t> words_, next_;
};

// Calls body(communicator) with the host's, or with one for a device of this rank.
Status OnDeviceOf(const Config& config, Communicator& host,
                  const std::function<Status(Communicator& communicator)>& body) {
  if (!config.on_device) return body(host);
  FakeDevice device;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> staged,
                      MakeHostStagedCommunicator(&device, &host));
  return body(*staged);
}

constexpr int64_t kSteps = 7;

StatusOr<std::string> DigestsOf(Trainer& trainer) {
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer.digest_optimizer_state());
  return parameters.sha256 + " " + state.sha256;
}

// What happens to a run before a step.
using Between = std::function<Status(std::optional<SizedRun>& run, Communicator& communicator)>;

// The losses of a run, its evaluations between steps and its final digests, on rank 0.
std::string RunOf(int ranks, const Config& config, const Between& between = nullptr) {
  return ResultsOnRanks<std::string>(ranks, [&](Communicator& host, std::string* result) -> Status {
    return OnDeviceOf(config, host, [&](Communicator& communicator) -> Status {
      std::optional<SizedRun> run(std::in_place, config, communicator);
      ZG_RETURN_IF_ERROR(run->status());
      const std::vector<int64_t> words = {1, 2, 3, 4};
      for (int64_t step = 0; step < kSteps; ++step) {
        if (between != nullptr) ZG_RETURN_IF_ERROR(between(run, communicator));
        ZG_ASSIGN_OR_RETURN(const float loss, run->Step());
        *result += fmt::format("{} ", loss);
        if (step % 3 != 1) continue;
        ZG_RETURN_IF_ERROR(run->trainer().eval("first", {{"words", words}}));
        ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run->trainer().local_result("first"));
        *result += fmt::format("({}) ", logits[0]);
      }
      ZG_ASSIGN_OR_RETURN(const std::string digests, DigestsOf(run->trainer()));
      *result += digests;
      return Status::Ok();
    });
  })[0];
}

TEST(InputSizes, HaveTheSameBitsAtAnyStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    Config config;
    config.dtype = dtype;
    const std::string expected = RunOf(1, config);
    ASSERT_FALSE(expected.empty());
    for (const int ranks : {1, 2, 3}) {
      for (const int stage : {0, 1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        config.stage = stage;
        config.overlap_bytes = 0;
        EXPECT_EQ(RunOf(ranks, config), expected);
        config.overlap_bytes = 1024;
        EXPECT_EQ(RunOf(ranks, config), expected) << "overlap";
      }
    }
  }
}

TEST(InputSizes, HaveTheSameBitsWithEarlyUpdates) {
  Config config;
  config.micro_batches = 2;
  const std::string expected = RunOf(1, config);
  config.update_early = true;
  for (const int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    config.stage = stage;
    config.overlap_bytes = stage % 2 == 0 ? 0 : 1024;
    EXPECT_EQ(RunOf(2, config), expected);
  }
}

TEST(InputSizes, HaveTheSameBitsOnADevice) {
  const std::string expected = RunOf(1, {});
  Config config;
  config.on_device = true;
  for (const int ranks : {1, 2}) {
    config.stage = ranks;
    EXPECT_EQ(RunOf(ranks, config), expected) << ranks;
  }
}

// Programs of one size each that hand over parameters, buffers and state.
TEST(InputSizes, TrainAsAProgramOfEachSizeDoes) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    const std::filesystem::path directory =
        std::filesystem::path(::testing::TempDir()) / fmt::format("sizes_{}", DTypeName(dtype));
    std::filesystem::remove_all(directory);
    ResultsOnRanks<int>(2, [&](Communicator& communicator, int*) -> Status {
      Config config = {2, dtype};
      std::vector<float> losses;
      std::string digests;
      {
        SizedRun run(config, communicator);
        ZG_RETURN_IF_ERROR(run.status());
        for (int64_t step = 0; step < kSteps; ++step) {
          ZG_ASSIGN_OR_RETURN(losses.emplace_back(), run.Step());
        }
        ZG_ASSIGN_OR_RETURN(digests, DigestsOf(run.trainer()));
      }
      NamedValues parameters;
      OptimizerState state;
      for (int64_t step = 0; step < kSteps; ++step) {
        config.sizes = {SizedRun::SizeOf(step)};
        SizedRun run(config, communicator);
        ZG_RETURN_IF_ERROR(run.status());
        Trainer& trainer = run.trainer();
        if (step > 0) {
          ZG_RETURN_IF_ERROR(trainer.scatter_parameters(parameters));
          ZG_RETURN_IF_ERROR(trainer.scatter_optimizer_state(state));
        }
        ZG_ASSIGN_OR_RETURN(const float loss, run.Step());
        EXPECT_EQ(loss, losses[step]) << step;
        ZG_ASSIGN_OR_RETURN(parameters, trainer.consolidate_parameters());
        ZG_ASSIGN_OR_RETURN(state, trainer.consolidate_optimizer_state());
        if (step + 1 < kSteps) continue;
        ZG_ASSIGN_OR_RETURN(const std::string alone, DigestsOf(trainer));
        EXPECT_EQ(alone, digests);
      }
      return Status::Ok();
    });
  }
}

}  // namespace
}  // namespace zg::testing
