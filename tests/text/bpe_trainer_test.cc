#include "framework/text/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "framework/text/byte_characters.h"
#include "framework/text/tokenizer_writer.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

using Json = nlohmann::json;
using Merges = std::vector<std::pair<std::string, std::string>>;

BpeTrainerOptions Options(int64_t vocabulary_size, const std::string& pattern = "gpt2") {
  BpeTrainerOptions options;
  options.vocabulary_size = vocabulary_size;
  options.pre_tokenizer = NamedPreTokenizer(pattern).value();
  return options;
}

TokenizerParts Trained(const BpeTrainerOptions& options, const std::vector<std::string>& texts) {
  BpeTrainer trainer = BpeTrainer::Create(options).value();
  for (const std::string& text : texts) {
    const Status added = trainer.Add(text);
    EXPECT_TRUE(added.ok()) << added.ToString();
  }
  return trainer.Train();
}

TEST(BpeTrainer, JoinsTheMostFrequentPairAndThenTheNext) {
  // "ab" 5 times; then " ab" 3 times and "abc" twice.
  const TokenizerParts parts = Trained(Options(259), {"abc\nabc ab ab ab"});
  EXPECT_EQ(parts.vocabulary.merges, (Merges{{"a", "b"}, {"\u0120", "ab"}, {"ab", "c"}}));
  EXPECT_EQ(parts.vocabulary.ids.at("ab"), 256u);
  EXPECT_EQ(parts.vocabulary.ids.size(), 259u);
}

TEST(BpeTrainer, OfEquallyFrequentPairsTheSmallestIdsComeFirst) {
  const TokenizerParts parts =
      Trained(Options(258), {"cd\n", "ab\n", "cb\n", "cd\n", "ab\n", "cb\n"});
  EXPECT_EQ(parts.vocabulary.merges, (Merges{{"a", "b"}, {"c", "b"}}));
}

TEST(BpeTrainer, RarePairsAreNotJoined) {
  BpeTrainerOptions options = Options(300);
  EXPECT_EQ(Trained(options, {"abab cd"}).vocabulary.merges, (Merges{{"a", "b"}}));
  options.min_count = 3;
  EXPECT_TRUE(Trained(options, {"abab cd"}).vocabulary.merges.empty());
  options.min_count = 1;
  EXPECT_EQ(Trained(options, {"abab cd"}).vocabulary.merges.size(), 4u);
}

TEST(BpeTrainer, SpecialTokensComeFirstAndAreCutOut) {
  BpeTrainerOptions options = Options(260);
  options.special_tokens = {"<s>", "xy"};
  const TokenizerParts parts = Trained(options, {"<s>ab<s>abxy<s>ab"});
  EXPECT_EQ(parts.vocabulary.merges, (Merges{{"a", "b"}}));
  ASSERT_EQ(parts.added_tokens.size(), 2u);
  EXPECT_EQ(parts.added_tokens[1].content, "xy");
  EXPECT_EQ(parts.added_tokens[1].id, 1u);
  EXPECT_EQ(parts.vocabulary.ids.at("!"), 2u);
}

TEST(BpeTrainer, TextsThatAreNotUtf8AreLearnedToo) {
  EXPECT_EQ(Trained(Options(257), {"\xff\xfe\xff\xfe"}).vocabulary.merges,
            (Merges{{BytesAsCharacters("\xff"), BytesAsCharacters("\xfe")}}));
}

// The definition: counts all pairs again for every merge.
Merges Slowly(const std::vector<std::string>& words, size_t num_merges) {
  std::map<std::string, uint32_t> ids;
  std::vector<std::string> tokens;
  const auto id_of = [&](const std::string& token) {
    const auto [found, is_new] = ids.emplace(token, static_cast<uint32_t>(tokens.size()));
    if (is_new) tokens.push_back(token);
    return found->second;
  };
  for (int character = 'a'; character <= 'z'; ++character) id_of(std::string(1, character));
  std::vector<std::vector<uint32_t>> split;
  for (const std::string& word : words) {
    split.emplace_back();
    for (const char letter : word) split.back().push_back(id_of(std::string(1, letter)));
  }
  Merges merges;
  while (merges.size() < num_merges) {
    std::map<std::pair<uint32_t, uint32_t>, int> counts;
    for (const auto& word : split) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    const auto best = std::max_element(
        counts.begin(), counts.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });  // the first of equals
    const auto [left, right] = best->first;
    merges.emplace_back(tokens[left], tokens[right]);
    const uint32_t joined = id_of(tokens[left] + tokens[right]);
    for (auto& word : split) {
      std::vector<uint32_t> after;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool is_pair = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
        after.push_back(is_pair ? joined : word[i]);
        i += is_pair ? 1 : 0;
      }
      word = after;
    }
  }
  return merges;
}

TEST(BpeTrainer, IsTheDefinition) {
  // Words in which no letter is repeated directly: Hugging Face's counts of overlapping pairs, like
  // ours, are slightly above those of the definition.
  std::vector<std::string> words;
  std::vector<std::string> texts;
  uint32_t state = 1;
  for (int i = 0; i < 400; ++i) {
    std::string word;
    while (word.size() < static_cast<size_t>(2 + i % 7)) {
      state = state * 1664525 + 1013904223;
      const char letter = "abcdefg"[state >> 24 & 3] + static_cast<char>(word.size() % 2 * 4);
      word += letter;
    }
    words.push_back(word);
    texts.push_back(word + "\n");
  }
  const Merges expected = Slowly(words, 60);
  BpeTrainerOptions options = Options(256 + 60);
  const Merges merges = Trained(options, texts).vocabulary.merges;
  ASSERT_EQ(merges.size(), expected.size());
  for (size_t i = 0; i < merges.size(); ++i) EXPECT_EQ(merges[i], expected[i]) << i;
}

std::string ReadReference(const std::string& name) {
  std::ifstream file("tests/reference/tokenizer_" + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

// tests/reference/make_tokenizers.py trained these on the text between <|endoftext|>.
TEST(BpeTrainer, LearnsWhatHuggingFaceLearns) {
  const Json reference = Json::parse(ReadReference("gpt2.json"));
  BpeTrainerOptions options = Options(700);
  options.min_count = 1;
  options.special_tokens = {"<|endoftext|>"};
  const TokenizerParts parts = Trained(options, {ReadReference("text.txt")});
  const auto expected = reference["model"]["merges"].get<Merges>();
  ASSERT_EQ(parts.vocabulary.merges.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(parts.vocabulary.merges[i], expected[i]) << i;
  }
  const std::map<std::string, uint32_t> ids(parts.vocabulary.ids.begin(),
                                            parts.vocabulary.ids.end());
  EXPECT_EQ(ids, reference["model"]["vocab"].get<decltype(ids)>());
}

TEST(BpeTrainer, WhatIsWrittenIsReadAgain) {
  for (const NamedPattern& pattern : NamedPatterns()) {
    BpeTrainerOptions options = Options(500, std::string(pattern.name));
    options.special_tokens = {"<|endoftext|>", "\"\\\u00E9"};
    TokenizerParts parts = Trained(options, {ReadReference("text.txt")});
    parts.path = "learned";
    const std::string json = TokenizerAsJson(parts, pattern.name).value();
    const StatusOr<Tokenizer> read = Tokenizer::open(WriteTestFile("tokenizer.json", json));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->vocabulary_size(), 500);
    const std::string text = ReadReference("text.txt") + "\"\\\u00E9\xff";
    const std::vector<uint32_t> ids = TextEncoder(*read).encode(text).value();
    EXPECT_EQ(ids, TextEncoder(Tokenizer::create(parts).value()).encode(text).value());
    EXPECT_EQ(read->decode(ids).value(), text);
  }
}

TEST(BpeTrainer, RejectsWhatMakesNoVocabulary) {
  const auto message = [](const BpeTrainerOptions& options) {
    return BpeTrainer::Create(options).status().message();
  };
  EXPECT_EQ(message(Options(255)),
            "vocabulary: got 255 tokens, expected from 256 (the bytes and the special tokens) to "
            "16777216");
  for (const std::vector<std::string>& tokens :
       {std::vector<std::string>{""}, {"x", ""}, {"<s>", "<s>"}, {"\u0120"}}) {
    BpeTrainerOptions options = Options(300);
    options.special_tokens = tokens;
    EXPECT_NE(message(options).find("special token '"), std::string::npos);
  }
  EXPECT_EQ(NamedPreTokenizer("bert").status().message(),
            "pattern: got 'bert', expected one of gpt2, llama3, qwen2");
}

}  // namespace
}  // namespace zg
