// The activations that backward keeps if the residual stream is split along the sequence: ZeRO's
// partitioned activations (arXiv 1910.02054, section 6.1). Also, no rank sends its logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/passes/placement_rule.h"
#include "framework/runtime/plan_program.h"
#include "models/gpt/model.h"
#include "tests/testing/tensor_rules.h"
#include "zero/compile.h"

namespace zg::zero {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kContext = 16;
constexpr int64_t kVocabulary = 48;

StatusOr<Program> CompileGpt(const std::string& rules, int tensor) {
  models::Gpt model(models::GptConfig{.layers = 4,
                                      .heads = 4,
                                      .channels = 32,
                                      .context = kContext,
                                      .vocabulary = kVocabulary,
                                      .dropout = 0.1});
  Graph graph("gpt");
  graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
    const Shape shape = {kBatch, kContext};
    return cross_entropy(model(in.i64("tokens", shape)), in.i64("targets", shape));
  });
  CompileOptions options = graph.config();
  options.zero.stage = 3;
  options.mesh = {{"data", 2}, {"tensor", tensor}};
  options.placement = testing::GptTensorRules();
  ZG_ASSIGN_OR_RETURN(const std::vector<PlacementRule> more, ParsePlacementRules(rules));
  options.placement.insert(options.placement.end(), more.begin(), more.end());
  options.recompute = {"blocks.*"};
  return Compile(graph, Mesh(options.mesh), options, TargetOf(CpuKernels()));
}

constexpr char kSequence[] =
    "token_embedding -> tensor=S(1)\n"
    "blocks.*.attention -> tensor=S(1)\n"
    "blocks.*.mlp -> tensor=S(1)\n";

// The bytes on a rank that forward keeps for recomputed blocks.
int64_t KeptBytes(const Program& program) {
  int64_t bytes = 0;
  for (const ir::Node* node : program.graph.section(ir::SectionKind::kForward)->nodes) {
    for (const ir::Value* value : node->outputs) {
      const bool is_kept =
          std::any_of(value->users.begin(), value->users.end(), [](const ir::Node* user) {
            return user->section->kind == ir::SectionKind::kBackward &&
                   user->scope.rfind("blocks.", 0) == 0;
          });
      const bool is_stream = value->type.shape.num_dims() == 3;
      if (is_kept && is_stream) bytes += program.graph.LocalType(*value).bytes();
    }
  }
  return bytes;
}

TEST(PartitionedActivations, AreDividedByTheAxis) {
  const StatusOr<Program> whole = CompileGpt("", 2);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(KeptBytes(*whole), 4 * kBatch * kContext * 32 * 4);  // an input per block, in f32
  for (const int tensor : {2, 4}) {
    const StatusOr<Program> parts = CompileGpt(kSequence, tensor);
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    EXPECT_EQ(KeptBytes(*parts) * tensor, KeptBytes(*whole));
    EXPECT_LT(parts->memory.arena_bytes, whole->memory.arena_bytes);
  }
}

TEST(PartitionedActivations, NoRankHasAllLogits) {
  const StatusOr<Program> program =
      CompileGpt(std::string(kSequence) + "token_embedding tensor=S(0)\n", 2);
  ASSERT_TRUE(program.ok()) << program.status().message();
  int num_logits = 0;
  for (const ir::Node* node : program->graph.AllNodes()) {
    for (const ir::Value* value : node->outputs) {
      const Shape& shape = value->type.shape;
      if (shape.num_dims() != 3 || shape.dim(2) != kVocabulary) continue;
      EXPECT_EQ(program->graph.LocalType(*value).shape.dim(2), kVocabulary / 2) << value->name;
      ++num_logits;
    }
  }
  EXPECT_EQ(num_logits, 2);  // and their gradients
}

}  // namespace
}  // namespace zg::zero
