#include "framework/job/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/job/summary.h"

namespace zg {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Report SmallReport() {
  Report report;
  report.model = "recipe";
  report.inputs = "x: f32[8,4]";
  report.config = {{"zero", int64_t{2}},
                   {"bucket-mb", 0.5},
                   {"shuffle", true},
                   {"report", std::string("r.json")},
                   {"data", std::vector<std::string>{"a", "b"}},
                   {"init", std::string()}};
  report.steps = {{1, 2.7725887298583984, 1.5, 1e-3, 30.0},
                  {2, 2.5, std::nullopt, 1e-3, 10.0},
                  {3, 2.25, std::nullopt, 5e-4, 14.0}};
  report.final_state = {-12.5, "aa11bb22cc33dd44ee55", "bb", 3};
  report.predicted_memory = {{1000, 2000, 3000, 4000, 5000, 0}, 10'000'000};
  report.measured_memory = {{1000, 2000, 3000, 3904, 5000, 0}, 10'000'000};
  report.rss_peak_bytes = 50'000'000;
  report.device_library_bytes = 7'000'000;
  report.per_rank_peak_bytes = {10, 11};
  report.transport = "messages";
  report.hosts = {0, 0, 2};
  report.processors = 4;
  report.saving_bytes = 2'000'000;
  report.result_bytes = 4;
  report.predicted_traffic[static_cast<int>(CollectiveKind::kReduceScatter)] = {20, 1'000'000};
  report.measured_traffic[static_cast<int>(CollectiveKind::kReduceScatter)] = {20, 1'000'000};
  report.predicted_traffic[static_cast<int>(CollectiveKind::kAllGather)] = {20, 1'000'000};
  report.measured_traffic[static_cast<int>(CollectiveKind::kAllGather)] = {21, 1'000'000};
  report.speed = {12.0, 42666.7, 3e9, 8.5};
  return report;
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// An empty directory of the test's own.
std::string FreshDirectory(const std::string& name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

TEST(Report, HasTheShapeThatScriptsRead) {
  const Json json = Json::parse(ReportAsJson(SmallReport()));
  EXPECT_EQ(json["model"], "recipe");
  EXPECT_EQ(json["inputs"], "x: f32[8,4]");
  EXPECT_EQ(json["config"], Json::parse(R"({"zero": 2, "bucket-mb": 0.5, "shuffle": true,
      "report": "r.json", "data": ["a", "b"], "init": ""})"));
  EXPECT_EQ(json["steps"][0],
            Json::parse(R"({"step": 1, "loss": 2.77258873, "grad_norm": 1.5, "lr": 0.001,
                            "ms": 30.0})"));
  EXPECT_TRUE(json["steps"][1]["grad_norm"].is_null());
  EXPECT_EQ(json["final"], Json::parse(R"({"param_sum": -12.5,
      "param_sha256": "aa11bb22cc33dd44ee55", "optimizer_sha256": "bb",
      "skipped_updates": 3})"));
  EXPECT_EQ(json["memory"]["predicted"],
            Json::parse(R"({"parameters": 1000, "gradients": 2000, "optimizer_state": 3000,
      "activations": 4000, "communication": 5000, "workspace": 0, "peak": 10000000})"));
  EXPECT_EQ(json["memory"]["measured"]["activations"], 3904);
  EXPECT_EQ(json["memory"]["rss_peak"], 50'000'000);
  EXPECT_EQ(json["memory"]["device_libraries"], 7'000'000);
  EXPECT_EQ(json["memory"]["per_rank_peak"], Json::parse("[10, 11]"));
  EXPECT_EQ(json["communication"]["transport"], "messages");
  EXPECT_EQ(json["communication"]["hosts"], Json::parse("[0, 0, 2]"));
  EXPECT_EQ(json["communication"]["processors"], 4);
  EXPECT_EQ(json["memory"]["saving"], 2'000'000);
  EXPECT_EQ(json["memory"]["results"], 4);
  EXPECT_EQ(json["communication"]["measured"],
            Json::parse(R"({"reduce_scatter": {"count": 20, "bytes": 1000000},
      "all_gather": {"count": 21, "bytes": 1000000}, "all_reduce": {"count": 0, "bytes": 0},
      "all_to_all": {"count": 0, "bytes": 0}})"));
  EXPECT_EQ(json["speed"], Json::parse(R"({"ms_per_step_median": 12.0, "tokens_per_s": 42666.7,
      "flops_per_step": 3e9, "compile_ms": 8.5})"));
}

TEST(Report, HasTheProfileIfOneWasMade) {
  Report report;
  EXPECT_TRUE(Json::parse(ReportAsJson(report))["profile"].is_null());
  report.profiles = {{2, true, 10, 1, {}}};
  Profile& profile = report.profiles[0];
  profile.rows = {{"linear", "forward", 4, 5, 2e7, 1e7},
                  {"all_reduce", "backward", 3, 2.5, 0, 5e6},
                  {"constant", "backward", 2, 0, 0, 4}};
  profile.calls = {{"linear", "forward", "f32[8,4], f32[4,2] -> f32[8,2]", 4, 5, 2e7, 1e7}};
  profile.transfers = {{"all_reduce", "backward", "f32[8] -> f32[8]", 3, 2.5, 0.75, 96}};
  profile.modules = {{"blocks.0.mlp", 4, 2, 0.5}, {"", 1, 0, 0}};
  EXPECT_EQ(Json::parse(ReportAsJson(report))["profile"], Json::parse(R"({
      "steps": 2, "is_warm": true, "step_ms": 10.0, "feed_ms": 1.0, "between_nodes_ms": 1.5,
      "rows": [
        {"op": "linear", "section": "forward", "calls": 4, "ms": 5.0, "share": 0.5,
         "gflops_per_s": 4.0, "gb_per_s": 2.0},
        {"op": "all_reduce", "section": "backward", "calls": 3, "ms": 2.5, "share": 0.25,
         "gflops_per_s": null, "gb_per_s": 2.0},
        {"op": "constant", "section": "backward", "calls": 2, "ms": 0.0, "share": 0.0,
         "gflops_per_s": null, "gb_per_s": null}],
      "modules": [
        {"module": "blocks.0.mlp", "forward_ms": 4.0, "backward_ms": 2.0, "update_ms": 0.5,
         "ms": 6.5, "share": 0.65},
        {"module": "", "forward_ms": 1.0, "backward_ms": 0.0, "update_ms": 0.0, "ms": 1.0,
         "share": 0.1}],
      "calls": [
        {"op": "linear", "section": "forward", "types": "f32[8,4], f32[4,2] -> f32[8,2]", "calls": 4,
         "ms": 5.0, "flops": 2e7, "bytes": 1e7}],
      "transfers": [
        {"op": "all_reduce", "section": "backward", "types": "f32[8] -> f32[8]", "calls": 3,
         "ms": 2.5, "processor_ms": 0.75, "bytes": 96.0}]})"));
}

TEST(Report, ALossIsReadBackWithEveryBit) {
  Report report;
  // Neighbouring f32 numbers, also tiny and huge ones.
  for (float start : {1.0f, 2.7725887f, 1e-38f, 3e38f, 0.1f, 65504.0f}) {
    for (int i = 0; i < 200; ++i) {
      start = std::nextafterf(start, 0.0f);
      report.steps.emplace_back();
      report.steps.back().loss = start;
    }
  }
  const std::string text = ReportAsJson(report);
  const Json json = Json::parse(text);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const float read = static_cast<float>(json["steps"][i]["loss"].get<double>());
    const float written = static_cast<float>(report.steps[i].loss);
    ASSERT_EQ(std::memcmp(&read, &written, sizeof(float)), 0) << written;
  }
}

TEST(Report, WhatIsNotFiniteIsNull) {
  Report report;
  report.steps = {{1, std::numeric_limits<double>::quiet_NaN(),
                   std::numeric_limits<double>::infinity(), 0.1, 1.0}};
  const Json json = Json::parse(ReportAsJson(report));
  EXPECT_TRUE(json["steps"][0]["loss"].is_null());
  EXPECT_TRUE(json["steps"][0]["grad_norm"].is_null());
}

TEST(Report, APathThatIsNotUtf8IsStillJson) {
  Report report;
  report.config = {{"report", std::string("a\xff\"b")}};
  EXPECT_EQ(Json::parse(ReportAsJson(report))["config"]["report"], "a\xEF\xBF\xBD\"b");
}

TEST(Report, MedianLeavesOutTheFirstStep) {
  EXPECT_EQ(MedianStepMs({}), 0);
  EXPECT_EQ(MedianStepMs({{1, 0, std::nullopt, 0, 5}}), 5);
  EXPECT_EQ(MedianStepMs(SmallReport().steps), 12);
}

TEST(WriteReport, ReplacesTheFile) {
  const std::string path = FreshDirectory("write_report") + "/r.json";
  ASSERT_TRUE(WriteReport(path, Report()).ok());
  ASSERT_TRUE(WriteReport(path, SmallReport()).ok());
  EXPECT_EQ(ReadFile(path), ReportAsJson(SmallReport()));
  EXPECT_FALSE(WriteReport("/no/such/directory/r.json", Report()).ok());
}

TEST(CheckWritable, SaysWhyNot) {
  const std::string directory = FreshDirectory("check_writable");
  EXPECT_TRUE(CheckWritable(directory + "/r.json").ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_EQ(
      CheckWritable(directory + "/a/r.json").message(),
      fmt::format("{0}/a/r.json: directory {0}/a does not exist; create it first", directory));
  EXPECT_THAT(CheckWritable(directory).message(), HasSubstr("is a directory"));
  const Status status = CheckWritable("/proc/r.json");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("/proc/r.json"));
}

TEST(Summary, ShowsPredictedNextToMeasured) {
  EXPECT_EQ(Summary(SmallReport()),
            R"(  loss        2.772589 -> 2.250000 in 3 steps
  skipped     3 updates that were not finite
  speed       12.00 ms per step (median), 42.7k tokens/s, 250GFLOP/s per rank
  parameters  sum -12.5, sha256 aa11bb22cc33dd44

  memory per rank  predicted  measured
  parameters          1.0 KB    1.0 KB      =
  gradients           2.0 KB    2.0 KB      =
  optimizer_state     3.0 KB    3.0 KB      =
  activations         4.0 KB    3.9 KB  -96 B
  communication       5.0 KB    5.0 KB      =
  workspace              0 B       0 B      =
  peak               10.0 MB   10.0 MB      =

  sent per rank and step  calls  predicted  calls  measured
  reduce_scatter             20     1.0 MB     20    1.0 MB         =
  all_gather                 20     1.0 MB     21    1.0 MB  +1 calls

  host memory for saving, beside the arena: 2.0 MB

  process of rank 0: 50.0 MB resident at most
  device of rank 0: 7.0 MB of libraries and kernels beside the arena
)");
}

TEST(Summary, ShowsTheProfileIfOneWasMade) {
  Report report = SmallReport();
  report.profiles = {{2, true, 10, 1, {}}};
  Profile& profile = report.profiles[0];
  EXPECT_THAT(Summary(report), HasSubstr("+1 calls\n\n" + ProfileTable(profile) + "\n" +
                                         ProfileModuleTable(profile)));
}

TEST(Summary, ShowsTheProfileOfEachPhaseThatRan) {
  Report report = SmallReport();
  report.profiles = {{2, true, 10, 1, {}}, {3, true, 20, 1, {}}};
  report.profiles[0].variant.phase = "critic";
  report.profiles[1].variant.phase = "generator";
  const auto text_of = [](const Profile& profile) {
    return "\n" + ProfileTable(profile) + "\n" + ProfileModuleTable(profile);
  };
  EXPECT_THAT(Summary(report), HasSubstr("\n  phase 'critic'\n" + text_of(report.profiles[0]) +
                                         "\n  phase 'generator'\n" + text_of(report.profiles[1])));
  const Json json = Json::parse(ReportAsJson(report))["profile"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["phase"], "critic");
  EXPECT_EQ(json[1]["step_ms"], 20.0);
}

TEST(Summary, ARunOfOneRankSendsNothing) {
  EXPECT_EQ(TrafficTable({}, {}), "  nothing is sent between ranks\n");
}

TEST(ConfigurationTable, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(ConfigurationTable(SmallReport().config),
            "  zero       2\n"
            "  bucket-mb  0.5\n"
            "  shuffle    true\n"
            "  report     r.json\n"
            "  data       a b\n");
}

}  // namespace
}  // namespace zg
