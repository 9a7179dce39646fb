#include "framework/io/idx_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "framework/io/gzip.h"
#include "framework/io/mapped_file.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

std::string Idx(const std::vector<uint32_t>& shape, const std::string& values) {
  std::string bytes = {'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t dim : shape) bytes += BigEndian(dim);
  return bytes + values;
}

std::string Gzipped(const std::string& bytes) {
  const std::string path = TestPath("zipped.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, bytes.data(), bytes.size()), static_cast<int>(bytes.size()));
  gzclose(file);
  return ReadTestFile(path);
}

TEST(IdxFile, IsReadPlainAndFromGzip) {
  const std::string bytes = Idx({2, 1, 3}, "abcdef");
  for (const std::string& content : {bytes, Gzipped(bytes)}) {
    const StatusOr<IdxFile> file = read_idx_file(WriteTestFile("x.idx", content));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(file->shape, (std::vector<int64_t>{2, 1, 3}));
    EXPECT_EQ(std::string(file->values.begin(), file->values.end()), "abcdef");
  }
}

struct Wrong {
  const char* name;
  std::string content;
  std::string message;  // after the path
};

std::vector<Wrong> WrongFiles() {
  const std::string good = Idx({2, 3}, "abcdef");
  const std::string zipped = Gzipped(good);
  std::string damaged = zipped;
  damaged[damaged.size() - 6] ^= 1;  // a byte of the CRC
  std::string torn = zipped;
  torn[10] = '\xff';
  const std::string zeros = Gzipped(Idx({1'000'000'000}, std::string(1000, '\0')));
  return {
      {"empty", "", "got 0 bytes of the header, expected 4; the file is truncated"},
      {"magic", "PNG " + good, "got the magic bytes 50 4e 47 20, expected 00 00 08 and the number"},
      {"floats", std::string("\0\0\x0d\x01", 4) + BigEndian(1) + "1234",
       "got the magic bytes 00 00 0d"},
      {"no dims", std::string("\0\0\x08\0", 4), "got the magic bytes 00 00 08 00"},
      {"half a dim", good.substr(0, 9),
       "got 5 bytes of the dims, expected 8; the file is truncated"},
      {"truncated", good.substr(0, 15), "got 3 bytes of values, expected 6; the file is truncated"},
      {"longer", good + "g", "got more bytes than the 6 of the dims (2, 3)"},
      {"overflow", Idx({1u << 31, 1u << 31, 1u << 31}, ""),
       "got 16 bytes, which cannot hold the dims (2147483648, ...)"},
      {"gzip truncated", zipped.substr(0, zipped.size() - 3), "the gzip data ends too early"},
      {"gzip damaged", damaged, "the gzip data is damaged: incorrect data check"},
      {"gzip torn", torn, "the gzip data is damaged"},
      {"gzip and more", zipped + "xy", "got 2 bytes behind the gzip data, expected none"},
      {"gzip of fewer", Gzipped(good.substr(0, 15)), "got 3 bytes of values, expected 6"},
      {"gzip of more", Gzipped(good + "g"), "got more bytes than the 6 of the dims"},
      {"gzip of far fewer", zeros, "got 35 bytes, which cannot hold the dims (1000000000, ...)"},
  };
}

TEST(IdxFile, SaysWhatIsWrong) {
  for (const Wrong& wrong : WrongFiles()) {
    const std::string path = WriteTestFile("wrong.idx", wrong.content);
    const StatusOr<IdxFile> file = read_idx_file(path);
    ASSERT_FALSE(file.ok()) << wrong.name;
    EXPECT_EQ(file.status().message().rfind(path + ": " + wrong.message, 0), 0u)
        << wrong.name << ": " << file.status().message();
  }
  EXPECT_EQ(read_idx_file("/no/such").status().code(), StatusCode::kNotFound);
}

TEST(GzipReader, GivesPiecesOfAnySize) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(int64_t{i} * i >> 3);
  const MappedFile file = MappedFile::Open(WriteTestFile("pieces.gz", Gzipped(bytes))).value();
  ASSERT_TRUE(IsGzip(file));
  GzipReader reader(file);
  std::string read;
  for (size_t size = 1;; size = size % 999 + 7) {
    std::string piece(size, '\0');
    const StatusOr<size_t> got = reader.Read(piece.data(), size);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    read += piece.substr(0, *got);
    if (*got < size) break;
  }
  EXPECT_EQ(read, bytes);
}

TEST(LabelledImages, BelongTogether) {
  const std::string images = WriteTestFile("images", Idx({2, 1, 2}, "abcd"));
  const std::string labels = WriteTestFile("labels", Idx({2}, std::string("\x01\x04", 2)));
  const StatusOr<LabelledImages> both = read_labelled_images(images, labels, 5);
  ASSERT_TRUE(both.ok()) << both.status().ToString();
  EXPECT_EQ(both->count, 2);
  EXPECT_EQ(both->height, 1);
  EXPECT_EQ(both->width, 2);
  EXPECT_EQ(both->labels, (std::vector<uint8_t>{1, 4}));
  EXPECT_EQ(read_labelled_images(images, labels, 4).status().message(),
            labels + ": got the label 4 for image 1, expected one below 4");
  EXPECT_EQ(read_labelled_images(labels, labels, 5).status().message(),
            labels + ": got the dims (2), expected images, height and width");
  const std::string three = WriteTestFile("three", Idx({3}, std::string(3, '\0')));
  EXPECT_EQ(read_labelled_images(images, three, 5).status().message(),
            three + ": got the dims (3), expected (2), a label for each image of " + images);
}

TEST(FashionMnist, IsThatOfThePackage) {
  EXPECT_EQ(read_fashion_mnist(FashionMnistPart::kTest, "/no/such").status().message(),
            "/no/such: is not there; install Debian's package dataset-fashion-mnist "
            "(tools/setup.sh does)");
  const StatusOr<LabelledImages> test = read_fashion_mnist(FashionMnistPart::kTest);
  ASSERT_TRUE(test.ok()) << test.status().ToString();
  EXPECT_EQ(test->count, 10'000);
  EXPECT_EQ(test->height, 28);
  EXPECT_EQ(test->width, 28);
  std::vector<int> per_class(10);
  for (const uint8_t label : test->labels) ++per_class[label];
  EXPECT_EQ(per_class, std::vector<int>(10, 1000));
}

}  // namespace
}  // namespace zg
