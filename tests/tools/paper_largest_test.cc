// Large models of the ZeRO paper with model parallelism, from real graphs: those of figure 2, 10^12
// parameters on 1024 GPUs, and the theoretical half of table 2, the largest model whose states fit
// into 32 GB per GPU, for 1 to 16 GPUs of model parallelism on each of 64 data ranks. Model
// parallelism is the mesh axis tensor with the rules of models/gpt/tensor.placement and the
// embeddings by columns.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "tests/testing/tensor_rules.h"
#include "tests/tools/model_state_bytes.h"
#include "tests/tools/paper_models.h"
#include "zero/memory_model.h"

namespace zg::plan {
namespace {

constexpr double kMemory = 32e9;
constexpr int kDataRanks = 64;  // the paper's N_d
constexpr const char* kStageNames[] = {"baseline", "Pos", "Pos+g", "Pos+g+p"};

// One layer more or less is up to 1 %.
constexpr double kTolerance = 0.01;
// Norms, biases of rows and positions are whole on every rank along tensor.
constexpr double kWholeTolerance = 0.03;

// In billions of parameters, as the paper prints them.
constexpr double kPaper[5][4] = {{2, 7.6, 14.4, 128},
                                 {4, 15.2, 28.8, 256},
                                 {8, 30.4, 57.6, 500},
                                 {16, 60.8, 115.2, 1000},
                                 {32, 121.6, 230.4, 2000}};

std::vector<PlacementRule> Rules() {
  std::vector<PlacementRule> rules = testing::GptTensorRules();
  rules.push_back({"token_embedding", "tensor", Sbp::S(1)});
  return rules;
}

double TheLargest(int stage, int tensor) {
  const auto of_one = zero::PredictModelStates({1, kDataRanks, stage});
  return kMemory * tensor / of_one->total();
}

// About a hundred layers or more, so that one of them makes little difference.
PlanOptions OptionsFor(double num_parameters, int stage, int tensor) {
  PlanOptions options = PaperOptions(kDataRanks, tensor, stage);
  const double channels = std::sqrt(num_parameters / 12 / 128);
  options.channels = 1024 * std::max<int64_t>(1, std::llround(channels / 1024));
  options.heads = options.channels / 64;
  if (tensor > 1) options.compile.placement = Rules();
  return options;
}

JobPlan PlanOfLayers(PlanOptions options, int64_t layers) {
  options.layers = layers;
  return PlanOrDie(options);
}

// Rows and stages; a sample has each row and each stage once.
std::vector<std::tuple<int, int>> Cells() {
  std::vector<std::tuple<int, int>> cells;
  for (int row = 0; row < 5; ++row) {
    for (int stage = 0; stage < 4; ++stage) {
      if (IsWholeMatrix() || row % 4 == stage) cells.emplace_back(row, stage);
    }
  }
  return cells;
}

class PaperLargestTest : public ::testing::TestWithParam<std::tuple<int, int>> {};

INSTANTIATE_TEST_SUITE_P(Table2, PaperLargestTest, ::testing::ValuesIn(Cells()),
                         [](const auto& info) {
                           return fmt::format("mp{}_stage{}", 1 << std::get<0>(info.param),
                                              std::get<1>(info.param));
                         });

TEST_P(PaperLargestTest, IsWhatTheFormulasSay) {
  const auto [row, stage] = GetParam();
  const int tensor = 1 << row;
  const double expected = TheLargest(stage, tensor);
  EXPECT_NEAR(expected / (kPaper[row][stage] * 1e9), 1, 0.025) << "500, 1000, 2000 are rounded";
  const PlanOptions options = OptionsFor(expected, stage, tensor);
  const double four = ModelStateBytesOf(PlanOfLayers(options, 4));
  const double per_layer = (ModelStateBytesOf(PlanOfLayers(options, 8)) - four) / 4;
  auto layers = static_cast<int64_t>((kMemory - four) / per_layer) + 4;
  JobPlan largest = PlanOfLayers(options, layers);
  while (ModelStateBytesOf(largest) > kMemory) largest = PlanOfLayers(options, --layers);
  EXPECT_GT(ModelStateBytesOf(PlanOfLayers(options, layers + 1)), kMemory);
  EXPECT_NEAR(static_cast<double>(largest.num_parameters) / expected, 1, kTolerance);
  if (!PrintsTable()) return;
  fmt::print(
      "MP {:2} {:8}: paper {:g}B, formula {:.1f}B, graph {:.1f}B ({} layers of {}; {:.2f} GB)\n",
      tensor, kStageNames[stage], kPaper[row][stage], expected / 1e9,
      static_cast<double>(largest.num_parameters) / 1e9, layers, options.channels,
      ModelStateBytesOf(largest) / 1e9);
}

// With Pos+g.
class PaperFigure2Test : public ::testing::TestWithParam<FigureModel> {};

INSTANTIATE_TEST_SUITE_P(Figure2, PaperFigure2Test, ::testing::ValuesIn(FigureModels()),
                         [](const auto& info) {
                           return fmt::format("{:.0f}M", info.param.billions * 1e3);
                         });

TEST_P(PaperFigure2Test, FitsInto32GB) {
  const FigureModel& model = GetParam();
  PlanOptions options = PaperOptions(model.data_ranks(), model.tensor, /*stage=*/2);
  options.channels = model.channels;
  options.heads = model.heads;
  if (model.tensor > 1) options.compile.placement = Rules();
  const JobPlan plan = PlanOfLayers(options, model.layers);
  const auto num_parameters = static_cast<double>(plan.num_parameters);
  EXPECT_NEAR(num_parameters / (model.billions * 1e9), 1, 0.05);
  const auto of_one =
      zero::PredictModelStates({num_parameters / model.tensor, model.data_ranks(), 2});
  EXPECT_NEAR(ModelStateBytesOf(plan) / of_one->total(), 1, kWholeTolerance);
  EXPECT_LT(ModelStateBytesOf(plan), kMemory);
  if (!PrintsTable()) return;
  fmt::print("figure 2, {:g}B on MP {} x DP {}: states {:.1f} GB per rank, formula {:.1f} GB\n",
             model.billions, model.tensor, model.data_ranks(), ModelStateBytesOf(plan) / 1e9,
             of_one->total() / 1e9);
}

// Section 9: 16 x 64 GPUs hold the states of 10^12 parameters, 15.6 GB each.
TEST(PaperTrillion, FitsOn16x64) {
  PlanOptions options = OptionsFor(1e12, /*stage=*/3, /*tensor=*/16);
  options.channels = 25600;
  options.heads = 160;
  const JobPlan plan = PlanOfLayers(options, 127);
  EXPECT_NEAR(static_cast<double>(plan.num_parameters) / 1e12, 1, 0.005);
  EXPECT_NEAR(ModelStateBytesOf(plan) / (16e12 / 1024), 1, kTolerance);
  if (!PrintsTable()) return;
  fmt::print("1T on MP 16 x DP 64: states {:.2f} GB per rank\n", ModelStateBytesOf(plan) / 1e9);
}

}  // namespace
}  // namespace zg::plan
