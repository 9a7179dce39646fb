// Our ids equal those of Hugging Face's `tokenizers` (tests/reference/make_tokenizers.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "framework/text/normalizer.h"
#include "framework/text/tokenizer.h"

namespace zg {
namespace {

const std::string kDirectory = "tests/reference/tokenizer_";

std::string ReadReference(const std::string& name) {
  std::ifstream file(kDirectory + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::vector<uint32_t> ExpectedIds(const std::string& name) {
  return nlohmann::json::parse(ReadReference("ids.json"))[name].get<std::vector<uint32_t>>();
}

void ExpectSameIds(const std::string& name, const Tokenizer& tokenizer) {
  const std::string text = ReadReference("text.txt");
  const StatusOr<std::vector<uint32_t>> ids = TextEncoder(tokenizer).encode(text);
  ASSERT_TRUE(ids.ok()) << ids.status().ToString();
  const std::vector<uint32_t> expected = ExpectedIds(name);
  for (size_t i = 0; i < expected.size() && i < ids->size(); ++i) {
    if ((*ids)[i] == expected[i]) continue;
    const std::string before =
        tokenizer.decode({expected.begin(), expected.begin() + static_cast<int64_t>(i)}).value();
    FAIL() << name << ": id " << i << " is " << (*ids)[i] << ", expected " << expected[i]
           << ", behind: " << before.substr(before.size() - std::min<size_t>(before.size(), 40));
  }
  EXPECT_EQ(ids->size(), expected.size()) << name;
}

TEST(TokenizerReference, SameIdsAsHuggingFace) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "smollm"}) {
    const StatusOr<Tokenizer> tokenizer = Tokenizer::open(kDirectory + name + ".json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    ExpectSameIds(name, *tokenizer);
  }
  const StatusOr<Tokenizer> two_files =
      Tokenizer::from_gpt2_files(kDirectory + "gpt2_merges.txt", kDirectory + "gpt2_vocab.json");
  ASSERT_TRUE(two_files.ok()) << two_files.status().ToString();
  ExpectSameIds("gpt2", *two_files);
}

TEST(TokenizerReference, DecodingGivesTheBytes) {
  const std::string text = ReadReference("text.txt");
  for (const char* name : {"gpt2", "llama3"}) {
    const Tokenizer tokenizer = Tokenizer::open(kDirectory + name + ".json").value();
    EXPECT_EQ(tokenizer.decode(ExpectedIds(name)).value(), text) << name;
  }
  // No <mask> here, because it takes white space.
  const std::string accents = "Cafe\u0301 \u212B <tool> o\u0302\u0323\n";
  const Tokenizer tokenizer = Tokenizer::open(kDirectory + "qwen2.json").value();
  const std::vector<uint32_t> ids = TextEncoder(tokenizer).encode(accents).value();
  EXPECT_EQ(tokenizer.decode(ids).value(), ToNfc(accents).value());
}

TEST(TokenizerReference, KnowsWhatGoesAroundAText) {
  const Tokenizer llama = Tokenizer::open(kDirectory + "llama3.json").value();
  EXPECT_EQ(llama.begin_ids(), std::vector<uint32_t>{*llama.added_token_id("<|begin_of_text|>")});
  EXPECT_TRUE(llama.end_ids().empty());
  const Tokenizer gpt2 = Tokenizer::open(kDirectory + "gpt2.json").value();
  EXPECT_TRUE(gpt2.begin_ids().empty());
}

}  // namespace
}  // namespace zg
