#include "framework/runtime/local_elements.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/ir/builder.h"
#include "framework/ops/register_all_ops.h"

namespace zg {
namespace {

std::vector<int64_t> ElementsOf(const LocalElements& elements) {
  std::vector<int64_t> all;
  elements.ForEachRun([&](int64_t element, int64_t local, int64_t length) {
    EXPECT_EQ(local, static_cast<int64_t>(all.size()));
    for (int64_t i = 0; i < length; ++i) all.push_back(element + i);
  });
  EXPECT_EQ(static_cast<int64_t>(all.size()), elements.count);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(elements.ElementAt(i), all[i]);
  return all;
}

// "weight" f32[4,12] in a bucket of two parts, at element 5 of each, cut into two shards.
class LocalElementsTest : public ::testing::Test {
 protected:
  LocalElementsTest() : graph_("test", Mesh({{"data", 2}, {"tensor", 2}})) { RegisterAllOps(); }

  const ir::StoredTensor& Store(Sbp split) {
    ir::Builder builder(&graph_, graph_.section(ir::SectionKind::kVariables));
    ir::Value* bucket = builder.Storage("bucket", {DType::kF32, Shape{2, 32}}, Role::kParameter);
    bucket->sbp = {Sbp::S(1), Sbp::S(0)};
    graph_.tensors().push_back(
        {"weight", {DType::kF32, Shape{4, 12}}, {}, bucket, 5, "", {Sbp::B(), split}});
    return graph_.tensors().back();
  }

  ir::Graph graph_;
};

TEST_F(LocalElementsTest, RowsOfAPartCutByAShard) {
  const ir::StoredTensor& tensor = Store(Sbp::S(1));
  // Rank 1, the second along tensor, has columns 6 to 11; its first shard holds 11 of them.
  EXPECT_EQ(ElementsOf(LocalElementsOf(graph_, tensor, 1)),
            (std::vector<int64_t>{6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22}));
  EXPECT_EQ(LocalElementsOf(graph_, tensor, 1).storage_offset, 5);
  EXPECT_EQ(ElementsOf(LocalElementsOf(graph_, tensor, 3)),
            (std::vector<int64_t>{23, 30, 31, 32, 33, 34, 35, 42, 43, 44, 45, 46, 47}));
  EXPECT_EQ(LocalElementsOf(graph_, tensor, 3).storage_offset, 0);
}

TEST_F(LocalElementsTest, PartsOfGroups) {
  const ir::StoredTensor& tensor = Store(Sbp::S(1, 3));
  // Three groups of four columns, of each two: 2 3, 6 7, 10 11.
  EXPECT_EQ(ElementsOf(LocalElementsOf(graph_, tensor, 1)),
            (std::vector<int64_t>{2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22}));
}

TEST_F(LocalElementsTest, EveryElementOnce) {
  for (const Sbp split : {Sbp::S(0), Sbp::S(1), Sbp::S(0, 2), Sbp::S(1, 3)}) {
    ir::Graph fresh("test", graph_.mesh());
    graph_ = std::move(fresh);
    const ir::StoredTensor& tensor = Store(split);
    std::vector<int> seen(48);
    for (int rank = 0; rank < 4; ++rank) {
      for (const int64_t element : ElementsOf(LocalElementsOf(graph_, tensor, rank))) {
        ++seen[element];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(48, 1)) << split.ToString();
  }
}

TEST_F(LocalElementsTest, WithinARange) {
  const LocalElements elements = LocalElementsOf(graph_, Store(Sbp::S(1)), 3);
  for (int64_t first = 0; first <= 48; ++first) {
    for (int64_t last = first; last <= 48; ++last) {
      std::vector<int64_t> expected;
      for (const int64_t element : ElementsOf(elements)) {
        if (first <= element && element < last) expected.push_back(element);
      }
      EXPECT_EQ(ElementsOf(elements.Within(first, last)), expected) << first << " to " << last;
    }
  }
}

}  // namespace
}  // namespace zg
