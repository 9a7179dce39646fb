// Characters, normal form and regular expressions, below the tokenizer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/text/byte_characters.h"
#include "framework/text/normalizer.h"
#include "framework/text/oniguruma_pattern.h"
#include "framework/text/regex.h"
#include "framework/text/utf8.h"

namespace zg {
namespace {

TEST(Utf8, EveryCharacterIsReadAsItIsWritten) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    std::string text;
    AppendUtf8(code, &text);
    const Utf8Character character = FirstUtf8Character(text);
    if (code >= 0xD800 && code < 0xE000) {
      ASSERT_EQ(character.bytes, 0) << code;
      ASSERT_EQ(InvalidUtf8Bytes(text + "a"), text.size()) << code;
    } else {
      ASSERT_EQ(character.code, code);
      ASSERT_EQ(character.bytes, static_cast<int>(text.size())) << code;
      ASSERT_EQ(ValidUtf8Bytes(text + "\xff"), text.size()) << code;
      ASSERT_EQ(ValidUtf8Bytes(text.substr(0, text.size() - 1)), 0u) << code;
    }
  }
}

TEST(Utf8, InvalidBytesEndWhereACharacterBegins) {
  EXPECT_EQ(FirstUtf8Character("\xc0\x80").bytes, 0) << "overlong";
  EXPECT_EQ(FirstUtf8Character("\xe0\x9f\xbf").bytes, 0) << "overlong";
  EXPECT_EQ(FirstUtf8Character("\xf4\x90\x80\x80").bytes, 0) << "above U+10FFFF";
  EXPECT_EQ(InvalidUtf8Bytes("\xe2\x82\xc3\xa9"), 2u);
  EXPECT_EQ(InvalidUtf8Bytes("\x80\xff"), 2u);
  EXPECT_EQ(InvalidUtf8Bytes("a"), 0u);
  EXPECT_EQ(ValidUtf8Bytes("12345678901234567\xc3\xa9\xc3"), 19u);
}

TEST(ByteCharacters, AreThoseOfGpt2) {
  EXPECT_EQ(BytesAsCharacters(" the\n"), "\u0120the\u010A");
  EXPECT_EQ(BytesAsCharacters("\xff\x7f\xad\xa1"), "\u00FF\u0121\u0143\u00A1");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(CharactersAsBytes(BytesAsCharacters(all)), all);
  EXPECT_EQ(CharactersAsBytes("a b"), std::nullopt);
  EXPECT_EQ(CharactersAsBytes("\u0144"), std::nullopt);
}

TEST(Nfc, JoinsAccentsAlsoAcrossLongTexts) {
  EXPECT_EQ(ToNfc("e\u0301 \u212B \u1112\u1161\u11AB").value(), "\u00E9 \u00C5 \uD55C");
  std::string text, normal;
  for (int i = 0; i < 50'000; ++i) {
    text += i % 100 == 0 ? "\n" : "o\u0302\u0323";
    normal += i % 100 == 0 ? "\n" : "\u1ED9";
  }
  EXPECT_EQ(ToNfc(text).value(), normal);
  EXPECT_TRUE(IsSurelyNfc("caf\u00E9"));
  EXPECT_FALSE(IsSurelyNfc("e\u0301"));
}

std::vector<std::string> AllMatches(const std::string& pattern, const std::string& text) {
  RegexMatcher matcher(Regex::Compile(pattern).value());
  std::vector<std::string> found;
  RegexMatch match;
  for (size_t at = 0; matcher.Find(text, at, &match); at = match.end) {
    found.push_back(text.substr(match.begin, match.end - match.begin));
  }
  EXPECT_TRUE(matcher.status().ok()) << matcher.status().ToString();
  return found;
}

TEST(Regex, KnowsUnicodeAndLookahead) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(AllMatches(R"(\p{L}+)", "d\u00E9j\u00E0, \u4E2D1"),
            (Words{"d\u00E9j\u00E0", "\u4E2D"}));
  EXPECT_EQ(AllMatches(R"( +(?! ))", "a   b"), (Words{"   "}));
  EXPECT_EQ(AllMatches(R"((?i:'s))", "'S'\u017F"), (Words{"'S", "'\u017F"}));
}

TEST(Regex, RejectsWhatIsNone) {
  EXPECT_EQ(Regex::Compile("a(b").status().message(),
            "regex 'a(b': missing closing parenthesis at byte 3");
  EXPECT_EQ(Regex::Compile("a*").status().message(),
            "regex 'a*': matches the empty text, expected at least one character");
  EXPECT_FALSE(Regex::Literal("").ok());
  EXPECT_EQ(AllMatches("a", "").size(), 0u);
}

TEST(OnigurumaPattern, TranslatesWhatDiffers) {
  EXPECT_EQ(PcreOfOniguruma(R"([^\s\p{L}]\S\d\u3042[\]\-]|\.(?!a)x{1,3})").value(),
            R"([^\p{White_Space}\p{L}]\P{White_Space}\p{Nd}\x{3042}[\]\-]|\.(?!a)x{1,3})");
  // PCRE2's own \s includes U+180E, but Unicode's white space does not.
  EXPECT_EQ(AllMatches(PcreOfOniguruma(R"(\s)").value(), "\u180E\u0085\u2003").size(), 2u);
}

TEST(OnigurumaPattern, RejectsWhatMeansSomethingElse) {
  for (const char* pattern :
       {R"(\w)", R"(\h)", R"(a\b)", "^a", "a$", "(?<=a)b", "(?m:a)", "[a[b]]", "[a&&b]", "[]a]",
        "a{1,2}+", "a{,2}", "(*UTF)a", R"(\x41)", R"(\pL)", R"(\u12)", "a\\"}) {
    const StatusOr<std::string> translated = PcreOfOniguruma(pattern);
    ASSERT_FALSE(translated.ok()) << pattern;
    EXPECT_NE(translated.status().message().find("at byte"), std::string::npos) << pattern;
  }
  EXPECT_EQ(
      PcreOfOniguruma(R"(ab\w)").status().message(),
      R"(regex 'ab\w': got '\w' at byte 2, expected what means the same to Oniguruma and PCRE2)");
}

}  // namespace
}  // namespace zg
