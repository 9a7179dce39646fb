#include "framework/base/byte_size.h"

#include <gtest/gtest.h>

namespace zg {
namespace {

TEST(ByteSize, AsPeopleTypeThem) {
  const auto bytes = [](std::string_view text) {
    const StatusOr<int64_t> parsed = ParseByteSize("--fit", text);
    return parsed.ok() ? *parsed : -1;
  };
  EXPECT_EQ(bytes("4096"), 4096);
  EXPECT_EQ(bytes("12B"), 12);
  EXPECT_EQ(bytes("500M"), 500'000'000);
  EXPECT_EQ(bytes("8G"), 8'000'000'000);
  EXPECT_EQ(bytes("8GB"), 8'000'000'000);
  EXPECT_EQ(bytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(bytes("1.5K"), 1500);
  EXPECT_EQ(bytes("2T"), 2'000'000'000'000);
  for (const char* bad : {"", "G", "abc", "8X", "8Gi", "8GBB", "-8G", "0", "0.1", "nan", "inf",
                          "8 G", "1e30", "99999999T"}) {
    EXPECT_EQ(bytes(bad), -1) << bad;
  }
}

TEST(ByteSize, ErrorsBeginWithWhoGaveIt) {
  EXPECT_EQ(ParseByteSize("--fit", "8 G").status().message(),
            "--fit: got '8 G', expected bytes such as 500M, 8G or 8GiB");
}

}  // namespace
}  // namespace zg
