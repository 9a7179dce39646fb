#include "framework/base/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace zg {
namespace {

TEST(Format, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.0 KB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KB");
  EXPECT_EQ(FormatBytes(999'999), "1.0 MB");
  EXPECT_EQ(FormatBytes(640'320'000), "640.3 MB");
  EXPECT_EQ(FormatBytes(3'000'000'000'000), "3.0 TB");
  EXPECT_EQ(FormatBytes(5'120'000'000'000'000), "5120.0 TB");
  EXPECT_EQ(FormatBytes(-2000), "-2.0 KB");
}

TEST(Format, ExactBytes) {
  EXPECT_EQ(FormatExactBytes(1'512'304'640), "1.5 GB (1512304640 bytes)");
}

TEST(Format, Percent) {
  EXPECT_EQ(FormatPercent(0.734), "73.4%");
  EXPECT_EQ(FormatPercent(1), "100.0%");
}

TEST(Format, Count) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(987), "987");
  EXPECT_EQ(FormatCount(1.5), "1.50");
  EXPECT_EQ(FormatCount(12345), "12.3k");
  EXPECT_EQ(FormatCount(999600), "1.00M");
  EXPECT_EQ(FormatCount(1.25e9), "1.25G");
  EXPECT_EQ(FormatCount(4e15), "4000T");
  EXPECT_EQ(FormatCount(std::numeric_limits<double>::quiet_NaN()), "n/a");
}

TEST(Format, Counted) {
  EXPECT_EQ(Counted(0, "rank"), "0 ranks");
  EXPECT_EQ(Counted(1, "rank"), "1 rank");
  EXPECT_EQ(Counted(12, "rank"), "12 ranks");
}

TEST(Format, Duration) {
  EXPECT_EQ(FormatDuration(7.4), "0:07");
  EXPECT_EQ(FormatDuration(754), "12:34");
  EXPECT_EQ(FormatDuration(3 * 3600 + 121), "3:02:01");
  EXPECT_EQ(FormatDuration(-1), "0:00");
}

TEST(Format, Table) {
  EXPECT_EQ(FormatTable({{"name", "value", ""}, {"a", "1", "="}, {"long name", "22222222"}}),
            "name          value\n"
            "a                 1  =\n"
            "long name  22222222\n");
}

}  // namespace
}  // namespace zg
