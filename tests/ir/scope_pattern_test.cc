#include "framework/ir/scope_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zg {
namespace {

using ::testing::HasSubstr;

std::string_view ModuleOf(const std::string& pattern, std::string_view scope) {
  const StatusOr<ScopePattern> parsed = ScopePattern::Parse(pattern);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? parsed->ModuleOf(scope) : std::string_view("?");
}

TEST(ScopePatternTest, NamesTheModuleAndWhatLiesBelow) {
  EXPECT_EQ(ModuleOf("head", "head"), "head");
  EXPECT_EQ(ModuleOf("head", "head.mlp.expand"), "head");
  EXPECT_EQ(ModuleOf("blocks.*", "blocks.3"), "blocks.3");
  EXPECT_EQ(ModuleOf("blocks.*", "blocks.12.mlp.expand"), "blocks.12");
  EXPECT_EQ(ModuleOf("*.*.mlp", "blocks.12.mlp.expand"), "blocks.12.mlp");
}

TEST(ScopePatternTest, HasAsManyPartsAsThePath) {
  EXPECT_EQ(ModuleOf("head", ""), "");
  EXPECT_EQ(ModuleOf("*", ""), "");
  EXPECT_EQ(ModuleOf("blocks.*", "blocks"), "");
  EXPECT_EQ(ModuleOf("blocks", "gpt.blocks"), "");
  EXPECT_EQ(ModuleOf("head", "heads"), "");
  EXPECT_EQ(ModuleOf("heads", "head"), "");
  EXPECT_EQ(ModuleOf("*.mlp", "blocks.3.mlp"), "");
}

TEST(ScopePatternTest, AStarIsAnyCharactersOfOnePart) {
  EXPECT_EQ(ModuleOf("blocks.1*", "blocks.1"), "blocks.1");
  EXPECT_EQ(ModuleOf("blocks.1*", "blocks.17.mlp"), "blocks.17");
  EXPECT_EQ(ModuleOf("blocks.1*", "blocks.21"), "");
  EXPECT_EQ(ModuleOf("*_norm", "final_norm"), "final_norm");
  EXPECT_EQ(ModuleOf("a*b*c", "aabbcc"), "aabbcc");
  EXPECT_EQ(ModuleOf("a*b*c", "abcb"), "");
  EXPECT_EQ(ModuleOf("**", "x.y"), "x");
}

TEST(ScopePatternTest, TwoStarsAreAnyNumberOfParts) {
  EXPECT_EQ(ModuleOf("**.bias", "blocks.3.mlp.bias"), "blocks.3.mlp.bias");
  EXPECT_EQ(ModuleOf("**.bias", "bias"), "bias");
  EXPECT_EQ(ModuleOf("**.bias", "blocks.3.mlp.weight"), "");
  EXPECT_EQ(ModuleOf("blocks.**.*norm", "blocks.3.first_norm.weight"), "blocks.3.first_norm");
  EXPECT_EQ(ModuleOf("blocks.**.bias", "blocks.bias"), "blocks.bias");
  EXPECT_EQ(ModuleOf("**", ""), "");
}

TEST(ScopePatternTest, RejectsWhatNoPathIs) {
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a b", "a/b", "a?"}) {
    SCOPED_TRACE(text);
    const Status status = ScopePattern::Parse(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("got '" + std::string(text) + "', expected the path"));
  }
}

TEST(ScopePatternTest, SeveralAreJoinedByCommas) {
  const StatusOr<std::vector<ScopePattern>> patterns = ParseScopePatterns("blocks.*,head");
  ASSERT_TRUE(patterns.ok());
  ASSERT_EQ(patterns->size(), 2u);
  EXPECT_EQ((*patterns)[0].text(), "blocks.*");
  EXPECT_EQ((*patterns)[0].num_parts(), 2);
  EXPECT_EQ((*patterns)[1].text(), "head");
  EXPECT_THAT(ParseScopePatterns("blocks.*,").status().message(), HasSubstr("got ''"));
}

}  // namespace
}  // namespace zg
