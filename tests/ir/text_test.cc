#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/ir/builder.h"
#include "framework/ir/dot_printer.h"
#include "framework/ir/printer.h"
#include "tests/ir/test_ops.h"
#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

using testing::ParseOrDie;

class TextTest : public ::testing::Test {
 protected:
  void SetUp() override { RegisterTestOps(); }

  static void ExpectRoundTrip(const std::string& text) { EXPECT_EQ(Print(ParseOrDie(text)), text); }
};

constexpr char kModel[] = R"(graph "mlp" mesh(data=2) micro_batches=4
variables:
  %hidden.weight: f32[3,4] {B} = variable (dtype="f32", shape=[3,4])  // hidden
    tensor "hidden.weight" f32[3,4] at 0 init normal(0.02)
  %bucket0: bf16[64] {S(0)} = variable (dtype="bf16", role="optimizer_state", shape=[64], stage=0)
    tensor "w.exp_avg" bf16[4,8] at 0 init zeros
    tensor "b.exp_avg" bf16[4] at 32 init uniform(0.5)
    tensor "g.exp_avg" bf16[] at 36 init uniform(0.5,-2.25)
    tensor "h.exp_avg" bf16[] at 37 init file("a \"b\".safetensors","w.0")
    tensor "i.exp_avg" bf16[] at 38 init file("b.safetensors")
    tensor "j.exp_avg" bf16[2,1] at 38 init normal(0.5,1) zero_row(1)
    tensor "a \"b\"" bf16[3,4] at 40 init row(0.5,1,-2,0.1) copy_of "hidden.weight"
  %gamma: f32[3] {B} = variable (dtype="f32", shape=[3])
forward:
  %x: f32[16,4] {S(0)} = input (dtype="f32", name="x", shape=[16,4])
  %y: f32[16,3] {S(0)} = linear %x, %hidden.weight  // hidden
  %n: f32[16,3] {S(0)}, %n.1: f32[16] {S(0)}, %n.2: f32[16] {S(0)} = layer_norm %y, %gamma, %gamma
backward:
  %n.grad: f32[16,3] {S(0)} = relu %n  // a comment
update:
  output %n (name="n")
eval "predict":
  %x_1: f32[8,4] {B} = input (dtype="f32", name="x", placement="B", shape=[8,4])
  output %x_1 (name="prediction")  // eval.path
eval "empty":
)";

TEST_F(TextTest, AWholeModelRoundTrips) { ExpectRoundTrip(kModel); }

TEST_F(TextTest, FixedPartsOfAnAxisRoundTrip) {
  const std::string text = "graph \"g\" mesh(data=2, tensor=2/4) micro_batches=2\n";
  EXPECT_EQ(Print(ParseOrDie(text)).substr(0, text.size()), text);
  EXPECT_EQ(ParseOrDie(text).mesh().axes()[1].num_parts(), 4);
  EXPECT_EQ(ParseOrDie(text).mesh().num_ranks(), 4);
}

TEST_F(TextTest, TheParsedGraphHasWhatTheTextSays) {
  ir::Graph graph = ParseOrDie(kModel);
  EXPECT_EQ(graph.name(), "mlp");
  EXPECT_EQ(graph.mesh().ToString(), "data=2");
  EXPECT_EQ(graph.micro_batches(), 4);
  ASSERT_EQ(graph.sections().size(), 6u);
  EXPECT_EQ(graph.sections()[4]->name, "predict");

  const ir::Value* weight = graph.FindValue("hidden.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->type, (TensorType{DType::kF32, Shape{3, 4}}));
  EXPECT_EQ(ir::RoleOf(*weight), Role::kParameter);
  EXPECT_EQ(weight->producer->scope, "hidden");
  EXPECT_EQ(weight->producer->attributes.Int("stage"), 3);
  ASSERT_EQ(weight->users.size(), 1u);
  EXPECT_EQ(weight->users[0]->op->name, "linear");

  const ir::StoredTensor* tensor = graph.FindTensor("b.exp_avg");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->storage, graph.FindValue("bucket0"));
  EXPECT_EQ(tensor->offset_elements, 32);
  EXPECT_EQ(tensor->initializer, Initializer::Uniform(0.5));
  EXPECT_EQ(tensor->copy_of, "");
  ASSERT_NE(graph.FindTensor("a \"b\""), nullptr);
  EXPECT_EQ(graph.FindTensor("a \"b\"")->copy_of, "hidden.weight");
  EXPECT_EQ(graph.FindValue("n.2")->output_index, 2);
  EXPECT_EQ(ToString(graph.FindValue("n.2")->sbp), "{S(0)}");
}

TEST_F(TextTest, AnEmptyGraph) {
  ExpectRoundTrip("graph \"\" mesh(data=1) micro_batches=1\n");
  ExpectRoundTrip("graph \"g\" mesh() micro_batches=1\n");
}

TEST_F(TextTest, SeveralMeshAxes) {
  ExpectRoundTrip(R"(graph "g" mesh(data=2, tensor=3) micro_batches=9223372036854775807
forward:
  %x: f32[4,6] {S(0),S(1)} = input (dtype="f32", name="x", shape=[4,6])
  %y: f32[4,6] {P,B} = relu %x
)");
}

TEST_F(TextTest, OddNamesStandInQuotes) {
  ExpectRoundTrip(R"(graph "a \"b\" \\ \n \t \x01 \x7f é" mesh("data axis"=2) micro_batches=1
variables:
  %"a layer/weight": f32[] = variable (dtype="f32", shape=[])
    tensor "a \"tensor\" // x" f32[] at 0 init zeros
forward:
  %0: f32[] = relu %"a layer/weight"
  %"": f32[] = relu %0
  %"// no: comment, = (": f32[] = relu %""  // scope // with slashes
  %_.1.: f32[] = relu %"// no: comment, = ("  // "quoted"
eval "odd \"name\"":
)");
}

TEST_F(TextTest, OutputsMayHaveTheNamesThatOthersWouldGet) {
  ExpectRoundTrip(R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %a: i64[2], %a.2: f32[], %a.1: f32[] = test_many
  %b.1: i64[2], %b: f32[], %b.1.1: f32[] = test_many %a.1
  %test_many: i64[2], %relu: f32[], %a_1: f32[] = test_many %b, %a, %b.1
)");
}

TEST_F(TextTest, NodesWithoutOutputsOrInputs) {
  ExpectRoundTrip(R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %c: f32[] = constant (value=1.0)
  test_sink
  test_sink  // path
  test_sink %c, %c
  output %c (name="eval")
)");
}

TEST_F(TextTest, AttributesKeepTypeAndValue) {
  ExpectRoundTrip(R"text(graph "g" mesh(data=1) micro_batches=1
forward:
  %a: i64[2] = test_options (count=-9223372036854775808, dims=[-1], flag=true, rate=1.0, text="")
  %b: i64[2] = test_options (dims=[1,2,3], rate=1e-05, text=") // \"")
  %c: i64[2] = test_options (rate=inf)
  %d: i64[2] = test_options (rate=-inf)
  %e: i64[2] = test_options (rate=nan)
  %f: i64[2] = test_options (rate=1e+300)
  %g: i64[2] = test_options (rate=-0.0)
  %h: i64[2] = test_options (rate=0.1)
  %i: i64[2] = test_options
  %j: i64[2] = test_options (dtype="bf16", placement="S(3)", sbp="{S(0),P}", shape=[4,8])
  %k: i64[2] = test_options (sbp="{}", shape=[-1])
)text");
}

TEST_F(TextTest, EveryDoubleReadsBackEqual) {
  for (double rate : {1.0 / 3, 1e22, 123456789012345680.0, 4.9e-324, 0.30000000000000004,
                      std::numeric_limits<double>::max(), -1e-7}) {
    ir::Graph graph;
    ASSERT_TRUE(graph
                    .AddNode(graph.section(ir::SectionKind::kForward),
                             {"test_options", {}, {{"rate", rate}}, "", ""})
                    .ok());
    const ir::Graph read = ParseOrDie(ir::Print(graph));
    EXPECT_EQ(read.AllNodes()[0]->attributes.Float("rate"), rate) << ir::Print(graph);
  }
}

TEST_F(TextTest, DefaultsAreLeftOut) {
  const std::string text = R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %a: i64[2] = test_options (count=1, dims=[], flag=false, rate=0.5, text="none")
)";
  EXPECT_EQ(Print(ParseOrDie(text)), R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %a: i64[2] = test_options
)");
}

TEST_F(TextTest, SpacesBlankLinesAndCommentsDoNotMatter) {
  const std::string text =
      "\n// a comment\n\tgraph\"g\"mesh( data = 1 )micro_batches = 1 // here\r\n"
      "variables: // empty\n"
      "forward :\n"
      "%c:f32 [ ]  {B}=constant(value=1.0)//scope  \r\n"
      "   // another\n"
      "output%c(name=\"o\")";
  EXPECT_EQ(Print(ParseOrDie(text)), R"(graph "g" mesh(data=1) micro_batches=1
forward:
  %c: f32[] {B} = constant (value=1.0)  // scope
  output %c (name="o")
)");
}

TEST_F(TextTest, AScopeIsPrintedOnOneLine) {
  ir::Graph graph;
  ASSERT_TRUE(
      graph.AddNode(graph.section(ir::SectionKind::kForward), {"test_sink", {}, {}, " a\nb\t ", ""})
          .ok());
  const std::string text = ir::Print(graph);
  EXPECT_NE(text.find("  test_sink  // a b\n"), std::string::npos) << text;
  ExpectRoundTrip(text);
}

TEST_F(TextTest, WhatTheBuilderMakesRoundTrips) {
  ir::Graph graph("built", Mesh::DataParallel(2), 2);
  ir::Builder builder(&graph, graph.section(ir::SectionKind::kForward));
  builder.set_scope("blocks.0");
  ir::Value* weight = builder.Variable("blocks.0.weight", {DType::kF32, Shape{3, 4}},
                                       Initializer::Normal(0.02), Role::kParameter);
  ir::Value* x = builder.Op("input", {},
                            {{"name", std::string("x")},
                             {"dtype", std::string("f32")},
                             {"shape", std::vector<int64_t>{8, 4}}});
  builder.Op("relu", {builder.Op("linear", {x, weight})});
  ASSERT_TRUE(builder.status().ok()) << builder.status().message();
  ExpectRoundTrip(ir::Print(graph));
}

TEST_F(TextTest, NodesHaveLabels) {
  const ir::Graph graph = ParseOrDie(kModel);
  EXPECT_EQ(ir::NodeLabel(*graph.FindValue("y")->producer), "forward: linear %y");
  EXPECT_EQ(ir::NodeLabel(*graph.FindValue("n.1")->producer), "forward: layer_norm %n, %n.1, %n.2");
  EXPECT_EQ(ir::NodeLabel(*graph.NodesOf("output")[1]), "eval \"predict\": output %x_1");
}

TEST_F(TextTest, ThePictureHasEveryNodeAndEdge) {
  const ir::Graph graph = ParseOrDie(R"(graph "a \"b\"" mesh(data=2) micro_batches=2
variables:
  %w: f32[3,4] {B} = variable (dtype="f32", shape=[3,4])
forward:
  %x: f32[16,4] {S(0)} = input (dtype="f32", name="x", shape=[16,4])
  %y: f32[16,3] {S(0)} = linear %x, %w  // hidden
eval "predict":
  output %w (name="w")
)");
  EXPECT_EQ(ir::PrintDot(graph), R"(digraph "a \"b\"" {
  node [shape=box, style=filled];
  subgraph cluster0 {
    label="variables";
    n0 [label="%w\nvariable", fillcolor=lightblue];
  }
  subgraph cluster1 {
    label="forward";
    n1 [label="%x\ninput", fillcolor=lightgrey];
    n2 [label="%y\nlinear\nhidden", fillcolor=lightgrey];
  }
  subgraph cluster2 {
    label="eval predict";
    n3 [label="output", fillcolor=white];
  }
  n1 -> n2 [label="f32[16,4] {S(0)}"];
  n0 -> n2 [label="f32[3,4] {B}"];
  n0 -> n3 [label="f32[3,4] {B}"];
}
)");
}

}  // namespace
}  // namespace zg
