// Pa of the ZeRO paper (section 6.1): model parallelism keeps the input of every block for
// backward, and with Pa each of its ranks keeps an equal part. Here this is recomputed blocks plus
// rules that split the residual stream by parts of the sequence (models/gpt/tensor.placement). The
// test plans the models of figure 2 on 400 GPUs, with the paper's configurations C1 to C4: Pos and
// Pos+g, without and with Pa.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/tools/model_state_bytes.h"
#include "tests/tools/paper_models.h"

namespace zg::plan {
namespace {

std::vector<FigureModel> ParallelModels() {
  std::vector<FigureModel> models;
  for (const FigureModel& model : FigureModels()) {
    if (model.tensor > 1 && (IsWholeMatrix() || model.billions == 40)) models.push_back(model);
  }
  return models;
}

JobPlan PlanOf(const FigureModel& model, int stage, bool partitions, int64_t batch) {
  PlanOptions options = PaperOptions(model.data_ranks(), model.tensor, stage);
  options.layers = model.layers;
  options.channels = model.channels;
  options.heads = model.heads;
  options.batch = batch;
  options.compile.recompute = {"blocks.*"};
  std::vector<PlacementRule>& rules = options.compile.placement;
  rules = testing::GptTensorRules();
  rules.push_back({"token_embedding", "tensor", Sbp::S(0)});
  if (partitions) {
    for (const char* module : {"token_embedding", "blocks.*.attention", "blocks.*.mlp"}) {
      rules.push_back({module, "tensor", Sbp::S(1), PlacementRule::Of::kResults});
    }
  }
  return PlanOrDie(options);
}

// The inputs of the blocks, of the last norm and of the head, in 16 bits.
double KeptInputs(const FigureModel& model, int64_t batch) {
  return 2.0 * static_cast<double>((model.layers + 2) * batch * 1024 * model.channels);
}

double GB(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

class PaperActivationsTest : public ::testing::TestWithParam<FigureModel> {};

INSTANTIATE_TEST_SUITE_P(Figure2, PaperActivationsTest, ::testing::ValuesIn(ParallelModels()),
                         [](const auto& info) { return fmt::format("{}B", info.param.billions); });

TEST_P(PaperActivationsTest, AreDividedByModelParallelism) {
  const FigureModel& model = GetParam();
  constexpr int64_t kBatch = 8;
  const double saved = KeptInputs(model, kBatch) * (1 - 1.0 / model.tensor);
  const std::vector<int> stages = IsWholeMatrix() ? std::vector<int>{1, 2} : std::vector<int>{2};
  std::vector<JobPlan> plans;  // C1, C2, C3, C4, or the last two
  for (const int stage : stages) {
    SCOPED_TRACE(fmt::format("stage {}", stage));
    const JobPlan whole = PlanOf(model, stage, /*partitions=*/false, kBatch);
    const JobPlan parts = PlanOf(model, stage, /*partitions=*/true, kBatch);
    EXPECT_NEAR(static_cast<double>(whole.kept_bytes - parts.kept_bytes) / saved, 1, 1e-3);
    EXPECT_EQ(ModelStateBytesOf(parts), ModelStateBytesOf(whole));
    const auto saved_at_peak = static_cast<double>(whole.peak_bytes - parts.peak_bytes);
    EXPECT_GT(saved_at_peak, 0);
    // With all gradients whole, the peak is at the end of backward, where nothing is kept.
    if (stage == 2) {
      EXPECT_NEAR(saved_at_peak / saved, 1, 0.02);
    }
    plans.push_back(whole);
    plans.push_back(parts);
  }
  if (!PrintsTable()) return;
  const JobPlan &whole = plans[plans.size() - 2], &parts = plans.back();
  fmt::print(
      "{:g}B, MP {} x DP {}, 8 texts: states with Pos+g {:.1f} GB, kept {:.1f} GB, with Pa {:.1f} "
      "GB; peaks",
      model.billions, model.tensor, model.data_ranks(), ModelStateBytesOf(parts) / 1e9,
      GB(whole.kept_bytes), GB(parts.kept_bytes));
  for (size_t i = 0; i < plans.size(); ++i) {
    fmt::print(" C{} {:.1f} GB", 5 - plans.size() + i, GB(plans[i].peak_bytes));
  }
  fmt::print("\n");
}

// Section 6.1: 100B parameters, a batch of 32 and 16 GPUs of model parallelism. The paper's 33 and
// 2 GB count one byte per element; in 16 bits it is twice that.
TEST(PaperActivations, OfTheExample) {
  const FigureModel model = {100, 16, 125, 8192, 64};
  const JobPlan whole = PlanOf(model, /*stage=*/2, /*partitions=*/false, /*batch=*/32);
  const JobPlan parts = PlanOf(model, /*stage=*/2, /*partitions=*/true, /*batch=*/32);
  EXPECT_NEAR(GB(whole.kept_bytes) / 2, 33, 1.5);
  EXPECT_NEAR(GB(parts.kept_bytes) / 2, 2, 0.3);
  if (PrintsTable()) {
    fmt::print("100B, 32 texts: kept {:.1f} GB, with Pa {:.2f} GB\n", GB(whole.kept_bytes),
               GB(parts.kept_bytes));
  }
}

}  // namespace
}  // namespace zg::plan
