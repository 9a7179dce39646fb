// Large models of the ZeRO paper with model parallelism, from real graphs: those of figure 2, 10^12
// parameters on 1024 GPUs, and the theoretical half of table 2, the largest model whose states fit
// into 32 GB per GPU, for 1 to 16 GPUs of model parallelism on each of 64 data ranks. Model
// parallelism is the mesh axis tensor with the rules of models/gpt/tensor.placement and the
// embeddings by columns.
//
// Compiling all of them takes minutes: ZG_WHOLE_MATRIX=1 (many_paper_models_test) does, else a sample is
// compiled. ZG_PAPER_TABLE=1 prints the table.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "tests/testing/tensor_rules.h"
#include "tests/tools/model_state_bytes.h"
#include "tests/tools/planned_jobs.h"
#include "zero/memory_model.h"

namespace zg::plan {
namespace {

constexpr double kMemory = 32e9;
constexpr int kDataRanks = 64;  // the paper's N_d
constexpr const char* kStageNames[] = {"baseline", "Pos", "Pos+g", "Pos+g+p"};

// A layer more or less is up to 1 %.
constexpr double kTolerance = 0.01;
// Norms, biases of rows and positions are whole on every rank along tensor.
constexpr double kWholeTolerance = 0.03;

// In billions of parameters, as the paper prints them.
constexpr double kPaper[5][4] = {{2, 7.6, 14.4, 128},
                                 {4, 15.2, 28.8, 256},
                                 {8, 30.4, 57.6, 500},
                                 {16, 60.8, 115.2, 1000},
                                 {32, 121.6, 230.4, 2000}};

double TheLargest(int stage, int tensor) {
  const auto of_one = zero::PredictModelStates({1, kDataRanks, stage});
  return kMemory * tensor / of_one->total();
}

// About a hundred layers and more, so that one of them is little.
PlanOptions OptionsFor(double num_parameters, int stage, int tensor) {
  PlanOptions options;
  const double channels = std::sqrt(num_parameters / 12 / 128);
  options.channels = 1024 * std::max<int64_t>(1, std::llround(channels / 1024));
  options.heads = options.channels / 64;
  options.context = 1024;
  options.vocabulary = 50304;  // 50257, to a multiple of 128, as Megatron-LM pads it
  options.batch = 1;
  options.ranks = kDataRanks * tensor;
  options.compile.micro_batches = kDataRanks;
  options.compile.dtype = DType::kBF16;
  options.compile.zero.stage = stage;
  options.compile.mesh = {{"data", kDataRanks}, {"tensor", tensor}};
  if (tensor > 1) {
    options.compile.placement = testing::GptTensorRules();
    options.compile.placement.push_back({"token_embedding", "tensor", Sbp::S(1)});
  }
  return options;
}

JobPlan PlanOfLayers(PlanOptions options, int64_t layers) {
  options.layers = layers;
  return PlanOrDie(options);
}

bool IsWhole() { return std::getenv("ZG_WHOLE_MATRIX") != nullptr; }

// Rows and stages; of a sample each row and each stage.
std::vector<std::tuple<int, int>> Cells() {
  std::vector<std::tuple<int, int>> cells;
  for (int row = 0; row < 5; ++row) {
    for (int stage = 0; stage < 4; ++stage) {
      if (IsWhole() || row % 4 == stage) cells.emplace_back(row, stage);
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
  if (std::getenv("ZG_PAPER_TABLE") == nullptr) return;
  fmt::print(
      "MP {:2} {:8}: paper {:g}B, formula {:.1f}B, graph {:.1f}B ({} layers of {}; {:.2f} GB)\n",
      tensor, kStageNames[stage], kPaper[row][stage], expected / 1e9,
      static_cast<double>(largest.num_parameters) / 1e9, layers, options.channels,
      ModelStateBytesOf(largest) / 1e9);
}

// The models of figure 2, on 400 GPUs with Pos+g.
struct FigureModel {
  double billions;
  int tensor;
  int64_t layers, channels, heads;
};

class PaperFigure2Test : public ::testing::TestWithParam<FigureModel> {};

std::vector<FigureModel> FigureModels() {
  const std::vector<FigureModel> sample = {
      {1.5, 1, 48, 1600, 16}, {40, 4, 88, 6144, 32}, {170, 16, 212, 8192, 64}};
  std::vector<FigureModel> all = {{8, 4, 72, 3072, 24},     {60, 16, 132, 6144, 32},
                                  {80, 16, 100, 8192, 64},  {100, 16, 125, 8192, 64},
                                  {120, 16, 150, 8192, 64}, {140, 16, 175, 8192, 64}};
  all.insert(all.end(), sample.begin(), sample.end());
  return IsWhole() ? all : sample;
}

INSTANTIATE_TEST_SUITE_P(Figure2, PaperFigure2Test, ::testing::ValuesIn(FigureModels()),
                         [](const auto& info) {
                           return fmt::format("{:.0f}M", info.param.billions * 1e3);
                         });

TEST_P(PaperFigure2Test, FitsInto32GB) {
  const FigureModel& model = GetParam();
  PlanOptions options = OptionsFor(1e9, /*stage=*/2, model.tensor);
  options.channels = model.channels;
  options.heads = model.heads;
  const int data_ranks = 400 / model.tensor;
  options.ranks = 400;
  options.compile.micro_batches = data_ranks;
  options.compile.mesh[0].size = data_ranks;
  const JobPlan plan = PlanOfLayers(options, model.layers);
  const auto num_parameters = static_cast<double>(plan.num_parameters);
  EXPECT_NEAR(num_parameters / (model.billions * 1e9), 1, 0.05);
  const auto of_one = zero::PredictModelStates({num_parameters / model.tensor, data_ranks, 2});
  EXPECT_NEAR(ModelStateBytesOf(plan) / of_one->total(), 1, kWholeTolerance);
  EXPECT_LT(ModelStateBytesOf(plan), kMemory);
  if (std::getenv("ZG_PAPER_TABLE") == nullptr) return;
  fmt::print("figure 2, {:g}B on MP {} x DP {}: states {:.1f} GB per rank, formula {:.1f} GB\n",
             model.billions, model.tensor, data_ranks, ModelStateBytesOf(plan) / 1e9,
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
  if (std::getenv("ZG_PAPER_TABLE") == nullptr) return;
  fmt::print("1T on MP 16 x DP 64: states {:.2f} GB per rank\n", ModelStateBytesOf(plan) / 1e9);
}

}  // namespace
}  // namespace zg::plan
