// The formulas against every number that the ZeRO paper prints.

#include "zero/memory_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

namespace zg::zero {
namespace {

double Gigabytes(double num_parameters, int64_t ranks, int stage) {
  StatusOr<ModelStateBytes> bytes = PredictModelStates({num_parameters, ranks, stage});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? bytes->total() / 1e9 : 0;
}

// The value of the last digit of a printed number: 0.01 for "1.88".
double LastDigit(const std::string& printed) {
  const size_t point = printed.find('.');
  return point == std::string::npos
             ? 1
             : std::pow(10, -static_cast<double>(printed.size() - point - 1));
}

void ExpectRounded(double exact, const std::string& printed) {
  EXPECT_NEAR(exact, std::atof(printed.c_str()), LastDigit(printed) / 2 + 1e-9) << printed;
}

void ExpectTruncated(double exact, const std::string& printed) {
  const double least = std::atof(printed.c_str());
  EXPECT_GE(exact, least - 1e-9) << printed;
  EXPECT_LT(exact, least + LastDigit(printed)) << printed;
}

// Stages 1, 2 and 3 on one number of ranks.
struct TableRow {
  int64_t ranks;
  const char* cells_7_5b[3];  // rounded in the paper; the others are truncated
  const char* cells_128b[3];
  const char* cells_1t[3];
};

constexpr TableRow kTable1[] = {
    {1, {"120", "120", "120"}, {"2048", "2048", "2048"}, {"16000", "16000", "16000"}},
    {4, {"52.5", "41.3", "30"}, {"896", "704", "512"}, {"7000", "5500", "4000"}},
    {16, {"35.6", "21.6", "7.5"}, {"608", "368", "128"}, {"4750", "2875", "1000"}},
    {64, {"31.4", "16.6", "1.88"}, {"536", "284", "32"}, {"4187", "2218", "250"}},
    {256, {"30.4", "15.4", "0.47"}, {"518", "263", "8"}, {"4046", "2054", "62.5"}},
    {1024, {"30.1", "15.1", "0.12"}, {"513", "257", "2"}, {"4011", "2013", "15.6"}},
};

TEST(MemoryModel, EveryCellOfTable1) {
  for (const TableRow& row : kTable1) {
    for (int stage = 1; stage <= 3; ++stage) {
      SCOPED_TRACE(::testing::Message() << row.ranks << " ranks, stage " << stage);
      ExpectRounded(Gigabytes(7.5e9, row.ranks, stage), row.cells_7_5b[stage - 1]);
      ExpectTruncated(Gigabytes(128e9, row.ranks, stage), row.cells_128b[stage - 1]);
      ExpectTruncated(Gigabytes(1e12, row.ranks, stage), row.cells_1t[stage - 1]);
    }
  }
}

TEST(MemoryModel, Figure1) {
  const char* const kBars[] = {"120", "31.4", "16.6", "1.9"};
  for (int stage = 0; stage <= 3; ++stage) ExpectRounded(Gigabytes(7.5e9, 64, stage), kBars[stage]);
}

TEST(MemoryModel, WhatIsKept) {
  const StatusOr<ModelStateBytes> bytes = PredictModelStates({1000, 4, 2});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->parameters, 2000);
  EXPECT_EQ(bytes->gradients, 500);
  EXPECT_EQ(bytes->optimizer_state, 3000);
}

TEST(MemoryModel, Traffic) {
  const double kTimes[] = {2, 2, 2, 3};
  for (int stage = 0; stage <= 3; ++stage) {
    const StatusOr<double> elements = PredictElementsSent({7.5e9, 64, stage});
    ASSERT_TRUE(elements.ok());
    EXPECT_EQ(*elements, kTimes[stage] * 7.5e9);
  }
}

TEST(MemoryModel, Errors) {
  const auto message = [](const ModelStates& states) {
    return std::string(PredictModelStates(states).status().message());
  };
  EXPECT_EQ(message({0, 4, 1}), "model states: got 0 parameters, expected more than 0");
  EXPECT_EQ(message({NAN, 4, 1}), "model states: got nan parameters, expected more than 0");
  EXPECT_EQ(message({1, 0, 1}), "model states: got 0 ranks, expected at least 1");
  EXPECT_EQ(message({1, 4, 4}), "model states: stage is 4, expected 0, 1, 2 or 3");
  EXPECT_FALSE(PredictElementsSent({1, 4, -1}).ok());
}

}  // namespace
}  // namespace zg::zero
