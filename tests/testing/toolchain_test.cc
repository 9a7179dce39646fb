// The build environment itself: each library that the project uses compiles, links and runs.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace {

TEST(ToolchainTest, FmtFormats) { EXPECT_EQ(fmt::format("{:>4}|{:.3f}", 7, 0.5), "   7|0.500"); }

TEST(ToolchainTest, SpdlogWritesToASink) {
  std::ostringstream out;
  spdlog::logger logger("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  logger.set_pattern("%l: %v");
  logger.warn("{} bytes", 64);
  EXPECT_EQ(out.str(), "warning: 64 bytes\n");
}

TEST(ToolchainTest, JsonRoundTrips) {
  const auto report = nlohmann::json::parse(R"({"steps": [{"loss": 2.77}]})");
  EXPECT_EQ(report["steps"][0]["loss"], 2.77);
  EXPECT_EQ(nlohmann::json::parse(report.dump()), report);
}

TEST(ToolchainTest, Cli11ParsesAndRejects) {
  CLI::App app;
  int stage = 0;
  app.add_option("--zero", stage)->check(CLI::Range(0, 3));
  app.parse("--zero 2");
  EXPECT_EQ(stage, 2);
  EXPECT_THROW(app.parse("--zero 4"), CLI::ValidationError);
}

// Rounds the product, then subtracts, unless the compiler contracts the two into one FMA.
__attribute__((noinline, target("fma"))) float SquareMinus(float x, float subtrahend) {
  return x * x - subtrahend;
}

// tools/cc.bzl passes -ffp-contract=off, which bit-identical results depend on.
TEST(ToolchainTest, CompilerDoesNotContractToFma) {
  if (!__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this processor has no instruction to contract to";
  const volatile float x = 1.0f + 0x1p-12f;
  const volatile float rounded_square = x * x;
  EXPECT_EQ(SquareMinus(x, rounded_square), 0.0f);
}

}  // namespace
