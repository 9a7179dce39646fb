#include "framework/passes/pass_registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/passes/register_passes.h"

namespace zg {
namespace {

class SetMicroBatches : public Pass {
 public:
  explicit SetMicroBatches(int64_t count = 1) : count_(count) {}
  std::string_view name() const override { return "set-micro-batches"; }
  StatusOr<bool> Run(ir::Graph& graph) const override {
    graph.set_micro_batches(count_);
    return true;
  }

 private:
  int64_t count_;
};

class PassRegistryTest : public ::testing::Test {
 protected:
  PassRegistryTest() {
    PassDef def;
    def.name = "set-micro-batches";
    def.doc = "Set their number.";
    def.options = {{"count", int64_t{0}, true}, {"text", std::string("none")}};
    def.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
      if (options.Int("count") < 1) return InvalidArgument("count is {}", options.Int("count"));
      return std::unique_ptr<Pass>(std::make_unique<SetMicroBatches>(options.Int("count")));
    };
    registry_.Register(std::move(def));
    RegisterPasses(registry_);
  }

  // The number of micro-batches after the passes.
  int64_t Run(const std::string& text) {
    StatusOr<PassList> passes = ParsePasses(text, registry_);
    EXPECT_TRUE(passes.ok()) << passes.status().message();
    ir::Graph graph;
    if (!passes.ok()) return -1;
    for (const auto& pass : *passes) EXPECT_TRUE(pass->Run(graph).ok());
    return graph.micro_batches();
  }
  std::string Error(const std::string& text) {
    const StatusOr<PassList> passes = ParsePasses(text, registry_, "--passes");
    return passes.ok() ? "no error" : passes.status().message();
  }

  PassRegistry registry_;
};

TEST_F(PassRegistryTest, ReadsPassesWithOptions) {
  EXPECT_EQ(Run(""), 1);
  EXPECT_EQ(Run("set-micro-batches(count=3)"), 3);
  EXPECT_EQ(Run(" set-micro-batches (count=3, text=\"a, b\") , set-micro-batches(count=5)"), 5);
  EXPECT_EQ(Run("set-micro-batches(count=3) eliminate-dead-nodes set-micro-batches(count=5)"), 5);
}

TEST_F(PassRegistryTest, UnknownPasses) {
  const std::string error = Error("infer-sbp, infer-spb");
  EXPECT_EQ(error.rfind("--passes:12: unknown pass 'infer-spb', expected one of "
                        "accumulate-results, average-eval-results, build-backward, ",
                        0),
            0u)
      << error;
}

TEST_F(PassRegistryTest, BadOptions) {
  EXPECT_EQ(Error("infer-sbp(stage=1)"), "--passes:1: infer-sbp: unknown attribute 'stage'");
  EXPECT_EQ(Error("set-micro-batches"),
            "--passes:1: set-micro-batches: attribute 'count' is missing");
  EXPECT_EQ(Error("set-micro-batches(count=true)"),
            "--passes:1: set-micro-batches: attribute 'count': got true, expected the type of 0");
  EXPECT_EQ(Error("set-micro-batches(count=0)"), "--passes:1: set-micro-batches: count is 0");
  EXPECT_EQ(Error("set-micro-batches(count=1"),
            "--passes:26: got the end of the line, expected ',' or ')'");
  EXPECT_EQ(Error("infer-sbp,, infer-sbp"), "--passes:11: got ',', expected a pass");
  EXPECT_EQ(Error("infer-sbp;"), "--passes:10: got ';', expected a pass");
}

TEST_F(PassRegistryTest, PassesAreListedByName) {
  std::vector<std::string> names;
  for (const PassDef* pass : registry_.All()) {
    names.push_back(pass->name);
    EXPECT_FALSE(pass->doc.empty()) << pass->name;
    EXPECT_EQ(pass->doc.find('\n'), std::string::npos) << pass->name;
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_NE(registry_.Find("eliminate-dead-nodes"), nullptr);
  EXPECT_EQ(registry_.Find("nothing"), nullptr);
}

TEST(PassRegistryDeathTest, ANameIsRegisteredOnce) {
  PassRegistry registry;
  registry.Register(SimplePass<SetMicroBatches>("Once."));
  EXPECT_DEATH(registry.Register(SimplePass<SetMicroBatches>("Twice.")),
               "set-micro-batches is registered twice");
}

}  // namespace
}  // namespace zg
