// The golden runner itself: it must fail when a case is wrong.
#include "tests/testing/golden.h"

#include <gtest/gtest.h>

#include "framework/ir/builder.h"
#include "framework/ops/register_all_ops.h"

namespace zg::testing {
namespace {

// Adds relu to the value that the first `output` reads, and so changes something in every run.
class AddRelu : public Pass {
 public:
  std::string_view name() const override { return "add-relu"; }
  StatusOr<bool> Run(ir::Graph& graph) const override {
    ir::Node* output = graph.NodesOf("output").at(0);
    ir::Builder builder(&graph, output->section);
    builder.InsertBefore(output);
    graph.ReplaceInput(output, 0, builder.Op("relu", {output->inputs[0]}, {}, "y"));
    return true;
  }
};

class Fail : public Pass {
 public:
  explicit Fail(std::string message) : message_(std::move(message)) {}
  std::string_view name() const override { return "fail"; }
  StatusOr<bool> Run(ir::Graph&) const override { return InvalidArgument("{}", message_); }

 private:
  std::string message_;
};

class GoldenTest : public ::testing::Test {
 protected:
  GoldenTest() {
    RegisterAllOps();
    registry_.Register(SimplePass<AddRelu>("Add a relu."));
    PassDef fail;
    fail.name = "fail";
    fail.options = {{"message", std::string("no luck")}};
    fail.make = [](const ir::Attributes& options) -> StatusOr<std::unique_ptr<Pass>> {
      return std::unique_ptr<Pass>(std::make_unique<Fail>(options.String("message")));
    };
    registry_.Register(std::move(fail));
  }

  // The result of the file's only case.
  std::string Check(const std::string& text) {
    const StatusOr<std::vector<GoldenCase>> cases = ParseGoldenFile(text, "file.graph");
    if (!cases.ok()) return cases.status().message();
    EXPECT_EQ(cases->size(), 1u);
    return CheckGoldenCase(cases->at(0), registry_);
  }
  std::string Update(const std::string& text) {
    const StatusOr<std::string> updated = UpdateGoldenFile(text, "file.graph", registry_);
    return updated.ok() ? *updated : updated.status().message();
  }
  static std::string FileError(const std::string& text) {
    const StatusOr<std::vector<GoldenCase>> cases = ParseGoldenFile(text, "file.graph");
    return cases.ok() ? "no error" : cases.status().message();
  }

  PassRegistry registry_;
};

const std::string kInput = R"(mesh(data=1)
  %x: f32[]
  output %x (name="x")
)";
const std::string kChanges = R"(@@ forward:
   %x: f32[]
-  output %x (name="x")
+  %y: f32[] = relu %x
+  output %y (name="x")
)";

TEST_F(GoldenTest, TheExpectedChangesPass) {
  EXPECT_EQ(Check("// A comment.\n// RUN: add-relu\n" + kInput + "// EXPECT-DIFF\n" + kChanges),
            "");
  EXPECT_EQ(Check("// RUN: add-relu\n\n" + kInput + "\n// EXPECT-DIFF\n\n" + kChanges + "\n\n"),
            "");
}

TEST_F(GoldenTest, OtherChangesFail) {
  EXPECT_EQ(Check("// RUN: add-relu add-relu\n" + kInput + "// EXPECT-DIFF\n" + kChanges),
            R"(file.graph:1: got other changes
@@ forward:
   %x: f32[]
-  output %x (name="x")
+  %y: f32[] = relu %x
+  %y_1: f32[] = relu %y
+  output %y_1 (name="x")
)");
}

TEST_F(GoldenTest, ExecutionTellsWhatAPassChanged) {
  // relu makes another value of a negative one; a second relu does not.
  EXPECT_NE(Check(R"(// RUN: add-relu
// RUN-EXECUTE
mesh(data=1)
  %x: f32[16]
  output %x (name="x")
// EXPECT-DIFF
@@ forward:
   %x: f32[16]
-  output %x (name="x")
+  %y: f32[16] = relu %x
+  output %y (name="x")
)")
                .find("add-relu on 1 ranks: forward output x, time 0: element "),
            std::string::npos);
  const std::string positive = R"(mesh(data=1)
  %x: f32[4]
  %r: f32[4] = relu %x
  output %r (name="x")
)";
  const std::string changes = R"(@@ forward:
   %r: f32[4] = relu %x
-  output %r (name="x")
+  %y: f32[4] = relu %r
+  output %y (name="x")
)";
  EXPECT_EQ(Check("// RUN: add-relu\n// RUN-EXECUTE\n" + positive + "// EXPECT-DIFF\n" + changes),
            "");
}

TEST_F(GoldenTest, Unchanged) {
  EXPECT_EQ(Check("// RUN:\n" + kInput + "// EXPECT-UNCHANGED\n\n"), "");
  EXPECT_NE(Check("// RUN: add-relu\n" + kInput + "// EXPECT-UNCHANGED\n"), "");
}

TEST_F(GoldenTest, AnExpectationIsNeeded) {
  EXPECT_EQ(Check("// RUN:\n" + kInput),
            "file.graph:1: the case says nothing about what to expect; it gives\n" + kInput);
}

TEST_F(GoldenTest, ErrorsOfPasses) {
  EXPECT_EQ(Check("// RUN: fail\n" + kInput + "// EXPECT-ERROR: no luck"), "");
  EXPECT_EQ(Check("// RUN: fail(message=\"bad\")\n" + kInput + "// EXPECT-ERROR: fail: bad\n"), "");
  EXPECT_EQ(Check("// RUN: fail\n" + kInput + "// EXPECT-ERROR: luck!"),
            "file.graph:1: expected an error with: luck!\ngot: fail: no luck\n");
  EXPECT_EQ(Check("// RUN:\n" + kInput + "// EXPECT-ERROR: luck"),
            "file.graph:1: expected an error with: luck\ngot:\n" + kInput);
  EXPECT_EQ(Check("// RUN: fail\n" + kInput + "// EXPECT-DIFF\n" + kChanges),
            "file.graph:1: fail: no luck\n");
}

TEST_F(GoldenTest, ErrorsOfTheTextSayWhereItIsInTheFile) {
  const std::string bad = "\n// RUN:\ngraph \"g\" mesh(data=1) micro_batches=1\nfoo:\n";
  EXPECT_EQ(Check(bad + "// EXPECT-ERROR: file.graph:4:1: got section 'foo'"), "");
  EXPECT_EQ(Check(bad + "// EXPECT-UNCHANGED").rfind("file.graph:1: file.graph:4:1: got sec", 0),
            0u);
}

TEST_F(GoldenTest, ErrorsOfTheRunLine) {
  EXPECT_EQ(Check("// RUN: add-relu sub-relu\n" + kInput + "// EXPECT-UNCHANGED"),
            "file.graph:1: // RUN:10: unknown pass 'sub-relu', expected one of add-relu, fail\n");
  EXPECT_EQ(Check("// RUN: fail(text=1)\n" + kInput + "// EXPECT-UNCHANGED"),
            "file.graph:1: // RUN:1: fail: unknown attribute 'text'\n");
}

TEST_F(GoldenTest, TheInputIsAsPrinted) {
  std::string input = kInput;
  input.replace(input.find("  output"), 2, "");
  EXPECT_EQ(Check("// RUN:\n" + input + "// EXPECT-UNCHANGED\n"),
            R"(file.graph:1: the input is not as it is printed
 mesh(data=1)
   %x: f32[]
-  output %x (name="x")
+output %x (name="x")
)");
}

TEST_F(GoldenTest, TwiceMustChangeNothing) {
  EXPECT_EQ(Check("// RUN:\n// RUN-TWICE\n" + kInput + "// EXPECT-UNCHANGED"), "");
  EXPECT_NE(Check("// RUN: add-relu\n// RUN-TWICE\n" + kInput + "// EXPECT-DIFF\n" + kChanges)
                .find("the second run changed the graph"),
            std::string::npos);
}

TEST_F(GoldenTest, CasesOfAFile) {
  const std::string one = "// RUN:\n" + kInput + "// EXPECT-UNCHANGED\n";  // 5 lines
  const StatusOr<std::vector<GoldenCase>> cases =
      ParseGoldenFile(one + "// -----\n" + one + "\n// -----\n\n" + one, "file.graph");
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 3u);
  EXPECT_EQ(cases->at(0).line, 1);
  EXPECT_EQ(cases->at(1).line, 7);
  EXPECT_EQ(cases->at(2).line, 14);
}

TEST_F(GoldenTest, FilesWithMistakes) {
  EXPECT_EQ(FileError(""), "file.graph:1: a case without '// RUN:'");
  EXPECT_EQ(FileError("// RUN:\n// RUN:\n"), "file.graph:2: a second // RUN: in one case");
  EXPECT_EQ(FileError("// RUN:\n// -----\n"), "file.graph:3: a case without '// RUN:'");
  EXPECT_EQ(FileError("// RUN:\n// EXPECTED\n"),
            "file.graph:2: unknown directive '// EXPECTED', expected // RUN:, // RUN-TWICE, // "
            "RUN-EXECUTE, // EXPECT-DIFF, // EXPECT-UNCHANGED or // EXPECT-ERROR:");
  EXPECT_EQ(FileError("// RUN:\n// EXPECT-ERROR: \n"), "file.graph:2: got no text to expect");
  EXPECT_EQ(FileError("// RUN:\n// EXPECT-UNCHANGED\ngraph\n"),
            "file.graph:3: got 'graph' below the expectation, expected // ----- or the end");
}

TEST_F(GoldenTest, UpdateWritesWhatComesOut) {
  const std::string start = "// A comment.\n// RUN: add-relu\n" + kInput + "\n";
  const std::string good = start + "// EXPECT-DIFF\n" + kChanges;
  EXPECT_EQ(Update(start), good);
  EXPECT_EQ(Update(start + "// EXPECT-DIFF\nsomething else\n"), good);
  EXPECT_EQ(Update(good), good);
  const std::string error = "// RUN: fail\n" + kInput + "// EXPECT-ERROR: no luck\n";
  const std::string unchanged = "// RUN:\n" + kInput + "// EXPECT-UNCHANGED\n";
  const std::string separator = "// -----\n";
  EXPECT_EQ(Update(error + separator + start + separator + unchanged),
            error + separator + good + separator + unchanged);
}

TEST_F(GoldenTest, UpdateWritesInputsAsTheyArePrinted) {
  std::string input = kInput;
  input.replace(input.find("  output"), 2, "");
  EXPECT_EQ(Update("// RUN:\n" + input + "\n// EXPECT-UNCHANGED\n"),
            "// RUN:\n" + kInput + "\n// EXPECT-UNCHANGED\n");
  // A comment inside would get lost.
  input.insert(input.find("output"), "// comment\n");
  EXPECT_EQ(Update("// RUN:\n" + input + "// EXPECT-UNCHANGED\n"),
            "// RUN:\n" + input + "// EXPECT-UNCHANGED\n");
}

TEST_F(GoldenTest, UpdateDoesNotTurnAnErrorIntoAnExpectation) {
  EXPECT_EQ(Update("// RUN: fail\n" + kInput + "// EXPECT-DIFF\n" + kChanges),
            "file.graph:1: fail: no luck");
}

}  // namespace
}  // namespace zg::testing
