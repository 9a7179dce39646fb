// Every pass at its place in the pipeline, on random models: its output computes the same results
// (tests/testing/pass_check.h), obeys the verifier's rules, reads back as it was printed, and a
// second run changes nothing.
//
// Without arguments, it uses as many seeds as it takes for every pass to change 50 graphs; the
// output of a pass on further graphs is verified and read back, but not executed. Environment
// variables:
// Without arguments, as many seeds as it takes for every pass to change 50 graphs; what a pass makes
// of more graphs is verified and read back, but not executed. By environment:
//   ZG_RANDOM_GRAPHS=2000     another number than 50
//   ZG_RANDOM_GRAPHS_SEED=7   this seed only
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "framework/ir/op_registry.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/pass_registry.h"
#include "tests/testing/check_pipeline.h"
#include "tests/testing/pass_text.h"
#include "tests/testing/random_graph.h"
#include "tools/all_passes.h"

namespace zg::testing {
namespace {

int Environment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

// Every third model has ranks that share its micro-batches.
int TensorRanks(unsigned seed) { return seed % 3 == 0 ? 2 : 1; }

bool Trains(unsigned seed) { return seed % 4 != 1; }

// But one: without their updates, later steps compute something else. tests/zero/phases_test.cc compares
// them with programs that never had those updates.
std::set<std::string> PassesOf(const PassRegistry& registry) {
  std::set<std::string> names;
  for (const PassDef* pass : registry.All()) names.insert(pass->name);
  names.erase("drop-idle-updates");
  names.erase(
      "hoist-inputs");  // its program must run first, as in tests/zero/generation_inputs_test.cc
  return names;
}

class RandomGraphs : public ::testing::Test {
 protected:
  RandomGraphs() {
    RegisterAllOps();
    RegisterAllPasses(registry_);
  }
  PassRegistry registry_;
};

// A pass that never occurs in the pipelines would never have been tried often enough.
TEST_F(RandomGraphs, MeetAllPasses) {
  std::set<std::string> missing = PassesOf(registry_);
  for (unsigned seed = 1; seed <= 200; ++seed) {
    RandomModelOptions options;
    options.seed = seed;
    options.tensor_ranks = TensorRanks(seed);
    options.trains = Trains(seed);
    for (const std::string& text : MakeRandomPipeline(options)) {
      missing.erase(PassName(text));
    }
  }
  EXPECT_EQ(missing, std::set<std::string>()) << "add them to tests/testing/random_graph.cc";
}

TEST_F(RandomGraphs, ComputeTheSameAfterEveryPass) {
  const int only_seed = Environment("ZG_RANDOM_GRAPHS_SEED", 0);
  const int wanted = Environment("ZG_RANDOM_GRAPHS", 50);
  // Shards of a large run use different seeds.
  const int shard = Environment("TEST_SHARD_INDEX", 0);
  const int num_shards = Environment("TEST_TOTAL_SHARDS", 1);
  if (const char* const file = std::getenv("TEST_SHARD_STATUS_FILE")) {
    std::fclose(std::fopen(file, "w"));
  }
  PassCounts counts;
  counts.wanted = (wanted + num_shards - 1) / num_shards;
  for (const std::string& pass : PassesOf(registry_)) counts.executed[pass] = 0;
  int failures = 0;
  int num_models = 0;
  const auto is_enough = [&] {
    return std::all_of(counts.executed.begin(), counts.executed.end(),
                       [&](const auto& pass) { return counts.IsEnough(pass.first); });
  };
  for (unsigned seed = only_seed != 0 ? only_seed : 1 + shard;
       failures < 3 && num_models < 40 * wanted &&
       (only_seed != 0 ? num_models == 0 : !is_enough());
       seed += num_shards) {
    ++num_models;
    for (int num_ranks : {1, 2, 3}) {
      RandomModelOptions options;
      options.seed = seed;
      options.num_ranks = num_ranks;
      options.tensor_ranks = TensorRanks(seed);
      options.percent_frozen = seed % 2 == 0 ? 30 : 0;
      options.trains = Trains(seed);
      std::string failure = CheckPipeline(options, registry_, &counts);
      if (failure.empty()) continue;
      ++failures;
      // The smallest model of the seed that fails.
      for (options.max_ops = 1; options.max_ops < 8; ++options.max_ops) {
        const std::string smaller = CheckPipeline(options, registry_, nullptr);
        if (smaller.empty()) continue;
        failure = smaller;
        break;
      }
      ADD_FAILURE() << "seed " << seed << ", " << num_ranks << " ranks, at most " << options.max_ops
                    << " ops: " << failure;
      break;
    }
  }
  fmt::print("{} models; graphs that changed and were executed, by pass:", num_models);
  for (const auto& [name, count] : counts.executed) fmt::print(" {} {}", name, count);
  fmt::print("\n");
  EXPECT_TRUE(only_seed != 0 || is_enough() || failures > 0)
      << "some passes change hardly any of the models";
}

TEST_F(RandomGraphs, HaveAllDifferentiableOps) {
  std::set<std::string> missing;
  for (const ir::OpDef* op : ir::OpRegistry::Global().All()) {
    // Those with statistics are gradients; gradients_test differentiates them in models.
    if (op->gradient != nullptr && op->traits.f32_inputs.empty()) missing.insert(op->name);
  }
  missing.erase("cast");            // mixed-precision makes it
  missing.erase("place");           // only on meshes with shared axes
  missing.erase("gather_grad");     // indices below a size that must fit the other operand
  missing.erase("other_weights");   // means the trained ones until eval-weights has run
  missing.erase("ctc_loss");        // labels and lengths that must fit the other operands
  missing.erase("grouped_matmul");  // likewise: tests/zero/experts_test trains them
  missing.erase("grouped_matmul_grad");
  missing.erase("dropout_attention");  // needs a random stream and heads: tested in the op suite
  for (unsigned seed = 1; seed <= 4000 && !missing.empty(); ++seed) {
    RandomModelOptions options;
    options.seed = seed;
    const ir::Graph model = MakeRandomModel(options);
    for (const ir::Node* node : model.AllNodes()) missing.erase(node->op->name);
  }
  EXPECT_EQ(missing, std::set<std::string>()) << "no operands were found for these";
}

}  // namespace
}  // namespace zg::testing
