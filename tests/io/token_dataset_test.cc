#include "framework/io/token_dataset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/io/mapped_file.h"
#include "framework/io/token_file.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

std::string TokenBytes(const std::vector<uint16_t>& tokens) {
  return std::string(reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size());
}

std::string LlmcHeader(int32_t magic, int32_t version, int32_t num_tokens) {
  int32_t header[256] = {magic, version, num_tokens};
  return std::string(reinterpret_cast<const char*>(header), sizeof(header));
}

std::vector<int64_t> AllTokens(const TokenDataset& data) {
  std::vector<int64_t> tokens;
  for (uint64_t i = 0; i < data.size(); ++i) tokens.push_back(data[i]);
  return tokens;
}

// Tokens 0, 1, 2, ..., so that a token is its position.
TokenDataset Counting(int size) {
  std::vector<uint16_t> tokens;
  for (int i = 0; i < size; ++i) tokens.push_back(static_cast<uint16_t>(i));
  return TokenDataset::FromTokenFile(WriteTestFile("counting.bin", TokenBytes(tokens))).value();
}

struct Batch {
  std::vector<int64_t> x, y;
};

Batch Fill(const TokenDataset& data, uint64_t seed, uint64_t index, int batch, int context) {
  Batch filled;
  filled.x.resize(batch * context);
  filled.y.resize(batch * context);
  const Status status =
      data.FillBatch(seed, index, batch, context, filled.x.data(), filled.y.data());
  EXPECT_TRUE(status.ok()) << status.ToString();
  return filled;
}

TEST(TokenDataset, TextIsItsBytes) {
  const std::string path = WriteTestFile("a.txt", "h\xc3\xa9\n");
  const StatusOr<TokenDataset> data = TokenDataset::Open({path});
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  EXPECT_EQ(AllTokens(*data), (std::vector<int64_t>{'h', 0xc3, 0xa9, '\n'}));
  EXPECT_EQ(data->vocabulary_size(), 256);
  EXPECT_EQ(data->name(), path);
}

TEST(TokenDataset, TextFilesAreJoinedWithANewlineWhereThereIsNone) {
  const std::string a = WriteTestFile("a.txt", "one");
  const std::string b = WriteTestFile("b.txt", "two\n");
  const StatusOr<TokenDataset> data = TokenDataset::Open({b, a, b});
  ASSERT_TRUE(data.ok());
  std::string text;
  for (const int64_t token : AllTokens(*data)) text += static_cast<char>(token);
  EXPECT_EQ(text, "two\none\ntwo\n");
  EXPECT_EQ(data->name(), b + " + " + a + " + " + b);
}

TEST(TokenDataset, ADirectoryIsItsFilesInOrder) {
  const std::string directory = TestPath("texts");
  std::filesystem::create_directories(directory + "/b/d");
  EXPECT_EQ(TokenDataset::Open({directory}).status().message(),
            directory + ": got a directory without files, expected text");
  WriteTestFile("texts/c", "three");
  WriteTestFile("texts/b/d/e", "two");
  WriteTestFile("texts/a", "one\n");
  const StatusOr<TokenDataset> data = TokenDataset::Open({directory});
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  std::string text;
  for (const int64_t token : AllTokens(*data)) text += static_cast<char>(token);
  EXPECT_EQ(text, "one\ntwo\nthree");
  EXPECT_EQ(data->name(), directory);
}

TEST(TokenDataset, TakesTokensOfEncodedText) {
  const StatusOr<TokenDataset> data = TokenDataset::FromTokens("book", {5, 100'000, 0}, 100'001);
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  EXPECT_EQ(AllTokens(*data), (std::vector<int64_t>{5, 100'000, 0}));
  EXPECT_EQ(data->vocabulary_size(), 100'001);
  EXPECT_EQ(
      TokenDataset::FromTokens("book", {5, 7}, 7).status().message(),
      "book: got token 7 at position 1, expected tokens below the vocabulary of 7; enlarge the "
      "model's vocabulary or tokenize again");
}

TEST(TokenDataset, ReadsTokenFilesWithAndWithoutAHeader) {
  const std::vector<uint16_t> tokens = {5, 0, 50256, 300};
  const std::string plain = WriteTestFile("plain.bin", TokenBytes(tokens));
  const std::string llmc =
      WriteTestFile("llmc.bin", LlmcHeader(20240520, 1, 4) + TokenBytes(tokens));
  for (const std::string& path : {plain, llmc}) {
    const StatusOr<TokenDataset> data = TokenDataset::Open({path});
    ASSERT_TRUE(data.ok()) << data.status().ToString();
    EXPECT_EQ(AllTokens(*data), (std::vector<int64_t>{5, 0, 50256, 300}));
    EXPECT_EQ(data->vocabulary_size(), 50257);
    const StatusOr<TokenDataset> padded = TokenDataset::Open({path}, 50304);
    ASSERT_TRUE(padded.ok());
    EXPECT_EQ(padded->vocabulary_size(), 50304);
  }
}

struct RejectedData {
  const char* name;
  const char* file;
  std::optional<std::string> bytes;
  std::optional<int> vocabulary;
  std::string message;  // after the file's name
};

void PrintTo(const RejectedData& data, std::ostream* out) { *out << data.name; }

class RejectedDataTest : public ::testing::TestWithParam<RejectedData> {};

TEST_P(RejectedDataTest, NamesTheFileAndTheReason) {
  const RejectedData& data = GetParam();
  const std::string path = TestPath(data.file);
  if (data.bytes) WriteTestFile(data.file, *data.bytes);
  EXPECT_EQ(TokenDataset::Open({path}, data.vocabulary).status().message(),
            path + ": " + data.message);
}

INSTANTIATE_TEST_SUITE_P(
    TokenDataset, RejectedDataTest,
    ::testing::Values(
        RejectedData{"MissingText", "none.txt", std::nullopt, std::nullopt, "no such file"},
        RejectedData{"MissingTokens", "none.bin", std::nullopt, std::nullopt, "no such file"},
        RejectedData{"EmptyText", "empty.txt", "", std::nullopt,
                     "the file is empty, expected text"},
        RejectedData{"EmptyTokens", "empty.bin", "", std::nullopt,
                     "the file is empty, expected u16 tokens"},
        RejectedData{
            "OddSize", "odd.bin", "abc", std::nullopt,
            "got 3 bytes, expected an even number: u16 tokens; the file is truncated or not "
            "a token file (text files must not end in .bin)"},
        RejectedData{"WideTokens", "size.bin", LlmcHeader(20240801, 7, 2) + "123456", std::nullopt,
                     "got 1030 bytes, expected 1032 for the header and 2 u32 tokens; the file is "
                     "truncated"},
        RejectedData{"HugeToken", "huge.bin", LlmcHeader(20240801, 7, 1) + "\xff\xff\xff\x7f",
                     std::nullopt,
                     "got token 2147483647, expected tokens below 2^31 - 1; the file is damaged"},
        RejectedData{"EvaluationData", "magic.bin", LlmcHeader(20240522, 1, 0), std::nullopt,
                     "got magic 20240522 (llm.c's evaluation data), expected 20240520 (u16 "
                     "tokens), 20240801 (u32 tokens) or no header"},
        RejectedData{"TruncatedHeader", "short.bin", LlmcHeader(20240520, 1, 4).substr(0, 1023),
                     std::nullopt,
                     "got 1023 bytes, expected at least the 1024 of llm.c's header; the file is "
                     "truncated"},
        RejectedData{"OtherVersion", "version.bin", LlmcHeader(20240520, 2, 4), std::nullopt,
                     "got version 2, expected 1"},
        RejectedData{"NoTokens", "count.bin", LlmcHeader(20240520, 1, 0), std::nullopt,
                     "got 0 tokens in the header, expected some"},
        RejectedData{"NegativeCount", "count.bin", LlmcHeader(20240520, 1, -1), std::nullopt,
                     "got -1 tokens in the header, expected some"},
        RejectedData{"TruncatedTokens", "size.bin", LlmcHeader(20240520, 1, 4) + "1234567",
                     std::nullopt,
                     "got 1031 bytes, expected 1032 for the header and 4 u16 tokens; the file is "
                     "truncated"},
        RejectedData{"TrailingBytes", "size.bin", LlmcHeader(20240520, 1, 2) + "123456",
                     std::nullopt,
                     "got 1030 bytes, expected 1028 for the header and 2 u16 tokens; the file is "
                     "longer than its header says"},
        RejectedData{"TokenBeyondTheVocabulary", "beyond.bin", TokenBytes({1, 2, 100, 300}), 100,
                     "got token 100 at position 2, expected tokens below the vocabulary of 100; "
                     "enlarge the model's vocabulary or tokenize again"},
        RejectedData{"ByteBeyondTheVocabulary", "beyond.txt", "ab\x80", 128,
                     "got token 128 at position 2, expected tokens below the vocabulary of 128; "
                     "enlarge the model's vocabulary or tokenize again"},
        RejectedData{"NoVocabulary", "vocabulary.txt", "ab", 0,
                     "got a vocabulary of 0, expected 1 or more"}),
    [](const ::testing::TestParamInfo<RejectedData>& info) {
      return std::string(info.param.name);
    });

TEST(TokenFileWriter, WritesWhatIsRead) {
  for (const int64_t vocabulary : {60'000, 65'536, 65'537, 100'000}) {
    const std::string path = TestPath("written.bin");
    StatusOr<TokenFileWriter> writer = TokenFileWriter::Create(path, vocabulary);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    EXPECT_EQ(writer->token_bytes(), vocabulary <= 65'536 ? 2 : 4);
    const auto last = static_cast<uint32_t>(vocabulary - 1);
    ASSERT_TRUE(writer->Write({0, last}).ok());
    ASSERT_TRUE(writer->Write({}).ok());
    ASSERT_TRUE(writer->Write({5}).ok());
    const Status committed = writer->Commit();
    ASSERT_TRUE(committed.ok()) << committed.ToString();
    const StatusOr<TokenDataset> data = TokenDataset::Open({path}, static_cast<int>(vocabulary));
    ASSERT_TRUE(data.ok()) << data.status().ToString();
    EXPECT_EQ(AllTokens(*data), (std::vector<int64_t>{0, last, 5}));
    EXPECT_EQ(TokenDataset::Open({path})->vocabulary_size(), vocabulary);
    EXPECT_FALSE(TokenDataset::Open({path}, static_cast<int>(vocabulary - 1)).ok());
  }
}

TEST(TokenFileWriter, AFileWithoutTokensIsNone) {
  const std::string path = TestPath("without.bin");
  TokenFileWriter writer = TokenFileWriter::Create(path, 10).value();
  EXPECT_EQ(writer.Commit().message(),
            path + ": got 0 tokens, expected from 1 to 2147483647 in one token file");
  EXPECT_EQ(MappedFile::Open(path).status().code(), StatusCode::kNotFound);
}

TEST(TokenDataset, RejectsListsOfFilesThatItCannotJoin) {
  EXPECT_EQ(TokenDataset::Open({}).status().message(),
            "text data: got no file, expected one or more");
  EXPECT_EQ(TokenDataset::Open({"a.txt", "b.bin"}).status().message(),
            "b.bin: got a .bin file among 2 files, expected one .bin file or only text files");
}

TEST(TokenDataset, SplitsByPosition) {
  const TokenDataset data = Counting(10);
  const StatusOr<TokenSplit> split = data.Split(0.25);
  ASSERT_TRUE(split.ok()) << split.status().ToString();
  EXPECT_EQ(AllTokens(split->train), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(AllTokens(split->validation), (std::vector<int64_t>{8, 9}));
  EXPECT_EQ(split->validation.vocabulary_size(), 10);
  EXPECT_EQ(split->validation.name(), data.name() + " (validation part)");
  EXPECT_EQ(AllTokens(split->train.Slice(2, 3).Slice(1, 2)), (std::vector<int64_t>{3, 4}));
}

TEST(TokenDataset, RejectsSplitsWithAnEmptyPart) {
  const TokenDataset data = Counting(10);
  for (const double fraction : {0.0, 1.0, -0.5, 2.0, static_cast<double>(NAN)}) {
    EXPECT_EQ(data.Split(fraction).status().message(),
              fmt::format("{}: got a validation fraction of {}, expected one between 0 and 1",
                          data.name(), fraction));
  }
  EXPECT_EQ(data.Split(0.05).status().message(),
            data.name() +
                ": got 10 tokens, expected enough for a validation fraction of 0.05; use "
                "a longer file or another fraction");
}

TEST(TokenDataset, TargetsAreTheNextTokens) {
  const TokenDataset data = Counting(100);
  const Batch batch = Fill(data, 1, 0, 50, 7);
  for (int b = 0; b < 50; ++b) {
    for (int t = 0; t < 7; ++t) {
      EXPECT_EQ(batch.x[b * 7 + t], batch.x[b * 7] + t);
      EXPECT_EQ(batch.y[b * 7 + t], batch.x[b * 7] + t + 1);
    }
  }
}

TEST(TokenDataset, EveryPositionIsDrawnAndNoneOutside) {
  const TokenDataset data = Counting(20).Slice(5, 10);
  std::set<int64_t> starts;
  for (uint64_t index = 0; index < 200; ++index) starts.insert(Fill(data, 1, index, 1, 4).x[0]);
  EXPECT_EQ(starts, (std::set<int64_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(Fill(data, 1, 3, 1, 9).x[0], 5);  // a window that just fits
}

TEST(TokenDataset, BatchesAreAFunctionOfSeedAndIndex) {
  const TokenDataset data = Counting(10000);
  EXPECT_EQ(Fill(data, 7, 3, 4, 8).x, Fill(data, 7, 3, 4, 8).x);
  EXPECT_NE(Fill(data, 7, 3, 4, 8).x, Fill(data, 7, 4, 4, 8).x);
  EXPECT_NE(Fill(data, 7, 3, 4, 8).x, Fill(data, 8, 3, 4, 8).x);
  // A micro-batch of 4 equals two of 2.
  std::vector<int64_t> joined = Fill(data, 7, 6, 2, 8).x;
  const std::vector<int64_t> second = Fill(data, 7, 7, 2, 8).x;
  joined.insert(joined.end(), second.begin(), second.end());
  EXPECT_EQ(Fill(data, 7, 3, 4, 8).x, joined);
}

// A change of these values changes the data that a resumed run sees.
TEST(TokenDataset, BatchesAreTheSameOnEveryMachine) {
  const Batch batch = Fill(Counting(10000), 7, 3, 4, 1);
  EXPECT_EQ(batch.x, (std::vector<int64_t>{9290, 255, 8826, 7135}));
}

TEST(TokenDataset, TooFewTokensForAContextIsAnError) {
  const TokenDataset data = Counting(8);
  EXPECT_TRUE(data.CheckContext(7).ok());
  const std::string message =
      data.name() +
      ": got 8 tokens, expected at least 9 (context + 1); use a longer file or a shorter context";
  EXPECT_EQ(data.CheckContext(8).message(), message);
  int64_t x[8], y[8];
  EXPECT_EQ(data.FillBatch(0, 0, 1, 8, x, y).message(), message);
  EXPECT_EQ(data.FillWindows(0, 1, 8, x, y).message(), message);
  EXPECT_EQ(data.CheckContext(0).message(), "got a context of 0, expected 1 or more");
}

TEST(TokenDataset, WindowsCoverTheTokensInOrder) {
  const TokenDataset data = Counting(12);
  EXPECT_EQ(data.num_windows(4), 2u);
  EXPECT_EQ(data.num_windows(11), 1u);
  EXPECT_EQ(data.num_windows(12), 0u);
  int64_t x[8], y[8];
  ASSERT_TRUE(data.FillWindows(0, 2, 4, x, y).ok());
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(x[i], i);
    EXPECT_EQ(y[i], i + 1);
  }
  EXPECT_EQ(data.FillWindows(1, 2, 4, x, y).message(),
            data.name() + ": got windows 1 to 3, expected windows below 2");
}

}  // namespace
}  // namespace zg
