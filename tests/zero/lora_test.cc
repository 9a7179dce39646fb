// LoRA adapters on a frozen GPT: only they have gradients and optimizer state, in the plan and in
// the run; the bits are the same at every stage and on any number of ranks; files are PEFT's.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/comm/in_process.h"
#include "framework/io/safetensors.h"
#include "framework/ops/register_all_ops.h"
#include "framework/state/tensor_state.h"
#include "framework/train/lora_files.h"
#include "models/gpt/model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 6;
constexpr int64_t kVocabulary = 11;
constexpr int64_t kRank = 2;

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  bool adapts = true;
  bool rounds_frozen = false;
};

// A GPT with adapters in its attention, and its trainer.
class LoraRun {
 public:
  LoraRun(const Config& config, Communicator& communicator) : graph_("lora") {
    if (config.adapts) {
      for (models::GptBlock& block : model_.blocks) lora_.adapt(block.attention.qkv);
    }
    const auto loss = [&](Inputs& in) {
      return cross_entropy(model_(in.i64("x", {2, kContext})), in.i64("y", {2, kContext}));
    };
    graph_.train(optim::AdamW{.lr = 0.01}, loss);
    graph_.eval("validate", loss);
    if (config.adapts) {
      graph_.freeze("**");
      graph_.unfreeze("**.lora_A,**.lora_B");
    }
    graph_.config().zero.stage = config.stage;
    graph_.config().zero.bucket_bytes = 512;
    graph_.config().micro_batches = 6;
    graph_.config().dtype = config.dtype;
    graph_.config().round_frozen = config.rounds_frozen;
    made_ = make_trainer(graph_, communicator);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }
  int64_t num_parameters() const { return graph_.num_parameters(); }
  const nn::Lora& lora() const { return lora_; }

  StatusOr<float> Step() {
    return trainer().step([&](int64_t micro_batch) {
      Fill(trainer().steps_done() + micro_batch);
      return trainer().feed({{"x", x_}, {"y", y_}});
    });
  }
  StatusOr<float> EvalLoss() {
    Fill(3);
    ZG_RETURN_IF_ERROR(trainer().eval("validate", {{"x", x_}, {"y", y_}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> loss, trainer().result("validate"));
    return loss[0];
  }

 private:
  void Fill(int64_t number) {
    for (size_t i = 0; i < x_.size(); ++i) {
      x_[i] = static_cast<int64_t>(i * 5 + number * 3) % kVocabulary;
      y_[i] = (x_[i] + 1) % kVocabulary;
    }
  }

  models::Gpt model_{
      {.layers = 2, .heads = 2, .channels = 12, .context = kContext, .vocabulary = kVocabulary}};
  nn::Lora lora_{{.rank = kRank, .alpha = 6.0}};
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = InvalidArgument("not made");
  std::vector<int64_t> x_ = std::vector<int64_t>(2 * kContext);
  std::vector<int64_t> y_ = std::vector<int64_t>(2 * kContext);
};

Status OnRanks(int ranks, const std::function<Status(Communicator&)>& body) {
  RegisterAllOps();
  return RunRanks(ranks, body);
}

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::string state;
};

Result Train(const Config& config) {
  std::vector<Result> results(config.ranks);
  const Status status = OnRanks(config.ranks, [&](Communicator& communicator) -> Status {
    Result& result = results[communicator.rank()];
    LoraRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    for (int step = 0; step < 3; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, run.Step());
      result.losses.push_back(loss);
    }
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, run.trainer().digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, run.trainer().digest_optimizer_state());
    result.parameters = parameters.sha256;
    result.state = state.sha256;
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return results[0];
}

TEST(Lora, SameBitsAtEveryStageAndOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result one = Train({1, 0, dtype});
    EXPECT_LT(one.losses[2], one.losses[0]);
    for (const int ranks : {2, 3}) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        const Result other = Train({ranks, stage, dtype});
        EXPECT_EQ(other.losses, one.losses);
        EXPECT_EQ(other.parameters, one.parameters);
        EXPECT_EQ(other.state, one.state);
      }
    }
  }
}

// B begins as zeros, so the first loss is that of the model without adapters.
TEST(Lora, BeginsAsTheModelThatItAdapts) {
  EXPECT_EQ(Train({1, 0}).losses[0], Train({1, 0, DType::kF32, false}).losses[0]);
}

TEST(Lora, GradientsAndStateAreThoseOfTheAdaptersAlone) {
  const Status status = OnRanks(2, [&](Communicator& communicator) -> Status {
    LoraRun run({2, 3}, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.Step().status());
    const int64_t adapter_elements = 2 * (kRank * 12 + 3 * 12 * kRank);  // blocks x (A + B)
    const auto of = [&](MemoryCategory category) { return static_cast<size_t>(category); };
    const CategoryBytes planned = run.trainer().program().memory.category_bytes;
    const CategoryBytes measured = run.trainer().executor().meter().category_bytes();
    // Half of each bucket is on each rank; buckets are padded to 64 bytes times the ranks.
    const int64_t part = adapter_elements / 2 * 4;
    EXPECT_GE(planned[of(MemoryCategory::kOptimizerState)], 2 * part);
    EXPECT_LE(planned[of(MemoryCategory::kOptimizerState)], 2 * (part + 4 * 64));
    EXPECT_LE(planned[of(MemoryCategory::kGradients)], part + 4 * 64);
    EXPECT_EQ(measured, planned);
    // A rank also has its half of the frozen weights; buckets of 512 bytes lose some of it to
    // padding.
    const int64_t whole = 4 * run.num_parameters();
    EXPECT_GE(planned[of(MemoryCategory::kParameters)], whole / 2);
    EXPECT_LE(planned[of(MemoryCategory::kParameters)], whole * 3 / 5);
    for (const ir::StoredTensor* tensor :
         TensorsByName(run.trainer().executor().graph(), TensorRole::kOptimizerState)) {
      EXPECT_THAT(tensor->name, HasSubstr(".attention.qkv.lora_"));
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// In 16 bits only activations are kept from forward to backward, and no copies of the weights.
TEST(Lora, KeepsNoCopiesOfFrozenWeights) {
  const auto activations = [](bool adapts) {
    int64_t bytes = 0;
    const Status status = OnRanks(1, [&](Communicator& communicator) -> Status {
      LoraRun run({1, 0, DType::kBF16, adapts}, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      const CategoryBytes planned = run.trainer().program().memory.category_bytes;
      bytes = planned[static_cast<size_t>(MemoryCategory::kActivations)];
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return bytes;
  };
  EXPECT_LT(activations(true), activations(false) + 3 * 512);  // occasionally a bucket's copy
}

TEST(Lora, RoundedFrozenWeightsTakeHalfTheMemoryWithTheSameResults) {
  const auto parameter_bytes = [](const Config& config) {
    int64_t bytes = 0;
    const Status status = OnRanks(config.ranks, [&](Communicator& communicator) -> Status {
      LoraRun run(config, communicator);
      ZG_RETURN_IF_ERROR(run.status());
      ZG_RETURN_IF_ERROR(run.Step().status());
      const CategoryBytes planned = run.trainer().program().memory.category_bytes;
      EXPECT_EQ(run.trainer().executor().meter().category_bytes(), planned);
      if (communicator.rank() == 0)
        bytes = planned[static_cast<size_t>(MemoryCategory::kParameters)];
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return bytes;
  };
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Result expected = Train({1, 0, dtype});
    for (const int ranks : {1, 2, 3}) {
      for (const int stage : {0, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        Config config = {ranks, stage, dtype};
        config.rounds_frozen = true;
        const Result got = Train(config);
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.state, expected.state);
        // Norms are read in f32, and adapters have masters.
        EXPECT_LT(parameter_bytes(config), 0.65 * parameter_bytes({ranks, stage, dtype}));
      }
    }
  }
}

// Training continues from the rounded values.
TEST(Lora, RoundedWeightsCanBeUnfrozen) {
  const Status status = OnRanks(2, [&](Communicator& communicator) -> Status {
    Config config = {2, 3, DType::kBF16};
    config.rounds_frozen = true;
    LoraRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.status());
    ZG_RETURN_IF_ERROR(run.Step().status());
    ZG_ASSIGN_OR_RETURN(const TensorDigest frozen, run.trainer().digest_parameters());
    ZG_RETURN_IF_ERROR(run.trainer().unfreeze("**"));
    ZG_ASSIGN_OR_RETURN(const TensorDigest unfrozen, run.trainer().digest_parameters());
    EXPECT_EQ(unfrozen.sum, frozen.sum);
    for (const ir::StoredTensor* tensor :
         TensorsByName(run.trainer().executor().graph(), TensorRole::kParameter)) {
      EXPECT_EQ(tensor->type.dtype, DType::kF32) << tensor->name;
    }
    ZG_RETURN_IF_ERROR(run.Step().status());
    ZG_ASSIGN_OR_RETURN(const TensorDigest trained, run.trainer().digest_parameters());
    if (communicator.rank() == 0) {
      EXPECT_NE(trained.sum, frozen.sum);
    }
    return run.trainer().freeze("blocks.0.*");  // and are rounded again
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Lora, NothingIsRoundedInF32) {
  Config config = {1, 0, DType::kF32};
  config.rounds_frozen = true;
  const Status status = OnRanks(
      1, [&](Communicator& communicator) { return LoraRun(config, communicator).status(); });
  EXPECT_THAT(
      status.message(),
      HasSubstr("round_frozen: the graph computes in f32, so that there is nothing to round "
                "parameters to; set dtype to bf16 or f16"));
}

TEST(Lora, FilesAreThoseOfPeft) {
  const std::string directory = ::testing::TempDir() + "/adapters";
  std::filesystem::remove_all(directory);
  float trained_loss = 0;
  ASSERT_TRUE(OnRanks(2, [&](Communicator& communicator) -> Status {
                LoraRun run({2, 3}, communicator);
                ZG_RETURN_IF_ERROR(run.status());
                for (int step = 0; step < 3; ++step) ZG_RETURN_IF_ERROR(run.Step().status());
                ZG_ASSIGN_OR_RETURN(const float loss, run.EvalLoss());
                if (communicator.rank() == 0) trained_loss = loss;
                return save_lora(run.trainer(), run.lora(), directory);
              }).ok());

  const auto file = SafetensorsFile::Open(directory + "/adapter_model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : file->entries()) names.push_back(entry.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"base_model.model.blocks.0.attention.qkv.lora_A.weight",
                                      "base_model.model.blocks.0.attention.qkv.lora_B.weight",
                                      "base_model.model.blocks.1.attention.qkv.lora_A.weight",
                                      "base_model.model.blocks.1.attention.qkv.lora_B.weight"}));
  std::stringstream config;
  config << std::ifstream(directory + "/adapter_config.json").rdbuf();
  EXPECT_THAT(config.str(), HasSubstr("\"peft_type\": \"LORA\""));
  EXPECT_THAT(config.str(), HasSubstr("\"r\": 2"));
  EXPECT_THAT(config.str(), HasSubstr("\"lora_alpha\": 6.0"));

  ASSERT_TRUE(OnRanks(3, [&](Communicator& communicator) -> Status {
                LoraRun run({3, 1}, communicator);
                ZG_RETURN_IF_ERROR(run.status());
                ZG_RETURN_IF_ERROR(load_lora(run.trainer(), run.lora(), directory));
                ZG_ASSIGN_OR_RETURN(const float loss, run.EvalLoss());
                EXPECT_EQ(loss, trained_loss);
                return Status::Ok();
              }).ok());

  const auto error = [&] {
    return OnRanks(2,
                   [&](Communicator& communicator) -> Status {
                     LoraRun run({2, 0}, communicator);
                     ZG_RETURN_IF_ERROR(run.status());
                     return load_lora(run.trainer(), run.lora(), directory);
                   })
        .message();
  };
  std::string other = config.str();
  other.replace(other.find("\"r\": 2"), 6, "\"r\": 4");
  std::ofstream(directory + "/adapter_config.json") << other;
  EXPECT_THAT(error(), HasSubstr("\"r\": got 4, expected 2, as nn::LoraOptions say"));
  const auto error_with = [&](const std::string& field) {
    std::ofstream(directory + "/adapter_config.json")
        << "{" << field << ", " << config.str().substr(1);
    return error();
  };
  for (const char* field : {R"("alpha_pattern": {})", R"("use_dora": false)",
                            R"("layer_replication": null)", R"("init_lora_weights": true)",
                            R"("init_lora_weights": "gaussian")", R"("revision": "main")"}) {
    EXPECT_EQ(error_with(field), "") << field;
  }
  for (const char* field :
       {R"("alpha_pattern": {"attention.qkv":8})", R"("use_dora": true)", R"("use_rslora": true)",
        R"("layer_replication": [[0,2]])", R"("alora_invocation_tokens": [1,2])",
        R"("of_a_later_version": 0.5)"}) {
    EXPECT_THAT(error_with(field), HasSubstr("expected plain LoRA of one rank and alpha")) << field;
  }
  EXPECT_THAT(error_with(R"("init_lora_weights": "pissa")"),
              HasSubstr("\"init_lora_weights\": got \"pissa\", expected plain LoRA of one rank and "
                        "alpha, without this field or with true"));
  std::ofstream(directory + "/adapter_config.json") << "{\"peft_type\": \"IA3\"}";
  EXPECT_THAT(error(), HasSubstr("\"peft_type\": got \"IA3\", expected \"LORA\""));
  std::ofstream(directory + "/adapter_config.json") << config.str();  // for check_lora_with_peft.py
}

}  // namespace
}  // namespace zg
