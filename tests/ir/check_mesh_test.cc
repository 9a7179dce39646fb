#include "framework/ir/check_mesh.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zg {
namespace {

std::string ErrorOf(std::vector<MeshAxis> axes) {
  return CheckMesh(Mesh(std::move(axes))).message();
}

TEST(CheckMesh, RefusesWhatCannotBeAMesh) {
  EXPECT_EQ(ErrorOf({}), "");
  EXPECT_EQ(ErrorOf({{"replica", 2}, {"shard", 4}, {"tensor", 2, 4}}), "");
  EXPECT_EQ(ErrorOf({{"data", 2}, {"t", 0}}),
            "mesh: got the axis 't=0', expected at least 1 rank along it");
  for (const char* const name : {"", "a b", "a=1"}) {
    EXPECT_EQ(ErrorOf({{name, 1}}), "mesh: got the axis '" + std::string(name) +
                                        "=1', expected a name of letters, digits and '_'");
  }
  EXPECT_EQ(ErrorOf({{"a", 1}, {"a", 2}}),
            "mesh: got the axis 'a=2', expected a name for each axis, which this one shares");
  EXPECT_EQ(
      ErrorOf({{"a", 65536}, {"b", 65536}}),
      "mesh: got the axis 'b=65536', expected at most 2^20 ranks together with the axes before "
      "it");
  EXPECT_EQ(ErrorOf({{"tensor", 1, -2}}),
            "mesh: got the axis 'tensor=1', expected a number of parts, or 0");
  EXPECT_NE(ErrorOf({{"tensor", 1, 3}}), "");
}

}  // namespace
}  // namespace zg
