// A checkpoint knows no ranks: what is exported and converted from one of a mesh, whose ranks had parts of
// the parameters, has the bytes of what comes from one that a single rank wrote of the same state.

#include <gtest/gtest.h>

#include <string>

#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/testing/tensor_rules.h"
#include "tests/zero/training.h"
#include "tools/checkpoint/commands.h"

namespace zg::checkpoint_tool {
namespace {

class CheckpointOfMeshTest : public DirectoryTest {
 protected:
  CheckpointOfMeshTest() {
    testing::RunConfig config;
    config.model = testing::TestModel::kEvenGpt;
    config.micro_batches = 4;
    config.steps = 2;
    testing::RunConfig on_mesh = config;
    on_mesh.stage = 3;
    on_mesh.mesh = {{"data", 2}, {"tensor", 2}};
    on_mesh.ranks = 4;
    on_mesh.placement = testing::GptTensorRules();
    on_mesh.placement.push_back({"token_embedding", "tensor", Sbp::S(0)});
    on_mesh.save = of_mesh_;
    Check(testing::Train(on_mesh).status());
    // One rank has no step to do, and writes what it has read.
    config.resume = of_mesh_;
    config.save = of_one_rank_;
    Check(testing::Train(config).status());
  }

  static void Check(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

  const std::string of_mesh_ = Path("of_mesh");
  const std::string of_one_rank_ = Path("of_one_rank");
};

TEST_F(CheckpointOfMeshTest, IsExportedAsThatOfOneRank) {
  for (const bool with_optimizer : {false, true}) {
    const auto exported = [&](const std::string& from) {
      ExportOptions options;
      options.from = from;
      options.to = Path("exported");
      options.with_optimizer = with_optimizer;
      options.may_replace = true;
      Check(Export(options).status());
      return ReadTestFile(options.to);
    };
    const std::string expected = exported(of_one_rank_);
    EXPECT_GT(expected.size(), 0u);
    EXPECT_TRUE(exported(of_mesh_) == expected) << "with_optimizer " << with_optimizer;
  }
}

TEST_F(CheckpointOfMeshTest, IsConvertedAsThatOfOneRank) {
  const auto converted = [&](const std::string& from) {
    ConvertOptions options;
    options.format = "gpt2";
    options.source = Side::kOurs;
    options.from = from;
    options.to = Path("theirs");
    options.heads = 2;
    options.may_replace = true;
    Check(Convert(options).status());
    return ReadTestFile(options.to + "/model.safetensors");
  };
  const std::string expected = converted(of_one_rank_);
  EXPECT_GT(expected.size(), 0u);
  EXPECT_TRUE(converted(of_mesh_) == expected);
}

}  // namespace
}  // namespace zg::checkpoint_tool
