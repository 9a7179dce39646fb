// The bytes of TensorBoard's records; //tests/models:metrics_test reads whole files with a reader
// of its own.

#include "framework/io/tensorboard_events.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "framework/io/crc32c.h"

namespace zg {
namespace {

using namespace std::string_literals;

TEST(Crc32c, HasTheKnownValues) {  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

std::string EventOf(const std::string& record) { return record.substr(12, record.size() - 16); }

const std::string kTime = "\x09\0\0\0\0\0\0\xf8\x3f"s;  // field 1, 1.5 as f64

TEST(TensorBoardEvents, AreMessagesOfTheProtocolBuffer) {
  EXPECT_EQ(EventOf(VersionEvent(1.5)), kTime + "\x1a\x0d" + "brain.Event:2");
  EXPECT_EQ(EventOf(RunStartEvent(1.5, 300)), kTime + "\x10\xac\x02" + "\x3a\x02\x08\x01");
  const std::string loss = "\x0a\x04" + "loss"s + "\x15\0\0\x20\x40"s;  // 2.5 as f32
  const std::string lr = "\x0a\x02" + "lr"s + "\x15\0\0\x80\x3e"s;      // 0.25
  EXPECT_EQ(EventOf(ScalarsEvent(1.5, 7, {{"loss", 2.5}, {"lr", 0.25}})),
            kTime + "\x10\x07" + "\x2a\x18" + "\x0a\x0b" + loss + "\x0a\x09" + lr);
}

std::string Doubles(const std::vector<double>& numbers) {
  std::string bytes(numbers.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(TensorBoardEvents, AHistogramHasItsGapsAsEmptyBuckets) {
  ValueHistogram histogram;
  for (const float value : {1.0f, 1.125f, -2.0f, 1.25f}) histogram.Add(value);
  const std::string numbers = "\x09" + Doubles({-2}) + "\x11" + Doubles({1.25}) + "\x19" +
                              Doubles({4}) + "\x21" + Doubles({1.375}) + "\x29" +
                              Doubles({1 + 1.265625 + 4 + 1.5625});
  const std::string buckets =
      "\x32\x28" + Doubles({-2.5, -2, 1, 1.25, 1.5}) + "\x3a\x28" + Doubles({0, 1, 0, 2, 1});
  const std::string message = numbers + buckets;
  ASSERT_EQ(message.size(), 129u);
  EXPECT_EQ(EventOf(HistogramsEvent(1.5, 7, {{"w", histogram}})),
            kTime + "\x10\x07" + "\x2a\x8a\x01" + "\x0a\x87\x01" + "\x0a\x01w" + "\x2a\x81\x01" +
                message);
}

TEST(TensorBoardEvents, RecordsHaveTheirLengthAndChecksums) {
  const std::string record = VersionEvent(1.5);
  ASSERT_EQ(record.size(), 12u + 24 + 4);
  EXPECT_EQ(record.substr(0, 8), "\x18\0\0\0\0\0\0\0"s);
  // The checksum of these eight bytes as TensorFlow masks it.
  EXPECT_EQ(record.substr(8, 4), "\xa3\x7f\x4b\x22"s);
}

}  // namespace
}  // namespace zg
