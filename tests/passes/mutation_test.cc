// Checks that mistakes in passes are found: the output of a pass on a random model is changed as a
// wrong pass would change it (mutations.h), and the check after the pass must report it, through
// the verifier or by running the graphs before and after it. The golden files' cases run the same
// check, but are left out here.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"
#include "framework/ops/register_all_ops.h"
#include "tests/passes/mutations.h"
#include "tests/testing/check_pipeline.h"
#include "tests/testing/pass_check.h"
#include "tests/testing/pass_text.h"
#include "tools/all_passes.h"

namespace zg::testing {
namespace {

constexpr int kGraphsPerMutation = 15;
constexpr unsigned kSeeds = 1500;
constexpr double kCaughtShare = 0.95;

struct Tally {
  int graphs = 0;
  int by_verifier = 0;
  int by_execution = 0;
  int caught() const { return by_verifier + by_execution; }
};

void Try(const Mutation& mutation, std::string_view pass, const ir::Graph& before,
         const ir::Graph& after, const ir::VerifyOptions& rules, unsigned seed, Tally* tally) {
  StatusOr<ir::Graph> mutant = ir::Parse(ir::Print(after));
  ASSERT_TRUE(mutant.ok());
  if (!mutation.apply(*mutant, seed) || ir::Print(*mutant) == ir::Print(after)) return;
  ++tally->graphs;
  if (!ir::Verify(*mutant, rules).ok()) {
    ++tally->by_verifier;
    return;
  }
  PassCheckOptions options;
  options.seed = seed;
  if (!CheckPass(pass, before, *mutant, options).empty()) ++tally->by_execution;
}

TEST(Mutations, AreCaught) {
  RegisterAllOps();
  PassRegistry registry;
  RegisterAllPasses(registry);
  const std::vector<Mutation> mutations = AllMutations();
  std::vector<Tally> tallies(mutations.size());
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    RandomModelOptions options;
    options.seed = seed;
    options.num_ranks = 2 + seed % 2;
    options.percent_frozen = seed % 3 == 0 ? 30 : 0;
    const bool shares_micro_batches = seed % 4 == 0;
    if (shares_micro_batches) options.tensor_ranks = 2;
    ir::VerifyOptions rules;
    const auto visit = [&](std::string_view pass, const ir::Graph& before, const ir::Graph& after) {
      rules.collectives_inserted |= PassName(pass) == "insert-collectives";
      for (size_t i = 0; i < mutations.size(); ++i) {
        if (mutations[i].pass != PassName(pass) || tallies[i].graphs == kGraphsPerMutation) {
          continue;
        }
        // Others are about one axis.
        if (shares_micro_batches && mutations[i].pass.rfind("place-", 0) != 0) continue;
        Try(mutations[i], pass, before, after, rules, seed, &tallies[i]);
      }
      return true;
    };
    const Status status = VisitPipeline(options, registry, visit);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  int num_caught = 0;
  int graphs = 0;
  int graphs_caught = 0;
  int num_mutations = 0;
  for (size_t i = 0; i < mutations.size(); ++i) {
    const Mutation& mutation = mutations[i];
    const Tally& tally = tallies[i];
    const bool is_equivalent = !mutation.equivalent.empty();
    const char* const result = tally.graphs == 0    ? "NEVER APPLIED"
                               : is_equivalent      ? "equivalent"
                               : tally.caught() > 0 ? "caught"
                                                    : "ESCAPED";
    fmt::print("{:13} {}: {}: {} graphs, {} refused by the verifier, {} told by execution{}\n",
               result, mutation.pass, mutation.name, tally.graphs, tally.by_verifier,
               tally.by_execution, is_equivalent ? "; " + mutation.equivalent : "");
    EXPECT_GT(tally.graphs, 0) << mutation.name;
    if (is_equivalent) {
      EXPECT_EQ(tally.caught(), 0) << mutation.name << " makes a difference after all";
      continue;
    }
    ++num_mutations;
    graphs += tally.graphs;
    graphs_caught += tally.caught();
    num_caught += tally.caught() > 0;
  }
  fmt::print("{} of {} mutations are caught, on {} of {} graphs\n", num_caught, num_mutations,
             graphs_caught, graphs);
  EXPECT_GE(num_caught, kCaughtShare * num_mutations);
  EXPECT_GE(num_mutations, 40);
}

}  // namespace
}  // namespace zg::testing
