// The content of metrics.jsonl after consecutive runs, and the names of the event files.
// //tests/io:tensorboard_events_test and //tests/models:metrics_test check the content of event
// files.

#include "framework/job/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace zg {
namespace {

using ::testing::HasSubstr;

class MetricsTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }

  // Writes the losses of steps first, first + 1, ...
  void Run(int64_t first, const std::vector<double>& losses) {
    auto metrics = Metrics::Open(directory_, first - 1);
    ASSERT_TRUE(metrics.ok()) << metrics.status().message();
    num_removed_ = (*metrics)->num_removed_steps();
    for (const double loss : losses) ASSERT_TRUE((*metrics)->Write(first++, {{"loss", loss}}).ok());
  }

  // The lines without their times.
  std::string Lines() const {
    std::ifstream file(directory_ + "/metrics.jsonl");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return std::regex_replace(text, std::regex("\"time\":[0-9.]+,"), "");
  }

  void Append(const std::string& text) const {
    std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << text;
  }

  std::vector<std::string> EventFiles() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().filename() != "metrics.jsonl") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string directory_ = testing::TempDir() + "/metrics/of_a_run";
  int64_t num_removed_ = 0;
};

TEST_F(MetricsTest, ALineForEachStep) {
  auto metrics = Metrics::Open(directory_, 0);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  ASSERT_TRUE((*metrics)
                  ->Write(1, {{"loss", 2.7713401317596436}, {"lr", 1e-5}, {"bytes", 12345678901}})
                  .ok());
  ASSERT_TRUE((*metrics)->Write(2, {{"loss", std::nan("")}, {"lr", 0.1}}).ok());
  ASSERT_TRUE((*metrics)->Write(2, {{"accuracy", 0.5}}).ok());
  EXPECT_EQ(Lines(),
            "{\"step\":1,\"loss\":2.77134013,\"lr\":1e-05,\"bytes\":12345678901}\n"
            "{\"step\":2,\"loss\":null,\"lr\":0.1}\n"
            "{\"step\":2,\"accuracy\":0.5}\n");
}

TEST_F(MetricsTest, AResumedRunTakesItsStepsAgain) {
  Run(1, {1, 2, 3, 4});
  Run(3, {30, 40, 50});
  EXPECT_EQ(num_removed_, 2);
  EXPECT_EQ(Lines(),
            "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":30}\n"
            "{\"step\":4,\"loss\":40}\n{\"step\":5,\"loss\":50}\n");
  Run(1, {7});
  EXPECT_EQ(num_removed_, 5);
  EXPECT_EQ(Lines(), "{\"step\":1,\"loss\":7}\n");
  Run(2, {});
  EXPECT_EQ(num_removed_, 0);
  EXPECT_EQ(Lines(), "{\"step\":1,\"loss\":7}\n");
}

TEST_F(MetricsTest, ALineThatWasNotFinishedIsRemoved) {
  Run(1, {1, 2});
  Append("{\"step\":3,\"time\":17");
  Run(3, {3});
  EXPECT_EQ(Lines(), "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n");
}

TEST_F(MetricsTest, AStepHasEachNameOnce) {
  Run(1, {1, 2});
  Append("{\"step\":2,\"accuracy\":0.5}\n");
  auto metrics = Metrics::Open(directory_, 2);
  ASSERT_TRUE(metrics.ok()) << metrics.status().message();
  ASSERT_TRUE((*metrics)->Write(2, {{"accuracy", 0.75}}).ok());
  ASSERT_TRUE((*metrics)->Write(2, {{"error", 0.25}, {"step", 3}, {"time", 3}}).ok());
  ASSERT_TRUE((*metrics)->Write(2, {{"error", 1}}).ok());
  ASSERT_TRUE((*metrics)->Write(3, {{"accuracy", 1}, {"step", 4}}).ok());
  EXPECT_EQ(Lines(),
            "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":2,\"accuracy\":0.5}\n"
            "{\"step\":2,\"error\":0.25}\n{\"step\":3,\"accuracy\":1}\n");
}

// Even if they follow each other quickly.
TEST_F(MetricsTest, EventFilesOfLaterRunsComeLater) {
  std::vector<std::string> before;
  for (int run = 1; run <= 3; ++run) {
    Run(run, {1});
    const std::vector<std::string> files = EventFiles();
    ASSERT_EQ(files.size(), before.size() + 1);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(files[i], before[i]);
    before = files;
  }
}

TEST_F(MetricsTest, Errors) {
  EXPECT_EQ(Metrics::Open("/dev/null/metrics", 0).status().message(),
            "/dev/null/metrics: cannot be made: Not a directory");
  Run(1, {1});
  Append("step 2, loss 3, in a file of somebody else\n");
  EXPECT_THAT(Metrics::Open(directory_, 1).status().message(),
              HasSubstr("metrics.jsonl: line 2: got 'step 2, loss 3, in a file of somebody el', "
                        "expected a line of metrics; give another directory"));
  SetUp();
  auto first = Metrics::Open(directory_, 0);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(Metrics::Open(directory_, 0).status().message(),
              HasSubstr("metrics.jsonl: another job writes it; give each job a directory"));
}

}  // namespace
}  // namespace zg
