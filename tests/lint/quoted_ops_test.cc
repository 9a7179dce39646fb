#include "tests/lint/quoted_ops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/register_all_ops.h"
#include "tests/lint/source_tree.h"

namespace zg::testing {
namespace {

// Words with another meaning in that place than the op of that name.
struct OtherMeaning {
  std::string_view path;  // a file, or a folder with a slash at its end
  std::string_view word;  // empty: all words
};
constexpr OtherMeaning kOtherMeanings[] = {
    // Calls of a communicator and their operands.
    {"framework/comm/", ""},
    // Modules and flags. Models call functions, and do not see ops.
    {"models/", ""},
    {"tools/checkpoint/convert.cc", "dropout"},
    {"tools/plan/plan_options.cc", "dropout"},
    // Learning-rate schedules.
    {"framework/job/", "constant"},
    {"framework/job/", "linear"},
    {"framework/optim/schedule.cc", "constant"},
    {"framework/optim/schedule.cc", "linear"},
    {"framework/train/", "constant"},
    {"framework/text/", ""},  // keys of tokenizer files; there is no graph
    {"zero/training_run.cc", "constant"},
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
    // Functions of Vars, in their errors; they append nodes and inspect none.
    {"framework/nn/attention.cc", ""},
    {"framework/nn/conditions.cc", ""},
    {"framework/nn/extremes.cc", ""},
    {"framework/nn/images.cc", ""},
    {"framework/nn/indexing.cc", ""},
    {"framework/nn/losses.cc", ""},
    {"framework/nn/products.cc", ""},
    {"framework/nn/random.cc", ""},
    {"framework/nn/reductions.cc", ""},
    {"framework/nn/shapes.cc", ""},
};

bool MeansSomethingElse(const std::string& path, const std::string& word) {
  for (const OtherMeaning& other : kOtherMeanings) {
    const bool is_there =
        other.path.back() == '/' ? path.rfind(other.path, 0) == 0 : path == other.path;
    if (is_there && (other.word.empty() || other.word == word)) return true;
  }
  return false;
}

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
  const int num_files = ForEachSource([&](const std::string& path, const std::string& text) {
    if (KnowsOps(path)) return;
    for (const QuotedOp& quoted : FindQuotedOps(text, ops)) {
      if (MeansSomethingElse(path, quoted.op)) continue;
      ADD_FAILURE() << fmt::format(
          "{}:{}: quotes the op \"{}\"; ask its traits (framework/ir/op_traits.h), or take its "
          "name from framework/ops/op_names.h",
          path, quoted.line, quoted.op);
    }
  });
  EXPECT_GT(num_files, 100) << "the tree was not found";
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

TEST(QuotedOps, OtherWordsAndCommentsDoNotCount) {
  EXPECT_EQ(
      Found("// as \"cast\" does\nlog(\"add it\"); x = \"added\"; y = \"a // b\"; // \"add\""), "");
}

}  // namespace
}  // namespace zg::testing
