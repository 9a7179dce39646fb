// golden_runner [--update] FILE...: checks every case of the golden files (golden.h) as one test
// each, or writes the actual output into the files. Used by the golden_test macro and by
// tools/update_golden.sh.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ops/register_all_ops.h"
#include "tests/testing/golden.h"
#include "tools/all_passes.h"

namespace zg::testing {
namespace {

class GoldenTest : public ::testing::Test {
 public:
  GoldenTest(const GoldenCase& golden_case, const PassRegistry& registry)
      : case_(golden_case), registry_(registry) {}

  void TestBody() override {
    const std::string failure = CheckGoldenCase(case_, registry_);
    if (!failure.empty()) ADD_FAILURE_AT(case_.source.c_str(), case_.line) << failure;
  }

 private:
  const GoldenCase case_;
  const PassRegistry& registry_;
};

StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return NotFound("{}: cannot read the file", path);
  return text.str();
}

Status RegisterTests(const std::string& path, const PassRegistry& registry) {
  ZG_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ZG_ASSIGN_OR_RETURN(const std::vector<GoldenCase> cases, ParseGoldenFile(text, path));
  const std::string file_name = path.substr(path.find_last_of('/') + 1);
  for (const GoldenCase& golden_case : cases) {
    ::testing::RegisterTest(file_name.c_str(), fmt::format("line_{}", golden_case.line).c_str(),
                            nullptr, nullptr, path.c_str(), golden_case.line,
                            [golden_case, &registry]() -> ::testing::Test* {
                              return new GoldenTest(golden_case, registry);
                            });
  }
  return Status::Ok();
}

Status Update(const std::string& path, const PassRegistry& registry) {
  ZG_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ZG_ASSIGN_OR_RETURN(const std::string updated, UpdateGoldenFile(text, path, registry));
  if (updated == text) return Status::Ok();
  std::ofstream file(path);
  file << updated;
  file.close();
  if (!file) return FailedPrecondition("{}: cannot write the file", path);
  fmt::print("updated {}\n", path);
  return Status::Ok();
}

int Main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  RegisterAllOps();
  PassRegistry registry;
  RegisterAllPasses(registry);
  std::vector<std::string> paths(argv + 1, argv + argc);
  const bool update = !paths.empty() && paths[0] == "--update";
  if (update) paths.erase(paths.begin());
  if (paths.empty()) {
    fmt::print(stderr, "usage: {} [--update] FILE...\n", argv[0]);
    return 2;
  }
  bool failed = false;
  for (const std::string& path : paths) {
    const Status status = update ? Update(path, registry) : RegisterTests(path, registry);
    if (status.ok()) continue;
    fmt::print(stderr, "{}\n", status.message());
    failed = true;
  }
  if (failed || update) return failed ? 1 : 0;
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace zg::testing

int main(int argc, char** argv) { return zg::testing::Main(argc, argv); }
