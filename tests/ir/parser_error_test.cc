// Every message of the parser: a line of text and the expected message.
#include <gtest/gtest.h>

#include "framework/ir/parser.h"
#include "tests/ir/test_ops.h"

namespace zg {
namespace {

class ParserErrorTest : public ::testing::Test {
 protected:
  void SetUp() override { RegisterTestOps(); }

  static std::string Error(const std::string& text) {
    const StatusOr<ir::Graph> graph = ir::Parse(text);
    return graph.ok() ? "no error" : graph.status().message();
  }

  // The error of a line after the lines of a small graph; it is line 5.
  static std::string LineError(const std::string& line) {
    return Error(
        "graph \"g\" mesh(data=2) micro_batches=1\n"
        "variables:\n"
        "  %w: f32[3,4] = variable (dtype=\"f32\", shape=[3,4])\n"
        "forward:\n" +
        line + "\n");
  }
};

TEST_F(ParserErrorTest, NoGraph) {
  const std::string message =
      "graph: got no graph, expected a line like: graph \"name\" mesh(data=2) micro_batches=4";
  EXPECT_EQ(Error(""), message);
  EXPECT_EQ(Error("\n// nothing\n"), message);
}

TEST_F(ParserErrorTest, Header) {
  EXPECT_EQ(Error("\nforward:\n"),
            "graph:2:1: got 'forward', expected the first line, like: graph \"name\" mesh(data=2) "
            "micro_batches=4");
  EXPECT_EQ(Error("graph g mesh"), "graph:1:7: got 'g', expected the graph's name in quotes");
  EXPECT_EQ(Error("graph \"g\" (data=2)"), "graph:1:11: got '(', expected 'mesh'");
  EXPECT_EQ(Error("graph \"g\" mesh data"), "graph:1:16: got 'data', expected '('");
  EXPECT_EQ(Error("graph \"g\" mesh(=2)"), "graph:1:16: got '=', expected a mesh axis or ')'");
  EXPECT_EQ(Error("graph \"g\" mesh(data:2)"), "graph:1:20: got ':', expected '='");
  EXPECT_EQ(Error("graph \"g\" mesh(data=two)"),
            "graph:1:21: got 'two', expected a number of ranks");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2 tensor=2)"), "graph:1:23: got 'tensor', expected ','");
  EXPECT_EQ(
      Error("graph \"g\" mesh(tensor=2/3) micro_batches=1"),
      "graph:1:23: tensor=2/3: got 3 parts for 2 ranks, expected 1, 2, 4 or another power of two "
      "for each rank, which adds its parts pairwise");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2"), "graph:1:22: got the end of the line, expected ','");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2, data=3)"),
            "graph:1:24: two mesh axes are named 'data'");
  for (const char* size : {"0", "-1", "1048577", "99999999999"}) {
    EXPECT_EQ(Error(fmt::format("graph \"g\" mesh(data={}) micro_batches=1", size)),
              fmt::format("graph:1:21: got an axis of {} ranks, expected 1 or more and at most "
                          "1048576 in all",
                          size));
  }
  EXPECT_EQ(Error("graph \"g\" mesh(a=1024, b=1025)"),
            "graph:1:26: got an axis of 1025 ranks, expected 1 or more and at most 1048576 in all");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2)"),
            "graph:1:23: got the end of the line, expected 'micro_batches'");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2) micro_batches 1"), "graph:1:38: got '1', expected '='");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2) micro_batches=1.5"),
            "graph:1:38: got '1.5', expected a number");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2) micro_batches=0"),
            "graph:1:38: got 0 micro-batches, expected at least 1");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2) micro_batches=1 rank=0"),
            "graph:1:40: got 'rank', expected the end of the line");
}

TEST_F(ParserErrorTest, Sections) {
  EXPECT_EQ(LineError("foreward:"),
            "graph:5:1: got section 'foreward', expected variables, forward, backward, update or "
            "eval \"name\"");
  EXPECT_EQ(LineError("forward:"),
            "graph:5:1: section 'forward' does not come after section 'forward', expected the "
            "order variables, forward, backward, update, eval");
  EXPECT_EQ(LineError("variables:"),
            "graph:5:1: section 'variables' does not come after section 'forward', expected the "
            "order variables, forward, backward, update, eval");
  EXPECT_EQ(LineError("eval \"a\":\nbackward:"),
            "graph:6:1: section 'backward' does not come after section 'eval', expected the order "
            "variables, forward, backward, update, eval");
  EXPECT_EQ(LineError("eval:"), "graph:5:5: got ':', expected the section's name in quotes");
  EXPECT_EQ(LineError("eval \"a\""), "graph:5:9: got the end of the line, expected ':'");
  EXPECT_EQ(LineError("eval \"a\":\neval \"a\":"), "graph:6:1: two eval sections are named \"a\"");
  EXPECT_EQ(LineError("backward: %a"), "graph:5:11: got '%', expected the end of the line");
}

TEST_F(ParserErrorTest, Lines) {
  EXPECT_EQ(LineError("= relu %w"), "graph:5:1: got '=', expected a section or a node");
  EXPECT_EQ(LineError("\x01"), "graph:5:1: got '\\x01', expected a section or a node");
  EXPECT_EQ(Error("graph \"g\" mesh(data=2) micro_batches=1\n  test_sink"),
            "graph:2:3: test_sink: a node outside sections, expected 'variables:', 'forward:', ... "
            "before it");
}

TEST_F(ParserErrorTest, Outputs) {
  EXPECT_EQ(LineError("  %: f32[3,4] = relu %w"),
            "graph:5:4: got ':', expected the name of a value");
  EXPECT_EQ(LineError("  %y = relu %w"), "graph:5:6: got '=', expected ':'");
  EXPECT_EQ(LineError("  %y: [3,4] = relu %w"),
            "graph:5:7: got '[', expected a type like f32[4,8]");
  EXPECT_EQ(LineError("  %y: f64[3,4] = relu %w"),
            "graph:5:7: unknown dtype 'f64': expected f32, bf16, f16, i64, i32, u8 or bool");
  EXPECT_EQ(LineError("  %y: f32 = relu %w"), "graph:5:11: got '=', expected a type like f32[4,8]");
  EXPECT_EQ(LineError("  %y: f32[3 4] = relu %w"), "graph:5:13: got '4', expected ',' or ']'");
  EXPECT_EQ(LineError("  %y: f32[3,] = relu %w"), "graph:5:13: got ']', expected an integer");
  EXPECT_EQ(LineError("  %y: f32[3,-4] = relu %w"),
            "graph:5:7: got f32[3,-4], expected dims >= 0 with at most 2^56 elements");
  EXPECT_EQ(LineError("  %y: f32[4294967296,4294967296] = relu %w"),
            "graph:5:7: got f32[4294967296,4294967296], expected dims >= 0 with at most 2^56 "
            "elements");
  EXPECT_EQ(LineError("  %y: f32[3,4] {S(0} = relu %w"),
            "graph:5:16: placement '{S(0}': expected one of B, P, S(dim) per mesh axis in braces, "
            "as in {S(0),B}");
  EXPECT_EQ(LineError("  %y: f32[3,4] {} = relu %w"),
            "graph:5:16: got {}, expected a placement like {S(0)}");
  EXPECT_EQ(LineError("  %y: f32[3,4] relu %w"), "graph:5:16: got 'relu', expected '='");
  EXPECT_EQ(LineError("  %y: f32[3,4], = relu %w"), "graph:5:17: got '=', expected '%'");
  EXPECT_EQ(LineError("  %y: f32[3,4] = %w"), "graph:5:18: got '%', expected an op");
  EXPECT_EQ(LineError("  %w: f32[3,4] = relu %w"), "graph:5:3: two values are named %w");
  EXPECT_EQ(LineError("  %a: i64[2], %b: f32[], %a: f32[] = test_many"),
            "graph:5:26: two values are named %a");
}

TEST_F(ParserErrorTest, Nodes) {
  EXPECT_EQ(LineError("  %y: f32[3,4] = rellu %w"), "graph:5:18: unknown op 'rellu'");
  EXPECT_EQ(LineError("  %y: f32[3,4] = relu %w,"),
            "graph:5:26: got the end of the line, "
            "expected '%'");
  EXPECT_EQ(LineError("  %y: f32[3,4] = relu %w w"),
            "graph:5:26: got 'w', expected the end of the line");
  EXPECT_EQ(LineError("  %y: f32[3,4] = relu %v"),
            "graph:5:23: got %v, expected a value that is defined on a line above");
  EXPECT_EQ(LineError("  %y: f32[3,4] = relu %y"),
            "graph:5:23: got %y, expected a value that is defined on a line above");
  EXPECT_EQ(LineError("  relu %w"), "graph:5:3: relu: got 0 outputs, expected 1");
  EXPECT_EQ(LineError("  %a: i64[2] = test_many"),
            "graph:5:16: test_many: got 1 outputs, expected 3");
  EXPECT_EQ(LineError("  %a: f32[] = test_sink"),
            "graph:5:15: test_sink: got 1 outputs, expected 0");
  EXPECT_EQ(LineError("  %y: f32[3,4] = relu %w, %w"),
            "graph:5:18: relu: got 2 inputs, expected 1");
  EXPECT_EQ(LineError("  %y: f32[4,3] = relu %w"),
            "graph:5:7: %y: got type f32[4,3], expected f32[3,4], which relu gives");
  EXPECT_EQ(LineError("  %y: f32[3,4] = linear %w, %w, %w"),
            "graph:5:18: linear: bias does not fit the rows of weight: x f32[3,4], weight "
            "f32[3,4], bias f32[3,4]");
}

TEST_F(ParserErrorTest, Attributes) {
  const std::string start = "  %a: i64[2] = test_options ";
  EXPECT_EQ(LineError(start + "(=1)"), "graph:5:30: got '=', expected the name of an attribute");
  EXPECT_EQ(LineError(start + "(count 1)"), "graph:5:36: got '1', expected '='");
  const std::string value = "a value: true, false, 3, 0.5, \"text\" or [4,8]";
  EXPECT_EQ(LineError(start + "(count=)"), "graph:5:36: got ')', expected " + value);
  EXPECT_EQ(LineError(start + "(count=one)"), "graph:5:36: got 'one', expected " + value);
  EXPECT_EQ(LineError(start + "(count=1-2)"), "graph:5:36: got '1-2', expected " + value);
  EXPECT_EQ(LineError(start + "(count=9223372036854775808)"),
            "graph:5:36: got '9223372036854775808', expected " + value);
  EXPECT_EQ(LineError(start + "(rate=1e999)"), "graph:5:35: got '1e999', expected " + value);
  EXPECT_EQ(LineError(start + "(count=1"),
            "graph:5:37: got the end of the line, expected ',' or ')'");
  EXPECT_EQ(LineError(start + "(count=1 rate=0.5)"), "graph:5:38: got 'rate', expected ',' or ')'");
  EXPECT_EQ(LineError(start + "(count=1, count=1)"),
            "graph:5:39: attribute 'count' is given twice");
  EXPECT_EQ(LineError(start + "(dims=[1,)"), "graph:5:38: got ')', expected an integer");
  EXPECT_EQ(LineError(start + "(dims=[1"),
            "graph:5:37: got the end of the line, expected ',' or ']'");
  EXPECT_EQ(LineError(start + "(text=\"a)"), "graph:5:35: the string does not end, expected '\"'");
  for (const char* escape : {"\\a", "\\x0", "\\xzz", "\\"}) {
    EXPECT_NE(LineError(fmt::format("{}(text=\"{}", start, escape)).find("unknown escape"),
              std::string::npos);
  }
  EXPECT_EQ(LineError(start + "(size=1)"), "graph:5:16: test_options: unknown attribute 'size'");
  EXPECT_EQ(LineError(start + "(rate=1)"),
            "graph:5:16: test_options: attribute 'rate': got 1, expected the type of 0.5");
  EXPECT_EQ(LineError(start + "(dtype=\"f64\")"),
            "graph:5:16: test_options: attribute 'dtype': unknown dtype 'f64': expected f32, bf16, "
            "f16, i64, i32, u8 or bool");
  EXPECT_EQ(LineError(start + "(shape=\"[4]\")"),
            "graph:5:16: test_options: attribute 'shape': got \"[4]\", expected the type of []");
  EXPECT_EQ(LineError(start + "(placement=\"{B}\")"),
            "graph:5:16: test_options: attribute 'placement': placement '{B}': expected B, P, "
            "S(dim) or S(dim:groups)");
  EXPECT_EQ(
      LineError("  %v: f32[4] = input (dtype=\"f32\", name=\"v\", shape=[4294967296,4294967296])"),
      "graph:5:16: input: got output type f32[4294967296,4294967296], expected dims >= 0 with "
      "at most 2^56 elements");
  EXPECT_EQ(LineError("  %c: f32[] = constant"),
            "graph:5:15: constant: attribute 'value' is missing");
}

TEST_F(ParserErrorTest, Tensors) {
  const std::string graph = "graph \"g\" mesh(data=2) micro_batches=1\n";
  EXPECT_EQ(Error(graph + "tensor \"t\" f32[] at 0 init zeros"),
            "graph:2:1: a tensor without storage, expected the line of its variable before it");
  EXPECT_EQ(LineError("  tensor \"t\" f32[] at 0 init zeros"),
            "graph:5:3: a tensor without storage, expected the line of its variable before it");
  const auto tensor_error = [](const std::string& line) {
    return LineError("  %y: f32[3,4] = relu %w\n" + line);
  };
  EXPECT_EQ(tensor_error("tensor \"t\" at 0"),
            "graph:6:12: unknown dtype 'at': expected f32, bf16, f16, i64, i32, u8 or bool");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] 0"), "graph:6:18: got '0', expected 'at'");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at x"),
            "graph:6:21: got 'x', expected an offset in elements");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 zeros"),
            "graph:6:23: got 'zeros', expected 'init'");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init"),
            "graph:6:27: got the end of the line, expected an initializer");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init random"),
            "graph:6:28: got 'random', expected zeros, ones, constant(value), row(values), "
            "normal(deviation,mean), truncated_normal(deviation,bound), uniform(bound,mean), "
            "orthogonal(gain) or file(path,tensor)");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init row()"),
            "graph:6:32: got ')', expected a number");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init truncated_normal(1)"),
            "graph:6:46: got ')', expected ','");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init normal"),
            "graph:6:34: got the end of the line, expected '('");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init normal(x)"),
            "graph:6:35: got 'x', expected a number");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init normal(1"),
            "graph:6:36: got the end of the line, expected ')'");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init ones()"),
            "graph:6:32: got '(', expected the end of the line");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init ones copy_of"),
            "graph:6:40: got the end of the line, expected a tensor's name in quotes");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init ones copy_of w"),
            "graph:6:41: got 'w', expected a tensor's name in quotes");
  EXPECT_EQ(tensor_error("tensor \"t\" f32[] at 0 init ones copy_of \"w\" x"),
            "graph:6:45: got 'x', expected the end of the line");
}

TEST_F(ParserErrorTest, TheSourceIsNamed) {
  const StatusOr<ir::Graph> graph = ir::Parse("\nx", {"mlp.graph", 40});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().message().rfind("mlp.graph:41:1: got 'x', expected", 0), 0u);
}

}  // namespace
}  // namespace zg
