// The plan of a graph with several sizes, or several phases: what each of them needs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/plan/json_report.h"
#include "framework/plan/text_report.h"
#include "framework/runtime/plan_program.h"
#include "zero/zerograph/plan_graph.h"

namespace zg {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Model : nn::Module {
  nn::Linear small{this, "small", 8, 8}, large{this, "large", 8, 512};
};

plan::PlanReport PlanOf(const std::function<void(Graph& graph, Model& model)>& train) {
  Model model;
  Graph graph("g");
  train(graph, model);
  const auto report =
      plan_graph(graph, Mesh::DataParallel(2), CompileOptions(), TargetOf(CpuKernels()));
  EXPECT_TRUE(report.ok()) << report.status().message();
  return *report;
}

TEST(PlanVariants, Sizes) {
  const plan::PlanReport report = PlanOf([](Graph& graph, Model& model) {
    graph.train(optim::Sgd{0.1}, {4, 16}, [&](Inputs& in, int64_t size) {
      return mean(model.small(in.f32("x", {size, 8})));
    });
  });
  EXPECT_THAT(plan::TextReport(report), HasSubstr("everything else here is of size 16\n"));
  const Json sizes = Json::parse(plan::JsonReport(report))["sizes"];
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0]["size"], 4);
  EXPECT_EQ(sizes[1]["size"], 16);
  EXPECT_LT(sizes[0]["peak"], sizes[1]["peak"]);
  EXPECT_EQ(sizes[1]["peak"], report.plan.peak_bytes);
}

// The first one is not the one that needs most.
TEST(PlanVariants, Phases) {
  const plan::PlanReport report = PlanOf([](Graph& graph, Model& model) {
    graph.train(optim::Sgd{0.1}, {{"first",
                                   [&](Inputs& in) {
                                     return mean(model.small(in.f32("x", {4, 8})));
                                   }},
                                  {"second", [&](Inputs& in) {
                                     return mean(model.large(in.f32("x", {64, 8})));
                                   }}});
    graph.add_parameter_group({"large", "large.**"});
  });
  const std::string text = plan::TextReport(report);
  EXPECT_THAT(text, ContainsRegex("phase +peak"));
  EXPECT_THAT(text, HasSubstr("everything else here is of phase 'first'\n"));
  const Json phases = Json::parse(plan::JsonReport(report))["phases"];
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0]["phase"], "second");
  EXPECT_EQ(phases[1]["phase"], "first");
  EXPECT_GT(phases[0]["peak"], phases[1]["peak"]);
  EXPECT_GT(phases[0]["flops_per_step"], phases[1]["flops_per_step"]);
  EXPECT_EQ(phases[0]["peak"], report.plan.peak_bytes);
  EXPECT_GE(report.plan.ratio(), 1.0);
}

}  // namespace
}  // namespace zg
