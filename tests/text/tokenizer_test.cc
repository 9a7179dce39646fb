// Encoding and decoding with a small vocabulary made here; ids of others are in
// tokenizer_reference_test.cc.
#include "framework/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/random.h"
#include "framework/text/byte_characters.h"

namespace zg {
namespace {

using Ids = std::vector<uint32_t>;

// Bytes have their value as id; the merges of `pairs` follow from 256.
TokenizerParts Parts(const std::vector<std::pair<std::string, std::string>>& pairs) {
  TokenizerParts parts;
  parts.path = "test";
  for (int byte = 0; byte < 256; ++byte) {
    parts.vocabulary.ids[BytesAsCharacters(std::string(1, static_cast<char>(byte)))] = byte;
  }
  for (const auto& [left, right] : pairs) {
    parts.vocabulary.merges.emplace_back(BytesAsCharacters(left), BytesAsCharacters(right));
    const auto next = static_cast<uint32_t>(parts.vocabulary.ids.size());
    parts.vocabulary.ids.emplace(BytesAsCharacters(left + right), next);
  }
  return parts;
}

void SplitBy(const std::string& pattern, TokenizerParts* parts) {
  parts->pre_tokenizer.splits.push_back(Regex::Compile(pattern).value());
}

Ids Encode(const TokenizerParts& parts, const std::string& text) {
  const Tokenizer tokenizer = Tokenizer::create(parts).value();
  const StatusOr<Ids> ids = TextEncoder(tokenizer).encode(text);
  EXPECT_TRUE(ids.ok()) << ids.status().ToString();
  return *ids;
}

AddedToken Added(uint32_t id, const std::string& content) {
  AddedToken token;
  token.id = id;
  token.content = content;
  return token;
}

TEST(Bpe, TheEarliestMergeComesFirstAndTheLeftmostOfIt) {
  const TokenizerParts parts = Parts({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "a"}});
  EXPECT_EQ(Encode(parts, "abc"), (Ids{'a', 256}));
  EXPECT_EQ(Encode(parts, "ab"), (Ids{257}));
  EXPECT_EQ(Encode(parts, "aaaaa"), (Ids{258, 259}));
  EXPECT_EQ(Encode(parts, ""), Ids());
  EXPECT_EQ(Encode(parts, "z"), (Ids{'z'}));
}

// The definition, a step at a time.
Ids Slowly(const TokenizerParts& parts, const std::string& word) {
  std::vector<std::string> tokens;
  for (const char byte : word) tokens.push_back(BytesAsCharacters(std::string(1, byte)));
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (const auto& [left, right] : parts.vocabulary.merges) {
      for (size_t i = 0; is_done && i + 1 < tokens.size(); ++i) {
        if (tokens[i] != left || tokens[i + 1] != right) continue;
        tokens[i] += tokens[i + 1];
        tokens.erase(tokens.begin() + static_cast<int64_t>(i) + 1);
        is_done = false;
      }
      if (!is_done) break;
    }
  }
  Ids ids;
  for (const std::string& token : tokens) ids.push_back(parts.vocabulary.ids.at(token));
  return ids;
}

TEST(Bpe, IsTheDefinitionOnRandomWordsAndMerges) {
  const RandomKey key{1};
  for (uint64_t round = 0; round < 40; ++round) {
    std::vector<std::pair<std::string, std::string>> pairs;
    std::vector<std::string> tokens = {"a", "b", "c"};
    for (uint64_t i = 0; i < 12; ++i) {
      const std::string& left = tokens[UniformBelow(key, 1000 * round + 2 * i, tokens.size())];
      const std::string& right = tokens[UniformBelow(key, 1000 * round + 2 * i + 1, tokens.size())];
      if (std::find(pairs.begin(), pairs.end(), std::make_pair(left, right)) != pairs.end())
        continue;
      pairs.emplace_back(left, right);
      tokens.push_back(left + right);
    }
    const TokenizerParts parts = Parts(pairs);
    std::string word;
    for (uint64_t i = 0; i < 200; ++i) {
      word += "abc"[UniformBelow(key, 1000 * round + 100 + i, 3)];
      if (i % 7 != 0) continue;
      ASSERT_EQ(Encode(parts, word), Slowly(parts, word)) << word;
    }
  }
}

TEST(Bpe, AWordOfTheVocabularyStaysWholeWhereMergesAreIgnored) {
  TokenizerParts parts = Parts({{"a", "b"}, {"c", "d"}});
  parts.vocabulary.ids["abcd"] = 300;
  EXPECT_EQ(Encode(parts, "abcd"), (Ids{256, 257}));
  parts.vocabulary.keeps_whole_words = true;
  EXPECT_EQ(Encode(parts, "abcd"), (Ids{300}));
  EXPECT_EQ(Encode(parts, "abcda"), (Ids{256, 257, 'a'}));
}

TEST(Tokenizer, MergesStayInsideOfWords) {
  TokenizerParts parts = Parts({{"a", " "}, {" ", "a"}, {"1", "2"}, {"2", "3"}});
  SplitBy(" ?[a-z]+", &parts);
  EXPECT_EQ(Encode(parts, "a a 12"), (Ids{'a', 257, ' ', 258}));
  SplitBy("[0-9]", &parts);  // a second expression cuts the pieces of the first
  EXPECT_EQ(Encode(parts, "a a 12"), (Ids{'a', 257, ' ', '1', '2'}));
}

TEST(Tokenizer, AnyBytesComeBack) {
  TokenizerParts parts = Parts({{"a", "b"}, {"\xc3", "\xa9"}, {"\xff", "\xff"}, {"\xa9", "\xff"}});
  SplitBy(R"(\p{L}+|\P{L}+)", &parts);
  EXPECT_EQ(Encode(parts,
                   "\xc3\xa9\xff\xff\xff"
                   "ab"),
            (Ids{257, 258, 255, 256}))
      << "invalid bytes are words of their own";
  const Tokenizer tokenizer = Tokenizer::create(parts).value();
  TextEncoder encoder(tokenizer);
  for (uint64_t round = 0; round < 200; ++round) {
    std::string text;
    for (uint64_t i = 0; i < 50; ++i) {
      const uint64_t draw = UniformBelow(RandomKey{7}, round * 50 + i, 300);
      text += draw < 256 ? std::string(1, static_cast<char>(draw)) : draw < 280 ? "\u00E9" : "ab";
    }
    ASSERT_EQ(tokenizer.decode(encoder.encode(text).value()).value(), text);
  }
}

TEST(Tokenizer, LongTextsComeInPieces) {
  TokenizerParts parts = Parts({{"a", "b"}});
  SplitBy("[a-z]+|[^a-z]+", &parts);
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += i % 3 == 0 ? "ab " : "b c";
  const Tokenizer tokenizer = Tokenizer::create(parts).value();
  TextEncoder encoder(tokenizer);
  Ids all;
  int num_pieces = 0;
  const TextEncoder::Sink keep = [&](const Ids& ids) {
    ++num_pieces;
    all.insert(all.end(), ids.begin(), ids.end());
    return Status::Ok();
  };
  ASSERT_TRUE(encoder.encode(text, keep).ok());
  EXPECT_GT(num_pieces, 5);
  EXPECT_EQ(tokenizer.decode(all).value(), text);
  EXPECT_EQ(all, encoder.encode(text).value());
  const Status status =
      encoder.encode(text, [](const Ids&) { return FailedPrecondition("the disk is full"); });
  EXPECT_EQ(status.message(), "the disk is full");
  EXPECT_EQ(encoder.encode("ab").value(), (Ids{256})) << "an error is forgotten";
}

TEST(Tokenizer, AWordOfAMillionBytesIsNoProblem) {
  const TokenizerParts parts = Parts({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  EXPECT_EQ(Encode(parts, std::string(1'000'000, 'a')), Ids(125'000, 258));
}

TEST(AddedTokens, AreFoundBeforeWordsTheLongestFirst) {
  TokenizerParts parts = Parts({{"<", "a"}});
  parts.added_tokens = {Added(300, "<a>"), Added(301, "<a><a>"), Added(302, "bb")};
  EXPECT_EQ(Encode(parts, "<a<a><a><a>bb"), (Ids{256, 301, 300, 302}));
  const Tokenizer tokenizer = Tokenizer::create(parts).value();
  EXPECT_EQ(tokenizer.vocabulary_size(), 303);
  EXPECT_EQ(tokenizer.decode({301, 256}).value(), "<a><a><a");
  EXPECT_EQ(tokenizer.added_token_id("bb"), 302u);
  EXPECT_EQ(tokenizer.added_token_id("c"), std::nullopt);
}

TEST(AddedTokens, TakeWhiteSpace) {
  TokenizerParts parts = Parts({});
  parts.added_tokens = {Added(300, "<m>")};
  parts.added_tokens[0].takes_space_before = true;
  EXPECT_EQ(Encode(parts, "x \u2003<m> <m>y"), (Ids{'x', 300, 300, 'y'}));
  parts.added_tokens[0].takes_space_before = false;
  parts.added_tokens[0].takes_space_behind = true;
  EXPECT_EQ(Encode(parts, "x <m> \n<m>y"), (Ids{'x', ' ', 300, 300, 'y'}));
}

TEST(AddedTokens, LateOnesAreFoundBetweenTheOthers) {
  TokenizerParts parts = Parts({});
  parts.added_tokens = {Added(300, "bc")};
  parts.late_added_tokens = {Added(301, "ab"), Added(302, "d!")};
  EXPECT_EQ(Encode(parts, "abcabd!"), (Ids{'a', 300, 301, 302}));
  parts.normalizes_to_nfc = true;
  EXPECT_EQ(Tokenizer::create(parts).status().message(),
            "test: added token 'ab': got \"normalized\": true beside a normalizer, expected false");
}

TEST(Tokenizer, RejectsIdsThatNoTokenHas) {
  TokenizerParts parts = Parts({});
  parts.added_tokens = {Added(258, "x y")};
  const Tokenizer tokenizer = Tokenizer::create(parts).value();
  EXPECT_EQ(tokenizer.decode({65, 257}).status().message(),
            "test: got the id 257 at position 1, expected one of its tokens");
  EXPECT_FALSE(tokenizer.decode({259}).ok());
}

TEST(Tokenizer, RejectsVocabulariesThatDoNotFit) {
  const auto message = [](const TokenizerParts& parts) {
    return Tokenizer::create(parts).status().message();
  };
  TokenizerParts parts = Parts({});
  parts.vocabulary.ids.erase("a");
  EXPECT_EQ(message(parts),
            "test: vocabulary: got no token 'a' for the byte 97, expected one for each of the 256");
  parts = Parts({});
  parts.vocabulary.merges = {{"a", "b"}};
  EXPECT_EQ(message(parts), "test: merge 0: got 'a' and 'b', but 'ab' is not in the vocabulary");
  parts = Parts({{"a", "b"}, {"a", "b"}});
  EXPECT_EQ(message(parts), "test: merge 1: got 'a' and 'b' a second time");
  parts = Parts({});
  parts.vocabulary.ids["xy"] = 'x';
  EXPECT_EQ(message(parts),
            "test: vocabulary: got the id 120 for 'x' and for 'xy', expected one token");
  parts = Parts({});
  parts.vocabulary.ids["xy"] = 1 << 24;
  EXPECT_NE(message(parts).find("got the id 16777216 for 'xy'"), std::string::npos);
  parts = Parts({});
  parts.added_tokens = {Added(100, "xy")};
  EXPECT_EQ(message(parts), "test: added token 'xy': got the id 100, which another token has");
  parts.added_tokens = {Added(300, "a")};
  EXPECT_EQ(message(parts), "test: added token 'a': got the id 300, which another token has");
  parts.added_tokens = {Added(300, "")};
  EXPECT_NE(message(parts).find("expected some text"), std::string::npos);
  parts = Parts({});
  parts.begin_ids = {256};
  EXPECT_EQ(message(parts), "test: post_processor: got the id 256, which no token has");
}

}  // namespace
}  // namespace zg
