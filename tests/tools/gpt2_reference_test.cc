// A Hugging Face GPT-2 made by PyTorch (tests/reference/make_gpt2.py) computes the same logits
// here, and trained weights are exported the same way, at any stage.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "models/gpt/model.h"
#include "tests/io/test_file.h"
#include "tests/tools/weight_files.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"
#include "tools/checkpoint/commands.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::checkpoint_tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kTolerance = 1e-4;  // of logits up to 4
constexpr char kReference[] = "tests/reference/gpt2.safetensors";

Json ReadReference() {
  std::ifstream file("tests/reference/gpt2.json");
  return Json::parse(file);
}

models::GptConfig ConfigOf(const Json& config) {
  return {config["n_layer"], config["n_head"], config["n_embd"], config["n_positions"],
          config["vocab_size"]};
}

// Logits (B, T, V) of the model whose first values are in the file.
StatusOr<std::vector<float>> Logits(const models::GptConfig& config, const std::string& init,
                                    const std::vector<int64_t>& tokens) {
  RegisterAllOps();
  models::Gpt model(config);
  Graph graph("gpt");
  const int64_t batch = static_cast<int64_t>(tokens.size()) / config.context;
  graph.eval("logits", [&](Inputs& in) { return model(in.i64("x", {batch, config.context})); });
  InProcessGroup group(1);
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, make_trainer(graph, group.communicator(0)));
  ZG_RETURN_IF_ERROR(trainer->load_parameters(init));
  ZG_RETURN_IF_ERROR(trainer->eval("logits", {{"x", tokens}}));
  return trainer->result("logits");
}

TEST(Gpt2Reference, SameLogitsAsPyTorch) {
  const Json reference = ReadReference();
  std::vector<int64_t> tokens;
  for (const auto& sample : reference["tokens"]) {
    tokens.insert(tokens.end(), sample.begin(), sample.end());
  }
  const std::string init = TestPath("gpt2_init.safetensors");
  fs::remove(init);
  const StatusOr<std::string> converted = Convert({"gpt2", Side::kTheirs, kReference, init});
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  const StatusOr<std::vector<float>> logits = Logits(ConfigOf(reference["config"]), init, tokens);
  ASSERT_TRUE(logits.ok()) << logits.status().message();
  const std::vector<double> expected = reference["logits"];
  ASSERT_EQ(logits->size(), expected.size());
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs((*logits)[i] - expected[i]));
  }
  EXPECT_LT(largest, kTolerance);
  fs::remove(init);
}

// 16-bit files give the same initial values as an f32 file with the same numbers.
TEST(Gpt2Reference, SixteenBitInitialValues) {
  const Json reference = ReadReference();
  const models::GptConfig config = ConfigOf(reference["config"]);
  const std::vector<int64_t> tokens(config.context, 3);
  const std::string half = TestPath("gpt2_half.safetensors");
  const std::string widened = TestPath("gpt2_widened.safetensors");
  for (const SafetensorsDType dtype : {SafetensorsDType::kBF16, SafetensorsDType::kF16}) {
    ConvertOptions options = {"gpt2", Side::kTheirs, kReference, half, dtype};
    options.may_replace = true;
    ASSERT_TRUE(Convert(options).ok());
    testing::StoredTensors tensors = testing::ReadStored(half);
    for (auto& [name, tensor] : tensors) tensor = testing::Widened(tensor);
    testing::WriteStored(widened, tensors);
    const StatusOr<std::vector<float>> of_half = Logits(config, half, tokens);
    const StatusOr<std::vector<float>> of_widened = Logits(config, widened, tokens);
    ASSERT_TRUE(of_half.ok()) << of_half.status().message();
    ASSERT_TRUE(of_widened.ok());
    EXPECT_EQ(*of_half, *of_widened);
  }
  fs::remove(half);
  fs::remove(widened);
}

// The exported bytes do not depend on the stage that wrote the checkpoint.
TEST(Gpt2Reference, ExportsTheSameFromEveryStage) {
  const std::string root = TestPath("gpt2_export");
  fs::remove_all(root);
  fs::create_directory(root);
  std::string first_theirs;
  std::string first_export;
  for (int stage : {0, 1, 2, 3}) {
    testing::RunConfig run;
    run.model = testing::TestModel::kGpt;
    run.stage = stage;
    run.ranks = stage + 1;
    run.micro_batches = 12;
    run.steps = 2;
    run.save = root + "/saved" + std::to_string(stage);
    run.save_options.max_shard_bytes = 4000;
    testing::TrainOrDie(run);

    ConvertOptions options = {"gpt2", Side::kOurs, run.save, root + "/theirs"};
    options.heads = 2;
    options.may_replace = true;
    const StatusOr<std::string> converted = Convert(options);
    ASSERT_TRUE(converted.ok()) << converted.status().message();
    const std::string theirs = ReadTestFile(root + "/theirs/model.safetensors");
    if (stage == 0) first_theirs = theirs;
    EXPECT_TRUE(theirs == first_theirs);

    const StatusOr<std::string> exported =
        Export({run.save, root + "/exported", SafetensorsDType::kF32, true, true});
    ASSERT_TRUE(exported.ok()) << exported.status().message();
    const std::string file = ReadTestFile(root + "/exported");
    if (stage == 0) first_export = file;
    EXPECT_TRUE(file == first_export);
  }
  // The way back: the parameters of the export, without its metadata.
  ASSERT_TRUE(Convert({"gpt2", Side::kTheirs, root + "/theirs", root + "/back"}).ok());
  const testing::StoredTensors exported = testing::ReadStored(root + "/exported");
  for (const auto& [name, tensor] : testing::ReadStored(root + "/back")) {
    EXPECT_EQ(tensor.bytes, exported.at(name).bytes) << name;
    EXPECT_EQ(exported.count(name + ".exp_avg_sq"), 1u) << name;
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace zg::checkpoint_tool
