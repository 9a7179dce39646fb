#include "framework/io/safetensors_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/io/safetensors.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

const float kFloats[] = {1.0f, 2.0f, 3.0f};
const uint8_t kBytes[] = {7, 8, 9, 10, 11};
const int64_t kInteger = -1;

std::string Target() { return TestPath("written.safetensors"); }

TEST(WriteSafetensors, WritesExactlyTheseBytes) {
  const Status status = WriteSafetensors(
      Target(),
      {{"u", SafetensorsDType::kU8, {5}, kBytes}, {"f", SafetensorsDType::kF32, {3, 1}, kFloats}});
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"f":{"dtype":"F32","shape":[3,1],"data_offsets":[0,12]},)"
      R"("u":{"dtype":"U8","shape":[5],"data_offsets":[12,17]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  std::string expected(8, '\0');
  expected[0] = static_cast<char>(padded.size());
  expected += padded;
  expected.append(reinterpret_cast<const char*>(kFloats), sizeof(kFloats));
  expected.append(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
  EXPECT_EQ(ReadTestFile(Target()), expected);
}

TEST(WriteSafetensors, RoundTripAlignsEveryTensor) {
  SafetensorsWriteOptions options;
  options.metadata = {{"step", "12"}, {"quote", "\"\n\\"}};
  const Status status =
      WriteSafetensors(Target(),
                       {{"z.u8", SafetensorsDType::kU8, {5}, kBytes},
                        {"b.f32", SafetensorsDType::kF32, {3}, kFloats},
                        {"a.f32", SafetensorsDType::kF32, {1, 3}, kFloats},
                        {"empty", SafetensorsDType::kF16, {4, 0}},
                        {"scalar", SafetensorsDType::kI64, {}, &kInteger},
                        {"na\xc3\xafve \"name\"", SafetensorsDType::kBool, {1}, kBytes}},
                       options);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Target());
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(file->metadata().at("step"), "12");
  EXPECT_EQ(file->metadata().at("quote"), "\"\n\\");
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : file->entries()) {
    names.push_back(entry.name);
    const size_t size = std::max(BitsOf(entry.dtype) / 8, 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file->Data(entry)) % size, 0u) << entry.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"scalar", "a.f32", "b.f32", "empty",
                                             "na\xc3\xafve \"name\"", "z.u8"}));
  EXPECT_EQ(file->Find("a.f32")->shape, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(std::memcmp(file->Data(*file->Find("a.f32")), kFloats, sizeof(kFloats)), 0);
  EXPECT_EQ(std::memcmp(file->Data(*file->Find("z.u8")), kBytes, sizeof(kBytes)), 0);
  EXPECT_EQ(std::memcmp(file->Data(*file->Find("scalar")), &kInteger, sizeof(kInteger)), 0);
}

TEST(WriteSafetensors, AFileWithoutTensors) {
  ASSERT_TRUE(WriteSafetensors(Target(), {}).ok());
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Target());
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->entries().empty());
}

TEST(WriteSafetensors, AsksASourceForItsBytesInOrder) {
  const uint64_t size = 2 * kSafetensorsChunkBytes + 5;
  uint64_t next_offset = 0;
  const TensorSource source = [&](uint64_t offset, uint8_t* chunk, size_t size_bytes) {
    EXPECT_EQ(offset, next_offset);
    EXPECT_LE(size_bytes, kSafetensorsChunkBytes);
    next_offset = offset + size_bytes;
    for (size_t i = 0; i < size_bytes; ++i) chunk[i] = static_cast<uint8_t>((offset + i) % 251);
    return Status::Ok();
  };
  Sha256 digest;
  SafetensorsWriteOptions options;
  options.digest = &digest;
  const int64_t dim = static_cast<int64_t>(size);
  ASSERT_TRUE(WriteSafetensors(
                  Target(), {{"streamed", SafetensorsDType::kU8, {dim}, nullptr, source}}, options)
                  .ok());
  EXPECT_EQ(next_offset, size);
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(Target());
  ASSERT_TRUE(file.ok());
  const uint8_t* data = file->Data(file->entries()[0]);
  for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(data[i], i % 251) << i;
  const std::string bytes = ReadTestFile(Target());
  EXPECT_EQ(digest.HexDigest(), Sha256Hex(bytes.data(), bytes.size()));
}

TEST(WriteSafetensors, AFailingSourceKeepsTheOlderFileAndLeavesNothing) {
  const std::string directory = TestPath("failing");
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const std::string path = WriteTestFile("failing/model.safetensors", "old");
  const TensorSource source = [](uint64_t, uint8_t*, size_t) {
    return Aborted("rank 3 did not send its part");
  };
  const Status status =
      WriteSafetensors(path, {{"w", SafetensorsDType::kU8, {5}, nullptr, source}});
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_EQ(status.message(), path + ": tensor \"w\": rank 3 did not send its part");
  EXPECT_EQ(ReadTestFile(path), "old");
  const std::filesystem::directory_iterator files(directory);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

struct RejectedTensors {
  const char* name;
  std::vector<TensorToWrite> tensors;
  std::string message;
};

void PrintTo(const RejectedTensors& tensors, std::ostream* out) { *out << tensors.name; }

class RejectedTensorsTest : public ::testing::TestWithParam<RejectedTensors> {};

TEST_P(RejectedTensorsTest, NamesTheTensorAndWritesNothing) {
  const std::string path = TestPath("rejected.safetensors");
  EXPECT_EQ(WriteSafetensors(path, GetParam().tensors).message(), path + ": " + GetParam().message);
  EXPECT_FALSE(std::filesystem::exists(path));
}

constexpr int64_t kHuge = int64_t{1} << 62;

INSTANTIATE_TEST_SUITE_P(
    WriteSafetensors, RejectedTensorsTest,
    ::testing::Values(
        RejectedTensors{"DuplicateName",
                        {{"w", SafetensorsDType::kU8, {5}, kBytes},
                         {"w", SafetensorsDType::kF32, {3}, kFloats}},
                        "tensor \"w\": the name is there twice or reserved"},
        RejectedTensors{"ReservedName",
                        {{"__metadata__", SafetensorsDType::kU8, {5}, kBytes}},
                        "tensor \"__metadata__\": the name is there twice or reserved"},
        RejectedTensors{"NegativeDim",
                        {{"w", SafetensorsDType::kU8, {-5}, kBytes}},
                        "tensor \"w\": got a dim of -5, expected 0 or more"},
        RejectedTensors{"Overflow",
                        {{"w", SafetensorsDType::kF32, {kHuge}, kFloats}},
                        "tensor \"w\": the size of F32[4611686018427387904] overflows 64 bits"},
        RejectedTensors{"NoData",
                        {{"w", SafetensorsDType::kF32, {3}}},
                        "tensor \"w\": got neither data nor a source for its 12 bytes"},
        RejectedTensors{"NotUtf8",
                        {{"\xff", SafetensorsDType::kU8, {5}, kBytes}},
                        "a tensor's name or a metadata value is not UTF-8"}),
    [](const ::testing::TestParamInfo<RejectedTensors>& info) {
      return std::string(info.param.name);
    });

TEST(WriteSafetensors, AMissingDirectoryIsAnError) {
  const std::string path = TestPath("no/such/directory.safetensors");
  const Status status = WriteSafetensors(path, {});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find(path), std::string::npos);
}

}  // namespace
}  // namespace zg
