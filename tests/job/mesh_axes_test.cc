#include "framework/job/mesh_axes.h"

#include <gtest/gtest.h>

#include <string>

namespace zg {
namespace {

std::string Parsed(std::string_view text) {
  const StatusOr<std::vector<MeshAxis>> axes = ParseMeshAxes(text);
  return axes.ok() ? Mesh(*axes).ToString() : "error: " + axes.status().message();
}

TEST(MeshAxes, AreReadAsTheyArePrinted) {
  EXPECT_TRUE(ParseMeshAxes("")->empty());
  for (const std::string text : {"data=4", "replica=2,shard=4", "shard=3,replica=1,data=2",
                                 "data=2,tensor=2", "tensor=1/4", "data=2,tensor=2/2"}) {
    EXPECT_EQ(Parsed(text), text);
  }
}

TEST(MeshAxes, ErrorsSayWhatIsExpected) {
  const std::string form = "', expected NAME=SIZE, such as replica=2,shard=4";
  EXPECT_EQ(Parsed("4"), "error: got '4" + form);
  EXPECT_EQ(Parsed("data=2,"), "error: got '" + form);
  EXPECT_EQ(Parsed("data=2,,shard=2"), "error: got '" + form);
  EXPECT_EQ(
      Parsed("dta=2"),
      "error: got the axis 'dta', expected data or shard, over which ZeRO shards, replica, along "
      "which it keeps copies, or tensor, along which ranks share micro-batches");
  const std::string number = " ranks along the axis data, expected a number from 1 to 2^20";
  EXPECT_EQ(Parsed("data="), "error: got no" + number);
  EXPECT_EQ(Parsed("data=0"), "error: got 0" + number);
  EXPECT_EQ(Parsed("data=-1"), "error: got -1" + number);
  EXPECT_EQ(Parsed("data=2x"), "error: got 2x" + number);
  EXPECT_EQ(Parsed("data=99999999999"), "error: got 99999999999" + number);
  EXPECT_EQ(Parsed("data=2,data=2"), "error: got the axis data twice, expected one size for each");
  EXPECT_EQ(Parsed("data=2048,shard=1024"),
            "error: got 'data=2048,shard=1024', expected at most 2^20 ranks together");
  EXPECT_EQ(Parsed("tensor=2/"),
            "error: got no parts along the axis tensor, expected a number from 1 to 2^20");
  EXPECT_EQ(
      Parsed("tensor=2/6"),
      "error: tensor=2/6: got 6 parts for 2 ranks, expected 1, 2, 4 or another power of two for "
      "each rank, which adds its parts pairwise");
  EXPECT_EQ(
      Parsed("data=2/4"),
      "error: data=2/4: ranks along data compute micro-batches of their own, whose bits do not "
      "depend on the number of ranks; expected data=2");
}

}  // namespace
}  // namespace zg
