#include "framework/device/cuda/lazy_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zg {
namespace {

TEST(LazyLibraryTest, FindsFunctions) {
  const LazyLibrary library("libm.so.6");
  EXPECT_EQ(library.problem(), "");
  const auto cosine = library.Find<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_EQ(library.Find<double(double)>("no_such_function"), nullptr);
}

TEST(LazyLibraryTest, ALibraryThatIsMissingIsNamed) {
  const LazyLibrary library("libzg_missing.so.1");
  EXPECT_THAT(library.problem(), ::testing::StartsWith("libzg_missing.so.1: "));
  EXPECT_THAT(library.problem(), ::testing::EndsWith("; add its directory to LD_LIBRARY_PATH"));
  EXPECT_EQ(library.Find<double(double)>("cos"), nullptr);
}

}  // namespace
}  // namespace zg
