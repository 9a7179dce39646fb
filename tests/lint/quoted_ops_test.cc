#include "tests/lint/quoted_ops.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/register_all_ops.h"
#include "tests/lint/source_tree.h"

namespace zg::testing {
namespace {

// Words with another meaning in that place than the op of that name, or constants of ops that may be
// named there.
struct Allowed {
  std::string_view path;  // a file, or a folder with a slash at its end
  std::string_view word;  // empty: all words
};
constexpr Allowed kOtherMeanings[] = {
    // Calls of a communicator and their operands.
    {"framework/comm/", ""},
    // Modules and flags. Models call functions, and do not see ops.
    {"models/", ""},
    {"tools/checkpoint/convert.cc", "dropout"},
    {"tools/plan/plan_options.cc", "dropout"},
    {"tools/tune/outcome_text.cc", "round"},
    // Learning-rate schedules.
    {"framework/job/", "constant"},
    {"framework/job/", "linear"},
    {"framework/optim/schedule.cc", "constant"},
    {"framework/optim/schedule.cc", "linear"},
    {"framework/train/", "constant"},
    {"framework/text/", ""},  // keys of tokenizer files; there is no graph
    // Names of values, and of operations in messages.
    {"framework/passes/build_backward.cc", "loss_seed"},
    {"framework/eager/session_training.cc", "loss_seed"},
    {"framework/nn/optimizers.cc", "sum"},
    // Initializers.
    {"framework/ir/parser.cc", "constant"},
    {"framework/ir/parser.cc", "normal"},
    {"framework/ir/parser.cc", "uniform"},
    {"zero/clip_gradients.cc", "square_sum"},
    {"framework/nn/inputs.cc", "input"},
    // Attributes, and names of functions that are made of several ops.
    {"framework/nn/attention.cc", "scale"},
    {"framework/nn/conditions.cc", "where"},
    // The ops that functions of floating-point and i64 operands append.
    {"framework/nn/functions.cc", ""},
    {"framework/nn/images.cc", "linear"},
    {"framework/nn/linear_algebra.cc", "solve"},
    {"framework/nn/linear_algebra.cc", "solve_triangular"},
    {"framework/nn/reductions.cc", "sum"},
};

// Constants of framework/ops/op_names.h: passes that make such ops, or that look for them by what
// they compute, as fuse-gelu does; and what is counted by name.
constexpr Allowed kNamedOps[] = {
    {"framework/passes/boxing.cc", ""},  // the table that chooses one
    {"framework/passes/drop_gradient_marks.cc", ""},
    {"framework/passes/fuse_additions.cc", "kAdd"},
    {"framework/passes/fuse_additions.cc", "kLinearGradBias"},
    {"framework/passes/fuse_gelu.cc", ""},
    {"framework/passes/fuse_loss_gradient.cc", ""},
    {"framework/passes/insert_collectives.cc", "kAllReduce"},
    {"framework/passes/insert_collectives.cc", "kLocalSlice"},
    {"framework/passes/insert_collectives.cc", "kReduceScatter"},
    {"framework/passes/keep_caches.cc", ""},
    {"framework/passes/mixed_precision.cc", "kOtherWeights"},
    {"framework/train/trainer_values.cc", "kFusedElementwise"},
    {"zero/eval_weights.cc", "kOtherWeights"},
    {"zero/clip_gradients.cc", "kGuardedUpdateControl"},
    {"zero/clip_gradients.cc", "kScaledUpdateControl"},
    {"zero/clip_gradients.cc", "kUpdateControl"},
    {"zero/sum_factors.cc", "kFactorSums"},
    {"zero/sum_factors.cc", "kFactoredStepSums"},
    {"zero/sum_factors.cc", "kTensorSquareSums"},
    {"zero/tensor_norms.cc", "kNormedUpdate"},
    {"framework/runtime/boxing/boxing_kernel.cc", ""},  // kernels of the runtime
    // Traffic by op.
    {"framework/passes/predict_traffic.cc", "kAllGather"},
    {"tools/plan/fit_estimate.cc", "kReduceScatter"},
};

// A list of what is allowed, and which of it occurs.
class AllowList {
 public:
  template <size_t N>
  explicit AllowList(const Allowed (&entries)[N])
      : entries_(std::begin(entries), std::end(entries)), occurs_(N) {}

  bool Has(const std::string& path, const std::string& word) {
    bool has = false;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Allowed& entry = entries_[i];
      const bool is_there =
          entry.path.back() == '/' ? path.rfind(entry.path, 0) == 0 : path == entry.path;
      if (!is_there || !(entry.word.empty() || entry.word == word)) continue;
      has = occurs_[i] = true;
    }
    return has;
  }

  // "framework/optim/schedule.cc linear" for each entry that nothing needs any more.
  std::vector<std::string> Unused() const {
    std::vector<std::string> unused;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!occurs_[i]) unused.push_back(fmt::format("{} {}", entries_[i].path, entries_[i].word));
    }
    return unused;
  }

 private:
  std::vector<Allowed> entries_;
  std::vector<bool> occurs_;
};

// Code that may compare names: the ops, their kernels, benchmarks of single ops.
bool KnowsOps(const std::string& path) {
  for (const char* folder : {"framework/ops/", "framework/kernels/", "tools/bench/"}) {
    if (path.rfind(folder, 0) == 0) return true;
  }
  return false;
}

std::set<std::string> OpNames() {
  RegisterAllOps();
  std::set<std::string> names;
  for (const ir::OpDef* op : ir::OpRegistry::Global().All()) names.insert(op->name);
  return names;
}

TEST(QuotedOps, AreNotComparedOutsideOfOpsAndKernels) {
  const std::set<std::string> ops = OpNames();
  AllowList other_meanings(kOtherMeanings);
  AllowList named_ops(kNamedOps);
  const int num_files = ForEachSource([&](const std::string& path, const std::string& text) {
    if (KnowsOps(path)) return;
    for (const QuotedOp& quoted : FindQuotedOps(text, ops)) {
      if (other_meanings.Has(path, quoted.op)) continue;
      ADD_FAILURE() << fmt::format(
          "{}:{}: quotes the op \"{}\"; ask its traits (framework/ir/op_traits.h), or take its "
          "name from framework/ops/op_names.h",
          path, quoted.line, quoted.op);
    }
    for (const QuotedOp& named : FindNamedOps(text)) {
      if (named_ops.Has(path, named.op)) continue;
      ADD_FAILURE() << fmt::format(
          "{}:{}: names the op {} without making it; ask its traits (framework/ir/op_traits.h), or "
          "if the file is about this op, let kNamedOps in tests/lint/quoted_ops_test.cc say so",
          path, named.line, named.op);
    }
  });
  EXPECT_GT(num_files, 100) << "the tree was not found";
  EXPECT_THAT(other_meanings.Unused(), ::testing::IsEmpty()) << "leave them out of kOtherMeanings";
  EXPECT_THAT(named_ops.Unused(), ::testing::IsEmpty()) << "leave them out of kNamedOps";
}

std::string Found(std::string_view text) {
  std::string found;
  for (const QuotedOp& quoted : FindQuotedOps(text, {"add", "cast", "variable"})) {
    found += fmt::format("{}:{} ", quoted.line, quoted.op);
  }
  return found;
}

TEST(QuotedOps, AreFound) {
  EXPECT_EQ(Found("if (op->name == \"cast\") return;"), "1:cast ");
  EXPECT_EQ(Found("\nconst std::set<std::string> ops = {\"add\",\n  \"cast\"};"), "2:add 3:cast ");
  EXPECT_EQ(Found("for (Node* node : graph.NodesOf(\"variable\")) {"), "1:variable ");
  EXPECT_EQ(Found("std::string op = is_wide ? \"cast\" : \"add\";"), "1:cast 1:add ");
}

TEST(QuotedOps, MakeNodes) {
  EXPECT_EQ(Found("builder.Op(\"cast\", {x}); builder_.Ops(\n    \"add\", {x, y});"), "");
  EXPECT_EQ(Found("return Append(\"add\", {a, b});"), "");
  EXPECT_EQ(Found("const nn::Trace::Function called(\"add\");"), "");
  EXPECT_EQ(Found("graph.AddNode(graph.section(kind),\n  {\"variable\", {}, {{\"dtype\", f32}}});"),
            "");
  EXPECT_EQ(Found("graph.AddNode(section, spec); if (name == \"variable\") {"), "1:variable ");
}

TEST(QuotedOps, FunctionsNameThemselvesInErrors) {
  EXPECT_EQ(Found("return Checked(\"cast\", x, [&] { return DimOf(\"cast\", x, dim); });"), "");
  EXPECT_EQ(Found("return status.WithContext(Caller(\"cast\", x));"), "");
}

TEST(QuotedOps, ConstantsAreFoundWhereTheyMakeNoNode) {
  std::string found;
  for (const QuotedOp& named : FindNamedOps("if (op->name == op_names::kGelu) {\n"
                                            "  builder.Op(op_names::kGelu, {x});\n"
                                            "  for (Node* node : graph.NodesOf(op_names::kAdd)) {"
                                            "// op_names::kWait")) {
    found += fmt::format("{}:{} ", named.line, named.op);
  }
  EXPECT_EQ(found, "1:kGelu 3:kAdd ");
}

TEST(QuotedOps, AnAllowedWordThatDoesNotOccurIsTold) {
  constexpr Allowed kWords[] = {{"a.cc", "add"}, {"b/", ""}, {"c.cc", "cast"}};
  AllowList words(kWords);
  EXPECT_TRUE(words.Has("a.cc", "add"));
  EXPECT_TRUE(words.Has("b/c.cc", "cast"));
  EXPECT_FALSE(words.Has("c.cc", "add"));
  EXPECT_THAT(words.Unused(), ::testing::ElementsAre("c.cc cast"));
}

TEST(QuotedOps, OtherWordsAndCommentsDoNotCount) {
  EXPECT_EQ(
      Found("// as \"cast\" does\nlog(\"add it\"); x = \"added\"; y = \"a // b\"; // \"add\""), "");
}

}  // namespace
}  // namespace zg::testing
