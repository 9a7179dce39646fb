// Products with the fastest algorithms: these are measured once, kept in a file, and the same on
// all ranks. The emulated library has algorithms with different bits and times (products.h).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "framework/comm/cuda_peers.h"
#include "framework/device/cuda_device.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/train/gemm_choices_file.h"
#include "tests/cuda_emulation/products.h"
#include "tests/cuda_emulation/streams.h"
#include "tests/testing/logged.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

using emulation::Order;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr char kDevice[] = "emulated, cuBLASLt 0";

StatusOr<DeviceRank> OnSharedGpu(Communicator& host) {
  DeviceRank rank;
  ZG_ASSIGN_OR_RETURN(rank.device, OpenCudaDevice(0));
  CudaPeerOptions options;
  options.timeout_s = 60;
  options.process = fmt::format("process {}", host.rank());
  ZG_ASSIGN_OR_RETURN(CudaPeers peers, ConnectCudaPeers(rank.device.get(), &host, options));
  if (!peers.problem.empty()) return FailedPrecondition("{}", peers.problem);
  rank.communicator = std::move(peers.communicator);
  return rank;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class GemmChoicesTest : public ::testing::Test {
 protected:
  GemmChoicesTest() {
    std::filesystem::remove(file_);
    config_.connect_device = OnSharedGpu;
    config_.kernels = &CudaKernels(/*tf32=*/false);
    config_.micro_batches = 2;
    config_.gemm_choices = file_;
  }
  ~GemmChoicesTest() override { emulation::Products() = {}; }
  void TearDown() override { emulation::EndProcesses(); }

  static void MakeFastest(Order order) {
    for (const Order other : {Order::kForward, Order::kBackward, Order::kEvenFirst}) {
      emulation::Products().ms[static_cast<int>(other)] = other == order ? 0.5 : 1.0;
    }
  }
  // A run without the file, on a library with this first choice.
  RunResult RunWithFirst(Order order) const {
    RunConfig config = config_;
    config.gemm_choices.clear();
    emulation::Products().first = order;
    const RunResult result = TrainOrDie(config);
    emulation::Products().first = Order::kForward;
    return result;
  }
  ChoicesOfDevices Stored() const {
    const StatusOr<ChoicesOfDevices> choices = ReadGemmChoices(file_);
    EXPECT_TRUE(choices.ok()) << choices.status().message();
    return choices.ok() ? *choices : ChoicesOfDevices();
  }

  const std::string file_ = ::testing::TempDir() + "/choices.json";
  RunConfig config_;
};

TEST_F(GemmChoicesTest, TakesTheFastest) {
  MakeFastest(Order::kBackward);
  const RunResult backward = RunWithFirst(Order::kBackward);
  const RunResult forward = RunWithFirst(Order::kForward);
  EXPECT_NE(forward.param_sha256, backward.param_sha256);
  EXPECT_EQ(forward.arithmetic.find("products"), std::string::npos);
  const RunResult result = TrainOrDie(config_);
  ExpectSameBits(backward, result);
  ExpectPlanIsMeasured(result, config_.steps);
  EXPECT_THAT(result.arithmetic, MatchesRegex(".*, products [0-9a-f]{12}"));
  const ChoicesOfProducts stored = Stored()[kDevice];
  EXPECT_FALSE(stored.empty());
  for (const auto& [product, choice] : stored) {
    EXPECT_DOUBLE_EQ(choice.us, 500) << product;
    EXPECT_DOUBLE_EQ(choice.first_us, 1000) << product;
  }
}

// At debug, so that runs on a GPU show what split sums are there.
TEST_F(GemmChoicesTest, LogsEveryAlgorithmOnce) {
  const Logged logged;
  config_.gemm_choices.clear();
  TrainOrDie(config_);
  EXPECT_EQ(logged.text(), "");
  spdlog::default_logger()->set_level(spdlog::level::debug);
  TrainOrDie(config_);
  const std::string text = logged.text();
  const std::string line =
      R"(product f32 \(\d+, \d+\)(\^T)? x \(\d+, \d+\)(\^T)?[^:]*, at multiples of (4|16) bytes: )"
      R"(algorithm \d, tile 0, stages 0, split-K ([12]), reduction scheme ([02]), cluster 0, )"
      R"(\d+ bytes of workspace\n)";
  std::set<std::string> lines;
  const std::regex pattern(line);
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    EXPECT_TRUE(lines.insert(match->str()).second) << match->str();
    EXPECT_EQ((*match)[4] == "2", (*match)[5] == "2") << match->str();
  }
  EXPECT_GE(lines.size(), 4);
  const std::regex any("product f32");
  EXPECT_EQ(
      std::distance(std::sregex_iterator(text.begin(), text.end(), any), std::sregex_iterator()),
      static_cast<int64_t>(lines.size()))
      << text;
}

TEST_F(GemmChoicesTest, SameFileSameBits) {
  MakeFastest(Order::kBackward);
  const RunResult expected = TrainOrDie(config_);
  const std::string text = TextOf(file_);
  EXPECT_THAT(text, HasSubstr(R"("format_version": 1)"));
  MakeFastest(Order::kEvenFirst);
  const RunResult result = TrainOrDie(config_);
  ExpectSameBits(expected, result);
  EXPECT_EQ(result.arithmetic, expected.arithmetic);
  EXPECT_EQ(TextOf(file_), text);

  std::filesystem::remove(file_);
  const RunResult other = TrainOrDie(config_);
  EXPECT_NE(other.param_sha256, expected.param_sha256);
  EXPECT_NE(other.arithmetic, expected.arithmetic);
}

// The other ranks have no file, and would measure other times; at every stage.
TEST_F(GemmChoicesTest, AllRanksTakeThoseOfRank0) {
  config_.micro_batches = 4;
  MakeFastest(Order::kEvenFirst);
  const RunResult expected = TrainOrDie(config_);
  const std::string text = TextOf(file_);
  ExpectSameOnRanks({2, 4}, config_, expected);
  EXPECT_EQ(TextOf(file_), text);

  std::filesystem::remove(file_);
  config_.ranks = 2;
  const RunResult measured_on_two = TrainOrDie(config_);
  ExpectSameBits(expected, measured_on_two);
  EXPECT_EQ(measured_on_two.arithmetic, expected.arithmetic);
  EXPECT_EQ(TextOf(file_), text);
}

TEST_F(GemmChoicesTest, AddsWhatIsMissing) {
  MakeFastest(Order::kBackward);
  config_.model = TestModel::kMlp;
  TrainOrDie(config_);
  const ChoicesOfProducts of_first = Stored()[kDevice];
  MakeFastest(Order::kEvenFirst);
  config_.model = TestModel::kClassifier;
  TrainOrDie(config_);
  ChoicesOfProducts of_both = Stored()[kDevice];
  EXPECT_GT(of_both.size(), of_first.size());
  for (const auto& [product, choice] : of_first) {
    EXPECT_EQ(of_both[product].algorithm, choice.algorithm) << product;
  }
}

// Each has its own choice: the epilogue, and the product that a gelu kernel follows.
TEST_F(GemmChoicesTest, ProductsWithEpiloguesAreMeasuredToo) {
  MakeFastest(Order::kEvenFirst);
  config_.model = TestModel::kGpt;
  config_.dtype = DType::kBF16;
  config_.steps = 1;
  ExpectPlanIsMeasured(TrainOrDie(config_), config_.steps);
  const ChoicesOfProducts stored = Stored()[kDevice];
  std::string products;
  for (const auto& [product, choice] : stored) products += product + "\n";
  for (const char* const product :
       {"bf16 (24, 24) x (96, 24)^T + bias, gelu, at multiples of 16 bytes\n",
        "bf16 (24, 24) x (96, 24)^T + bias, at multiples of 16 bytes\n",
        "bf16 (24, 24) x (96, 24)^T + bias, at multiples of 2 bytes\n",
        ", gelu's gradient, at multiples of 16 bytes\n",
        " + bias + addend, at multiples of 16 bytes\n"}) {
    EXPECT_THAT(products, HasSubstr(product));
  }
}

TEST_F(GemmChoicesTest, KeepsThoseOfOtherLibrariesAndUsesNoneOfThem) {
  MakeFastest(Order::kBackward);
  const RunResult of_old = TrainOrDie(config_);
  const ChoicesOfProducts old = Stored()[kDevice];
  emulation::Products().version = 1;
  MakeFastest(Order::kEvenFirst);
  const RunResult of_new = TrainOrDie(config_);
  EXPECT_NE(of_new.param_sha256, of_old.param_sha256);
  ChoicesOfDevices stored = Stored();
  EXPECT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored["emulated, cuBLASLt 1"].size(), old.size());
  for (const auto& [product, choice] : old) {
    EXPECT_EQ(stored[kDevice][product].algorithm, choice.algorithm) << product;
  }
}

TEST_F(GemmChoicesTest, AResumeByOthersIsTold) {
  const std::string directory = ::testing::TempDir() + "/told";
  std::filesystem::remove_all(directory);
  MakeFastest(Order::kBackward);
  config_.save = directory;
  const RunResult saved = TrainOrDie(config_);
  config_.save.clear();
  config_.resume = directory;
  config_.steps += 1;
  const auto logged_by_a_resume = [&] {
    const Logged logged;
    TrainOrDie(config_);
    return logged.text();
  };
  EXPECT_THAT(logged_by_a_resume(), Not(HasSubstr("was computed by")));
  std::filesystem::remove(file_);
  MakeFastest(Order::kEvenFirst);
  EXPECT_THAT(logged_by_a_resume(),
              HasSubstr("was computed by " + saved.arithmetic + ", this run"));
  config_.gemm_choices.clear();
  EXPECT_THAT(logged_by_a_resume(),
              HasSubstr("was computed by " + saved.arithmetic + ", this run"));
}

TEST_F(GemmChoicesTest, AnAlgorithmThatTheLibraryRefusesIsAnError) {
  TrainOrDie(config_);
  ChoicesOfProducts stored = Stored()[kDevice];
  const std::string product = stored.begin()->first;
  stored[product].algorithm = std::string(128, 'f');
  ASSERT_TRUE(AddToGemmChoices(file_, kDevice, stored).ok());
  EXPECT_THAT(Train(config_).status().message(),
              HasSubstr(fmt::format("`gemm_choices`: {}: got the algorithm {}, which cuBLASLt 0 "
                                    "refuses (CUBLAS_STATUS_INVALID_VALUE)",
                                    product, std::string(128, 'f'))));
}

TEST_F(GemmChoicesTest, ADamagedFileIsAnErrorOnEveryRank) {
  std::ofstream(file_) << "{\"format_version\": 1}";
  config_.ranks = 2;
  EXPECT_THAT(Train(config_).status().message(),
              HasSubstr(fmt::format("`gemm_choices`: {}: expected the object \"choices\"", file_)));
}

TEST_F(GemmChoicesTest, WhatCannotBeWrittenIsAnErrorOnEveryRank) {
  config_.gemm_choices = ::testing::TempDir() + "/no directory/choices.json";
  config_.ranks = 2;
  EXPECT_THAT(Train(config_).status().message(), HasSubstr("`gemm_choices`: "));
}

}  // namespace
}  // namespace zg::testing
