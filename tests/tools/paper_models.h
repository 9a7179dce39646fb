// The jobs of the ZeRO paper's figures and tables with model parallelism, as plans of real GPTs: model
// parallelism is the mesh axis tensor.
//
// Compiling all of them takes minutes: ZG_WHOLE_MATRIX=1 (many_paper_models_test) does it,
// otherwise a sample is compiled. ZG_PAPER_TABLE=1 prints the tables.
#pragma once

#include <cstdlib>
#include <vector>

#include "tests/testing/tensor_rules.h"
#include "tests/tools/planned_jobs.h"

namespace zg::plan {

inline bool IsWholeMatrix() { return std::getenv("ZG_WHOLE_MATRIX") != nullptr; }
inline bool PrintsTable() { return std::getenv("ZG_PAPER_TABLE") != nullptr; }

// The models of figure 2, on 400 GPUs.
struct FigureModel {
  double billions;
  int tensor;  // the paper's MP
  int64_t layers, channels, heads;

  int data_ranks() const { return 400 / tensor; }
};

inline std::vector<FigureModel> FigureModels() {
  const std::vector<FigureModel> sample = {
      {1.5, 1, 48, 1600, 16}, {40, 4, 88, 6144, 32}, {170, 16, 212, 8192, 64}};
  std::vector<FigureModel> all = {{8, 4, 72, 3072, 24},     {60, 16, 132, 6144, 32},
                                  {80, 16, 100, 8192, 64},  {100, 16, 125, 8192, 64},
                                  {120, 16, 150, 8192, 64}, {140, 16, 175, 8192, 64}};
  all.insert(all.end(), sample.begin(), sample.end());
  return IsWholeMatrix() ? all : sample;
}

// Without layers, channels, heads and rules.
inline PlanOptions PaperOptions(int data_ranks, int tensor, int stage) {
  PlanOptions options;
  options.context = 1024;
  options.vocabulary = 50304;  // 50257 rounded up to a multiple of 128, as in Megatron-LM
  options.batch = 1;
  options.ranks = data_ranks * tensor;
  options.compile.micro_batches = data_ranks;
  options.compile.dtype = DType::kBF16;
  options.compile.zero.stage = stage;
  options.compile.mesh = {{"data", data_ranks}, {"tensor", tensor}};
  return options;
}

}  // namespace zg::plan
