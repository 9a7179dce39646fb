// Errors and unsupported features in a tokenizer's files give an error with the place.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/text/byte_characters.h"
#include "framework/text/tokenizer.h"
#include "tests/io/test_file.h"

namespace zg {
namespace {

using Json = nlohmann::json;

// Bytes have their value as id, "ab" is 256, <s> 257.
Json GoodJson() {
  Json json = Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 257, "content": "<s>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"String": "."}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [257], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "ignore_merges": false, "vocab": {"ab": 256}, "merges": [["a", "b"]]}})");
  for (int byte = 0; byte < 256; ++byte) {
    json["model"]["vocab"][BytesAsCharacters(std::string(1, static_cast<char>(byte)))] = byte;
  }
  return json;
}

StatusOr<Tokenizer> Read(const Json& json) {
  return Tokenizer::from_json_file(WriteTestFile("tokenizer.json", json.dump()));
}

TEST(TokenizerJson, ReadsWhatIsSupported) {
  Json json = GoodJson();
  const std::vector<uint32_t> expected = {'a', ' ', 256, '.', '1', '2', 257};
  for (const Json& merges : {Json::parse(R"([["a", "b"]])"), Json::parse(R"(["a b"])")}) {
    json["model"]["merges"] = merges;
    const StatusOr<Tokenizer> tokenizer = Read(json);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    EXPECT_EQ(TextEncoder(*tokenizer).encode("a ab.12<s>").value(), expected);
    EXPECT_EQ(tokenizer->begin_ids(), std::vector<uint32_t>{257});
  }
}

struct Wrong {
  std::string pointer;  // into the good file
  std::string json;     // the JSON that replaces it
  std::string message;  // after the path
};

TEST(TokenizerJson, SaysWhatIsWrongAndWhere) {
  const std::vector<Wrong> cases = {
      {"/version", R"("2.0")", "version: got \"2.0\", expected \"1.0\""},
      {"/extra", "1", "got the key \"extra\", expected one of version, "},
      {"/truncation", R"({"max_length": 3})",
       "truncation: got an object, expected null; this is not"},
      {"/padding", "{}", "padding: got an object, expected null"},
      {"/normalizer", R"({"type": "Lowercase"})",
       "normalizer.type: got \"Lowercase\", expected NFC, or a Sequence of it"},
      {"/normalizer/normalizers/0/type", R"("NFKC")",
       "normalizer.normalizers[0].type: got \"NFKC\", expected NFC"},
      {"/pre_tokenizer", "null", "pre_tokenizer: got nothing, expected an object"},
      {"/pre_tokenizer", R"({"type": "Whitespace"})",
       "pre_tokenizer.type: got \"Whitespace\", expected ByteLevel, Split, Digits"},
      {"/pre_tokenizer/pretokenizers", "[]",
       "pre_tokenizer: got an object, expected a ByteLevel at the end of it"},
      {"/pre_tokenizer/pretokenizers/0/behavior", R"("Removed")",
       "pre_tokenizer.pretokenizers[0].behavior: got \"Removed\", expected Isolated"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("\\w+")",
       R"(pattern.Regex: got "\\w+", expected a supported regex: regex '\w+': got '\w' at byte 0)"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("(a")",
       "expected a supported regex: regex '(a': missing closing parenthesis"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Other", "1", "pattern: got the key \"Other\""},
      {"/pre_tokenizer/pretokenizers/3/add_prefix_space", "true",
       "pretokenizers[3].add_prefix_space: got true, expected false"},
      {"/pre_tokenizer/pretokenizers/1/type", R"("ByteLevel")", "got the key"},
      {"/pre_tokenizer/pretokenizers/4", R"({"type": "Digits", "individual_digits": true})",
       "pretokenizers[4].type: got \"Digits\", expected nothing after ByteLevel"},
      {"/post_processor", R"({"type": "RobertaProcessing"})",
       "post_processor.type: got \"RobertaProcessing\", expected ByteLevel, one Template"},
      {"/post_processor/single", "[]",
       "post_processor.single: got an array, expected the text once"},
      {"/post_processor/special_tokens/<s>/ids/0", "400",
       "post_processor: got the id 400, which no token has"},
      {"/decoder", "null", "decoder: got nothing, expected an object"},
      {"/decoder/type", R"("WordPiece")", "decoder.type: got \"WordPiece\", expected ByteLevel"},
      {"/added_tokens/0/single_word", "true",
       "added_tokens[0].single_word: got true, expected false"},
      {"/added_tokens/0/id", "-1", "added_tokens[0].id: got -1, expected a whole number from 0"},
      {"/added_tokens/0/normalized", "true", "added token '<s>': got \"normalized\": true beside"},
      {"/model/type", R"("Unigram")", "model.type: got \"Unigram\", expected BPE"},
      {"/model/dropout", "0.1", "model.dropout: got 0.1, expected null or 0"},
      {"/model/end_of_word_suffix", R"("</w>")",
       "model.end_of_word_suffix: got \"</w>\", expected null or \"\""},
      {"/model/byte_fallback", "true", "model.byte_fallback: got true, expected false"},
      {"/model/ignore_merges", "1", "model.ignore_merges: got 1, expected true or false"},
      {"/model/vocab/ab", "3.5", "model.vocab.ab: got 3.5, expected a whole number"},
      {"/model/vocab", "[]", "model.vocab: got an array, expected an object of ids by token"},
      {"/model/merges/0", R"("ab")",
       "model.merges[0]: got \"ab\", expected two tokens with a space"},
      {"/model/merges/0", R"(["a", "c"])",
       "merge 0: got 'a' and 'c', but 'ac' is not in the vocab"},
      {"/model/merges", "{}", "model.merges: got an object, expected an array"},
  };
  for (const Wrong& wrong : cases) {
    Json json = GoodJson();
    json[Json::json_pointer(wrong.pointer)] = Json::parse(wrong.json);
    const StatusOr<Tokenizer> tokenizer = Read(json);
    ASSERT_FALSE(tokenizer.ok()) << wrong.pointer << " " << wrong.json;
    const std::string& message = tokenizer.status().message();
    EXPECT_EQ(message.find(TestPath("tokenizer.json") + ": "), 0u) << message;
    EXPECT_NE(message.find(wrong.message), std::string::npos)
        << message << "\nexpected: " << wrong.message;
  }
}

TEST(TokenizerJson, NoMissingKeyIsACrash) {
  const Json good = GoodJson();
  const Json leaves = good.flatten();
  for (const auto& [pointer, value] : leaves.items()) {
    if (pointer.rfind("/model/vocab/", 0) == 0) continue;
    for (Json::json_pointer at(pointer); !at.empty(); at = at.parent_pointer()) {
      Json json = good;
      Json& parent = json[at.parent_pointer()];
      if (parent.is_array()) {
        json[at] = nullptr;
      } else {
        parent.erase(at.back());
      }
      const StatusOr<Tokenizer> tokenizer = Read(json);
      EXPECT_TRUE(tokenizer.ok() || !tokenizer.status().message().empty());
    }
  }
}

TEST(TokenizerJson, RejectsWhatIsNoJson) {
  const std::string path = WriteTestFile("tokenizer.json", "{\"version\": \"1.0\"");
  EXPECT_NE(Tokenizer::open(path).status().message().find("not valid JSON"), std::string::npos);
  EXPECT_NE(Tokenizer::open("/no/such").status().message().find("/no/such"), std::string::npos);
  EXPECT_NE(Tokenizer::open("/").status().message().find("/: got a directory without a tokenizer"),
            std::string::npos);
}

TEST(Gpt2Files, RejectsLinesThatAreNoMerges) {
  const std::string ids = WriteTestFile("encoder.json", GoodJson()["model"]["vocab"].dump());
  const auto read = [&](const std::string& merges) {
    return Tokenizer::from_gpt2_files(WriteTestFile("vocab.bpe", merges), ids).status();
  };
  EXPECT_TRUE(read("#version: 0.2\na b\n").ok()) << read("#version: 0.2\na b\n").ToString();
  EXPECT_TRUE(read("a b").ok());
  for (const char* line : {"ab", "a b c", " b", "a "}) {
    EXPECT_EQ(read(std::string("#version: 0.2\n") + line + "\n").message(),
              TestPath("vocab.bpe") + ": line 2: got '" + line +
                  "', expected two tokens with a space between them");
  }
  EXPECT_NE(read("a c\n").message().find("encoder.json: merge 0: got 'a' and 'c', but 'ac'"),
            std::string::npos);
}

}  // namespace
}  // namespace zg
