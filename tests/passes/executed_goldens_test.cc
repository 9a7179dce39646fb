// Every pass has a golden case in which it changes the graph and both sides are executed
// (RUN-EXECUTE, tests/testing/golden.h).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "framework/ir/graph.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/pass_registry.h"
#include "tests/testing/fragment.h"
#include "tests/testing/golden.h"
#include "tools/all_passes.h"

namespace zg::testing {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Takes out the passes that change the graph of the case.
void EraseThoseThatChange(const GoldenCase& golden_case, const PassRegistry& registry,
                          std::set<std::string>* names) {
  StatusOr<ir::Graph> graph = ParseFragment(golden_case.input);
  ASSERT_TRUE(graph.ok()) << golden_case.source << ":" << golden_case.line;
  const StatusOr<PassList> passes = ParsePasses(golden_case.passes, registry);
  ASSERT_TRUE(passes.ok()) << golden_case.source << ":" << golden_case.line;
  for (const std::unique_ptr<Pass>& pass : *passes) {
    const StatusOr<bool> changed = pass->Run(*graph);
    ASSERT_TRUE(changed.ok()) << golden_case.source << ":" << golden_case.line;
    if (*changed) names->erase(std::string(pass->name()));
  }
}

TEST(ExecutedGoldens, EveryPassHasOne) {
  RegisterAllOps();
  PassRegistry registry;
  RegisterAllPasses(registry);
  std::set<std::string> missing;
  for (const PassDef* pass : registry.All()) missing.insert(pass->name);
  int num_cases = 0;
  for (const char* folder : {"tests/passes", "tests/zero"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".graph") continue;
      const StatusOr<std::vector<GoldenCase>> cases =
          ParseGoldenFile(ReadFile(file.path()), file.path().string());
      ASSERT_TRUE(cases.ok()) << cases.status().message();
      for (const GoldenCase& golden_case : *cases) {
        if (!golden_case.execute || golden_case.expectation != GoldenCase::Expectation::kDiff) {
          continue;
        }
        ++num_cases;
        EraseThoseThatChange(golden_case, registry, &missing);
      }
    }
  }
  EXPECT_GT(num_cases, 100) << "the golden files were not found";
  EXPECT_EQ(missing, std::set<std::string>())
      << "add '// RUN-EXECUTE' to a case of theirs in tests/passes or tests/zero";
}

}  // namespace
}  // namespace zg::testing
