// What phases of a training cannot be, and the messages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "tests/zero/phased_run.h"
#include "tests/zero/trainer_run.h"

namespace zg::testing {
namespace {

using ::testing::HasSubstr;

constexpr auto& ErrorOf = ErrorOfRun<PhasedRun, PhasedConfig>;

TEST(PhaseErrors, OfSteps) {
  const auto nothing = [](PhasedRun&, int) { return Status::Ok(); };
  EXPECT_EQ(ErrorOf(1, {}, [](PhasedRun& run, int) { return run.trainer().set_phase("rest"); }),
            "set_phase: got phase 'rest', but the graph has phase 'both', phase 'rebuild', phase "
            "'classify'");
  PhasedConfig config;
  config.only = "both";
  EXPECT_EQ(ErrorOf(1, config, [](PhasedRun& run, int) { return run.trainer().set_phase("both"); }),
            "set_phase: got phase 'both', but the graph has one training function; give several to "
            "Graph::train");
  EXPECT_EQ(
      ErrorOf(1, {0, DType::kF16}, nothing),
      "graph phased: with dtype f16 all parameter groups share one count of updates, and phases "
      "update some of them; leave it out");
  EXPECT_EQ(ErrorOf(1, {},
                    [](PhasedRun& run, int) -> Status {
                      ZG_RETURN_IF_ERROR(run.trainer().set_phase("classify"));
                      const auto feed = [](int64_t) { return Status::Ok(); };
                      return run.trainer().step_groups({"autoencoder"}, feed).status();
                    }),
            "step_groups: got 'autoencoder', which phase 'classify' does not train");
  EXPECT_THAT(ErrorOf(1, {},
                      [](PhasedRun& run, int) -> Status {
                        ZG_RETURN_IF_ERROR(run.trainer().set_phase("rebuild"));
                        const std::vector<float> x(kFew * kInputs);
                        const auto feed = [&](int64_t) { return run.trainer().feed({{"x", x}}); };
                        return run.trainer().step(feed).status();
                      }),
              HasSubstr("on this rank in phase 'rebuild' (Trainer::set_phase)"));
  EXPECT_EQ(ErrorOf(1, {},
                    [](PhasedRun& run, int) -> Status {
                      ZG_RETURN_IF_ERROR(run.trainer().set_phase("rebuild"));
                      const std::vector<float> z(1);
                      const auto feed = [&](int64_t) { return run.trainer().feed({{"z", z}}); };
                      return run.trainer().step(feed).status();
                    }),
            "graph phased, phase 'rebuild': it has no input \"z\"; it has x");
  EXPECT_THAT(ErrorOf(2, {},
                      [](PhasedRun& run, int rank) {
                        return run.Step(rank == 0 ? "rebuild" : "classify").status();
                      }),
              HasSubstr("in phase 'classify' on rank 1"));
}

// Errors of the graph itself.
std::string GraphError(const std::vector<Phase>& phases) {
  Graph graph("g");
  graph.train(optim::Sgd{0.1}, phases);
  if (!graph.status().ok()) return graph.status().message();
  const auto results = TryOnRanks<int>(1, [&](Communicator& communicator, int*) {
    return make_trainer(graph, communicator).status();
  });
  return results.ok() ? "no error" : results.status().message();
}

TEST(PhaseErrors, OfGraphs) {
  struct Two : nn::Module {
    nn::Linear a{this, "a", 2, 2}, b{this, "b", 2, 2};
  } two;
  const Phase all = {"all", [&](Inputs& in) { return mean(two.b(two.a(in.f32("x", {1, 2})))); }};
  const Phase of_a = {"of_a", [&](Inputs& in) { return mean(two.a(in.f32("x", {1, 2}))); }};
  EXPECT_EQ(GraphError({all}), "graph g, train: phases: got 1, expected at least 2");
  EXPECT_EQ(GraphError({all, all}),
            "graph g, train: phases: got 'all' twice, expected different names");
  EXPECT_THAT(GraphError({all, {"a b", all.build}}), HasSubstr("phase"));
  EXPECT_THAT(GraphError({all, {"empty", {}}}),
              HasSubstr("graph g, train: phase 'empty': got an empty function"));
  EXPECT_EQ(GraphError({all, of_a}),
            "graph g: phase 'of_a' trains 'a.bias' and not 'b.bias', which are in one parameter "
            "group; give those that a phase trains groups of their own: "
            "graph.add_parameter_group({\"name\", \"patterns\"})");
  EXPECT_THAT(GraphError({all, {"none", [&](Inputs& in) { return mean(in.f32("x", {1})); }}}),
              HasSubstr("phase 'none': graph g: the loss %"));
}

}  // namespace
}  // namespace zg::testing
