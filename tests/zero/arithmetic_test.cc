// A checkpoint records its arithmetic, and a run that resumes with other bits logs a warning.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/device/device.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/device_kernels.h"
#include "tests/testing/logged.h"
#include "tests/zero/small_trainer.h"

namespace zg::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ArithmeticTest : public ::testing::Test {
 protected:
  ArithmeticTest() { std::filesystem::remove_all(root_); }

  // The log of two ranks that resume.
  std::string ResumedBy(const std::string& arithmetic) {
    SmallTrainerConfig config;
    config.ranks = 2;
    config.arithmetic = arithmetic;
    const Logged logged;
    const Status status =
        OnSmallTrainer(config, [&](Trainer& trainer) { return trainer.resume(root_); });
    EXPECT_TRUE(status.ok()) << status.message();
    return logged.text();
  }

  const std::string root_ = ::testing::TempDir() + "/arithmetic_test";
};

TEST_F(ArithmeticTest, IsThatOfEveryProcessorInF32) {
  const Status status = OnSmallTrainer({}, [](Trainer& trainer) {
    EXPECT_EQ(trainer.arithmetic(), "x86-64");
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(ArithmeticOf(CpuDevice(), DType::kF16), "x86-64");
}

TEST_F(ArithmeticTest, NamesTheProductsOfBf16) {
  const std::string own_order(OwnOrderOfBf16Products());
  EXPECT_EQ(ArithmeticOf(CpuDevice(), DType::kBF16),
            own_order.empty() ? "x86-64" : "x86-64, bf16 products by " + own_order);
}

TEST_F(ArithmeticTest, AnotherOneIsToldOnce) {
  SmallTrainerConfig config;
  config.arithmetic = "NVIDIA H200, cuBLASLt 130000";
  SaveSteps(config, root_, 1);
  EXPECT_THAT(ResumedBy("NVIDIA H200, cuBLASLt 130000"), IsEmpty());
  const std::string logged = ResumedBy("NVIDIA H200, cuBLASLt 130100");
  EXPECT_THAT(logged, HasSubstr("step-00000001 was computed by NVIDIA H200, cuBLASLt 130000, this "
                                "run goes on by NVIDIA H200, cuBLASLt 130100: with other bits"));
  EXPECT_EQ(logged.find("was computed"), logged.rfind("was computed"));
}

}  // namespace
}  // namespace zg::testing
