#include "framework/job/flag_names.h"

#include <gtest/gtest.h>

namespace zg {
namespace {

TEST(FlagNames, SettingsBecomeFlags) {
  EXPECT_EQ(WithFlagNames("leave `save_async` out, or use `device=cpu`"),
            "leave --save-async out, or use --device cpu");
  EXPECT_EQ(WithFlagNames("`record`: no"), "--cuda-graph: no");
  EXPECT_EQ(WithFlagNames("`gemm_choices`: no"), "--gemm-choices: no");
  EXPECT_EQ(WithFlagNames("give `save=DIR`"), "give --save DIR");
}

TEST(FlagNames, OtherTextsStay) {
  for (const char* text : {"", "no quotes", "`unknown` and `a=b`", "`", "a ` b", "``"}) {
    EXPECT_EQ(WithFlagNames(text), text);
  }
  EXPECT_EQ(WithFlagNames("`x`save`"), "`x--save");
}

}  // namespace
}  // namespace zg
