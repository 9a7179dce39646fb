// The bytes of TensorBoard's records; //tests/models:metrics_test reads whole files with a reader
// of its own.

#include "framework/io/tensorboard_events.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(TensorBoardEvents, RecordsHaveTheirLengthAndChecksums) {
  const std::string record = VersionEvent(1.5);
  ASSERT_EQ(record.size(), 12u + 24 + 4);
  EXPECT_EQ(record.substr(0, 8), "\x18\0\0\0\0\0\0\0"s);
  // The checksum of these eight bytes as TensorFlow masks it.
  EXPECT_EQ(record.substr(8, 4), "\xa3\x7f\x4b\x22"s);
}

}  // namespace
}  // namespace zg
