#include "models/text/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/io/test_file.h"

namespace zg::models {
namespace {

constexpr char kTokenizer[] = "tests/reference/tokenizer_gpt2.json";

std::string Fox() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "The quick brown fox jumps over the lazy dog.\n";
  return text;
}

TextFlags FlagsOf(const std::string& text, const std::string& tokenizer = "") {
  TextFlags flags;
  flags.data = {WriteTestFile("text.txt", text)};
  flags.tokenizer = tokenizer;
  flags.validation_fraction = 0.25;
  return flags;
}

std::string ErrorOf(const TextFlags& flags, int64_t vocabulary, int64_t context,
                    const std::string& vocabulary_flag = "") {
  return Text::Open(flags, vocabulary, context, vocabulary_flag).status().message();
}

TEST(Text, WithoutATokenizerTokensAreBytes) {
  const Text text = Text::Open(FlagsOf(Fox()), 0, 8).value();
  EXPECT_EQ(text.vocabulary(), 256);
  EXPECT_EQ(text.tokenizer(), nullptr);
  EXPECT_EQ(text.tokens().train.size(), Fox().size() * 3 / 4);
  EXPECT_EQ(text.LossLines(std::log(2.0), 10, "; no more").value(),
            "  validation  loss 0.6931 nats per token (1.000 bits); no more\n");
  EXPECT_EQ(text.Continuation({}, {'f', 'o', 'x', 7}),
            "\nIt continues the validation text with:\nfox?\n");
}

TEST(Text, WithATokenizerTheModelKnowsItsTokens) {
  const Text text = Text::Open(FlagsOf(Fox(), kTokenizer), 0, 8).value();
  ASSERT_NE(text.tokenizer(), nullptr);
  EXPECT_EQ(text.vocabulary(), text.tokenizer()->vocabulary_size());
  EXPECT_LT(text.tokens().train.size(), Fox().size() * 3 / 4);
  EXPECT_EQ(Text::Open(FlagsOf(Fox(), kTokenizer), 700, 8).value().vocabulary(), 700);

  SampleFlags sample;
  sample.prompt = "fox";
  const std::vector<int64_t> prompt = text.Prompt(sample, 8).value();
  EXPECT_EQ(text.Continuation(sample, prompt), "\nIt continues the prompt with:\nfox\n");
}

// The bits of a byte are those of its share of a token.
TEST(Text, BitsPerByteCountTheBytesOfTheTargets) {
  const Text text = Text::Open(FlagsOf(Fox(), kTokenizer), 0, 8).value();
  std::vector<uint32_t> targets;
  for (uint64_t i = 1; i <= 12; ++i) {
    targets.push_back(static_cast<uint32_t>(text.tokens().validation[i]));
  }
  const auto bytes = static_cast<double>(text.tokenizer()->decode(targets)->size());
  const std::string lines = text.LossLines(2.0, 12).value();
  const std::string first = "  validation  loss 2.0000 nats per token (2.885 bits)\n";
  EXPECT_EQ(lines.substr(0, first.size()), first);
  const std::string line = lines.substr(first.size());
  EXPECT_NE(line.find(" bits per byte, "), std::string::npos) << line;
  EXPECT_EQ(std::stod(line), std::round(1e4 * 2.0 / std::log(2.0) * 12 / bytes) / 1e4) << line;
}

TEST(Text, APromptIsTheBeginningOfTheValidationPartUnlessOneIsGiven) {
  const Text text = Text::Open(FlagsOf(Fox()), 0, 8).value();
  const std::vector<int64_t> prompt = text.Prompt({}, 8).value();
  ASSERT_EQ(prompt.size(), 5u);
  for (size_t i = 0; i < prompt.size(); ++i) EXPECT_EQ(prompt[i], text.tokens().validation[i]);
  SampleFlags sample;
  sample.prompt = "a long one";
  EXPECT_EQ(text.Prompt(sample, 8).status().message().rfind("--prompt: got a text of 10 tokens", 0),
            0u);
}

TEST(Text, TokensThatNothingExplainsAreShownAsNumbers) {
  TextFlags flags;
  flags.data = {WriteTestFile("text.bin", std::string(200, '\x05'))};  // u16: 0x0505
  const Text text = Text::Open(flags, 0, 4).value();
  EXPECT_EQ(text.vocabulary(), 0x0506);
  EXPECT_FALSE(text.is_readable());
  EXPECT_EQ(text.Continuation({}, {3, 1000}),
            "\nIt continues the validation tokens with:\n3 1000\n");
  SampleFlags sample;
  sample.prompt = "fox";
  EXPECT_EQ(text.Prompt(sample, 8).status().message(),
            "--prompt: got a text for a model of 1286 tokens, expected one of bytes; give the "
            "--tokenizer whose tokens they are");
}

TEST(Text, ErrorsNameTheFlag) {
  TextFlags none;
  none.data.clear();
  EXPECT_EQ(ErrorOf(none, 0, 8).rfind("--data: got nothing", 0), 0u);
  EXPECT_EQ(ErrorOf(FlagsOf(Fox(), "none"), 0, 8), "--tokenizer: none: no such file");
  const std::string beyond = ErrorOf(FlagsOf(Fox(), kTokenizer), 300, 8);
  EXPECT_EQ(beyond.rfind("--data with --tokenizer " + std::string(kTokenizer), 0), 0u) << beyond;
  EXPECT_NE(beyond.find("vocabulary of 300"), std::string::npos) << beyond;
  EXPECT_EQ(ErrorOf(FlagsOf(Fox()), 100, 8, "--vocab 100").rfind("--data with --vocab 100: ", 0),
            0u);
  EXPECT_EQ(ErrorOf(FlagsOf(Fox()), 0, 800).rfind("--data with --context 800: ", 0), 0u);
  TextFlags fraction = FlagsOf("ab");
  EXPECT_EQ(ErrorOf(fraction, 0, 8).rfind("--data with --validation-fraction 0.25: ", 0), 0u);
}

}  // namespace
}  // namespace zg::models
