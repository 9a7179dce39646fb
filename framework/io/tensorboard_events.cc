#include "framework/io/tensorboard_events.h"

#include <cstring>
#include <limits>

#include "framework/io/crc32c.h"

namespace zg {
namespace {

// The field numbers, from tensorboard/compat/proto/event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SessionLogField { kStatus = 1 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kHistogram = 5 };
enum HistogramField {
  kMin = 1,
  kMax = 2,
  kNum = 3,
  kSum = 4,
  kSumSquares = 5,
  kBucketLimits = 6,
  kBuckets = 7
};
constexpr uint64_t kSessionStart = 1;

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Little-endian, as x86-64 has it.
template <typename Number>
void AppendFixed(Number number, std::string* message) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  message->append(bytes, sizeof(number));
}

void AppendVarint(uint64_t number, std::string* message) {
  for (; number >= 0x80; number >>= 7) *message += static_cast<char>(number | 0x80);
  *message += static_cast<char>(number);
}

void AppendKey(int field, WireType type, std::string* message) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | type, message);
}

void AppendVarintField(int field, uint64_t number, std::string* message) {
  AppendKey(field, kVarint, message);
  AppendVarint(number, message);
}

void AppendBytesField(int field, std::string_view bytes, std::string* message) {
  AppendKey(field, kBytes, message);
  AppendVarint(bytes.size(), message);
  message->append(bytes);
}

void AppendDoubleField(int field, double number, std::string* message) {
  AppendKey(field, kFixed64, message);
  AppendFixed(number, message);
}

std::string BeginEvent(double time_s) {
  std::string event;
  AppendDoubleField(kWallTime, time_s, &event);
  return event;
}

std::string SummaryEvent(double time_s, int64_t step, std::string_view summary) {
  std::string event = BeginEvent(time_s);
  AppendVarintField(kStep, static_cast<uint64_t>(step), &event);
  AppendBytesField(kSummary, summary, &event);
  return event;
}

// A bucket begins where the previous one ends, so a gap between two is an empty bucket.
std::string HistogramMessage(const ValueHistogram& histogram) {
  std::string message;
  AppendDoubleField(kMin, histogram.min(), &message);
  AppendDoubleField(kMax, histogram.max(), &message);
  AppendDoubleField(kNum, static_cast<double>(histogram.num()), &message);
  AppendDoubleField(kSum, histogram.sum(), &message);
  AppendDoubleField(kSumSquares, histogram.sum_squares(), &message);
  std::string limits;
  std::string counts;
  double end = -std::numeric_limits<double>::infinity();
  for (const ValueHistogram::Bucket& bucket : histogram.buckets()) {
    if (bucket.begin > end) {
      AppendFixed(bucket.begin, &limits);
      AppendFixed(0.0, &counts);
    }
    end = bucket.end;
    AppendFixed(bucket.end, &limits);
    AppendFixed(static_cast<double>(bucket.count), &counts);
  }
  AppendBytesField(kBucketLimits, limits, &message);
  AppendBytesField(kBuckets, counts, &message);
  return message;
}

// A checksum of bytes that contain checksums themselves is weak, so TFRecord rotates it.
uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

std::string Record(const std::string& event) {
  std::string record;
  AppendFixed(static_cast<uint64_t>(event.size()), &record);
  AppendFixed(MaskedCrc(record), &record);
  record += event;
  AppendFixed(MaskedCrc(event), &record);
  return record;
}

}  // namespace

std::string VersionEvent(double time_s) {
  std::string event = BeginEvent(time_s);
  AppendBytesField(kFileVersion, "brain.Event:2", &event);
  return Record(event);
}

std::string RunStartEvent(double time_s, int64_t first_step) {
  std::string session_log;
  AppendVarintField(kStatus, kSessionStart, &session_log);
  std::string event = BeginEvent(time_s);
  AppendVarintField(kStep, static_cast<uint64_t>(first_step), &event);
  AppendBytesField(kSessionLog, session_log, &event);
  return Record(event);
}

std::string ScalarsEvent(double time_s, int64_t step, const std::vector<NamedScalar>& scalars) {
  std::string summary;
  for (const NamedScalar& scalar : scalars) {
    std::string value;
    AppendBytesField(kTag, scalar.name, &value);
    AppendKey(kSimpleValue, kFixed32, &value);
    AppendFixed(static_cast<float>(scalar.value), &value);
    AppendBytesField(kValue, value, &summary);
  }
  return Record(SummaryEvent(time_s, step, summary));
}

std::string HistogramsEvent(double time_s, int64_t step,
                            const std::map<std::string, ValueHistogram>& histograms) {
  std::string summary;
  for (const auto& [name, histogram] : histograms) {
    std::string value;
    AppendBytesField(kTag, name, &value);
    AppendBytesField(kHistogram, HistogramMessage(histogram), &value);
    AppendBytesField(kValue, value, &summary);
  }
  return Record(SummaryEvent(time_s, step, summary));
}

}  // namespace zg
