// DirectoryTest: a test with its own path in the temporary directory. Nothing exists there at its
// begin, and nothing remains.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/io/test_file.h"

namespace zg {

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() : root_(TestPath(Name())) { std::filesystem::remove_all(root_); }
  ~DirectoryTest() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }

  const std::string root_;

 private:
  static std::string Name() {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test.test_suite_name()) + "." + test.name();
    std::replace(name.begin(), name.end(), '/', '_');  // for a test with parameters
    return name;
  }
};

}  // namespace zg
