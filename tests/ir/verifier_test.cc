// One test per rule of the verifier. A graph that breaks the rule comes from text if the parser
// accepts it, or is damaged by hand.
#include "framework/ir/verifier.h"

#include <gtest/gtest.h>

#include "tests/ir/test_ops.h"
#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

using testing::ParseOrDie;

class VerifierTest : public ::testing::Test {
 protected:
  void SetUp() override { RegisterTestOps(); }

  static std::string Error(const ir::Graph& graph, bool collectives_inserted = false) {
    const Status status = ir::Verify(graph, {collectives_inserted});
    return status.ok() ? "no error" : status.message();
  }
  static std::string TextError(const std::string& text) { return Error(ParseOrDie(text)); }

  // The error for nodes in the forward section of a graph on a mesh, once collectives are inserted.
  static std::string PlacementError(const std::string& nodes, const std::string& mesh = "data=2") {
    return Error(
        ParseOrDie(fmt::format("graph \"g\" mesh({}) micro_batches=2\nforward:\n{}", mesh, nodes)),
        true);
  }
};

constexpr char kGood[] = R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %w: f32[4,8] = variable (dtype="f32", shape=[4,8])
    tensor "w" f32[4,8] at 0 init zeros
forward:
  %x: f32[6,8] = input (dtype="f32", name="x", shape=[6,8])
  %y: f32[6,4] = linear %x, %w
backward:
  %z: f32[6,4] = add %y, %y
update:
  output %z (name="z")
eval "predict":
  %v: f32[6,8] = input (dtype="f32", name="x", shape=[6,8])
  %u: f32[6,4] = linear %v, %w
  output %u (name="u")
)";

TEST_F(VerifierTest, AcceptsAGoodGraph) {
  EXPECT_EQ(TextError(kGood), "no error");
  EXPECT_EQ(Error(ir::Graph()), "no error");
}

TEST_F(VerifierTest, ValueNamesAreUnique) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->name = "x";
  EXPECT_EQ(Error(graph),
            "forward: linear %x: two values are named %x, expected a name of its own");
}

TEST_F(VerifierTest, ValuesAreFoundByName) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->name = "yy";
  EXPECT_EQ(Error(graph), "forward: linear %yy: %yy is not found by its name");
}

TEST_F(VerifierTest, InputsAreDefinedEarlierInTheSection) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.MoveBefore(graph.FindValue("y")->producer, graph.FindValue("x")->producer);
  EXPECT_EQ(Error(graph), "forward: linear %y: it reads %x, expected a value of an earlier node");
}

TEST_F(VerifierTest, InputsAreDefinedInAnEarlierSection) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.MoveBefore(graph.FindValue("z")->producer, graph.FindValue("x")->producer);
  EXPECT_EQ(Error(graph), "forward: add %z: it reads %y, expected a value of an earlier node");
}

TEST_F(VerifierTest, EvalSectionsReadVariablesAndThemselves) {
  std::string text = kGood;
  text += "eval \"other\":\n  output %y (name=\"y\")\n";
  EXPECT_EQ(TextError(text),
            "eval \"other\": output %y: it reads %y of section forward, expected a variable or a "
            "value of its own section");
  text = kGood;
  text += "eval \"other\":\n  output %u (name=\"y\")\n";
  EXPECT_EQ(TextError(text),
            "eval \"other\": output %u: it reads %u of section eval, expected a variable or a "
            "value of its own section");
}

TEST_F(VerifierTest, InputsAreNotNull) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("z")->producer->inputs[1] = nullptr;
  EXPECT_EQ(Error(graph), "backward: add %z: an input is null");
}

TEST_F(VerifierTest, UsersAreThoseThatRead) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->users.pop_back();
  EXPECT_EQ(Error(graph),
            "forward: linear %y: %y lists 1 users, expected the 2 nodes that read it");
  graph = ParseOrDie(kGood);
  graph.FindValue("x")->users[0] = graph.FindValue("z")->producer;
  EXPECT_EQ(Error(graph), "forward: input %x: %x lists 1 users, expected the 1 nodes that read it");
}

TEST_F(VerifierTest, ProducersAreThoseThatList) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->producer = graph.FindValue("x")->producer;
  EXPECT_EQ(Error(graph),
            "forward: linear %y: %y: its producer is not the node that lists it as output 0");
}

TEST_F(VerifierTest, SectionsAreThoseThatList) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->producer->section = graph.section(ir::SectionKind::kUpdate);
  EXPECT_EQ(Error(graph), "update: linear %y: its section is not the one that lists it");
}

TEST_F(VerifierTest, AttributesAreThoseOfTheOp) {
  ir::Graph graph = ParseOrDie(kGood);
  ir::Node* input = graph.FindValue("x")->producer;
  input->attributes.Set("color", int64_t{1});
  EXPECT_EQ(Error(graph), "forward: input %x: unknown attribute 'color'");
  input->attributes = {{"dtype", DType::kF32},
                       {"name", std::string("x")},
                       {"once", std::string()},
                       {"shape", Shape{6, 8}}};
  EXPECT_EQ(Error(graph), "forward: input %x: attribute 'placement' is missing");
  input->attributes.Set("placement", int64_t{0});
  EXPECT_EQ(Error(graph),
            "forward: input %x: attribute 'placement': got 0, expected the type of \"S(0)\"");
  input->attributes.Set("placement", std::string("S(0)"));
  EXPECT_EQ(Error(graph),
            "forward: input %x: attribute 'placement': got \"S(0)\", which is a "
            "literal, expected a value of the type of \"S(0)\"");
}

TEST_F(VerifierTest, TypesAreThoseOfTheShapeRule) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->type.shape = Shape{6, 5};
  EXPECT_EQ(Error(graph), "forward: linear %y: %y: got type f32[6,5], expected f32[6,4]");
  graph = ParseOrDie(kGood);
  graph.FindValue("x")->type.shape = Shape{6, 7};
  graph.FindValue("x")->producer->attributes.Set("shape", Shape{6, 7});
  EXPECT_EQ(Error(graph),
            "forward: linear %y: linear: inner dims differ: x f32[6,7], weight f32[4,8]");
}

TEST_F(VerifierTest, VariablesStandInTheirSection) {
  EXPECT_EQ(TextError(R"(graph "g" mesh(data=2) micro_batches=2
forward:
  %w: f32[4] = variable (dtype="f32", shape=[4])
)"),
            "forward: variable %w: expected every variable in section variables");
  EXPECT_EQ(TextError(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %c: f32[] = constant (value=1.0)
)"),
            "variables: constant %c: expected nothing but variables in section variables");
}

TEST_F(VerifierTest, AllValuesHaveAPlacementOrNone) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.FindValue("y")->sbp = {Sbp::B()};
  EXPECT_EQ(Error(graph),
            "forward: linear %y: %y has a placement but %w has none, expected all or none");
  for (ir::Node* node : graph.AllNodes()) {
    for (ir::Value* output : node->outputs) output->sbp = {Sbp::B()};
  }
  EXPECT_EQ(Error(graph), "no error");
  graph.FindValue("y")->sbp.clear();
  EXPECT_EQ(Error(graph),
            "forward: linear %y: %y has no placement but %w has one, expected all or none");
}

TEST_F(VerifierTest, PlacementsHaveOneEntryPerMeshAxis) {
  EXPECT_EQ(PlacementError("  %x: f32[4] {S(0),B} = input (dtype=\"f32\", name=\"x\", shape=[4])"),
            "forward: input %x: %x: got placement {S(0),B}, expected one entry per axis of "
            "mesh(data=2)");
}

TEST_F(VerifierTest, SplitDimsExistAndDivide) {
  EXPECT_EQ(PlacementError("  %x: f32[4] {S(1)} = input (dtype=\"f32\", name=\"x\", shape=[4])"),
            "forward: input %x: %x: got placement {S(1)} of f32[4], expected a dim that it has");
  EXPECT_EQ(PlacementError("  %x: f32[5] {S(0)} = input (dtype=\"f32\", name=\"x\", shape=[5])"),
            "forward: input %x: %x: got placement {S(0)} of f32[5], expected a dim that divides by "
            "the 2 ranks of axis data");
  // Both axes split the same dim: 6 / 2 does not divide by 2.
  EXPECT_EQ(
      PlacementError("  %x: f32[6] {S(0),S(0)} = input (dtype=\"f32\", name=\"x\", shape=[6])",
                     "data=2, tensor=2"),
      "forward: input %x: %x: got placement {S(0),S(0)} of f32[6], expected a dim that "
      "divides by the 2 ranks of axis tensor");
  EXPECT_EQ(
      PlacementError("  %x: f32[8] {S(0),S(0)} = input (dtype=\"f32\", name=\"x\", shape=[8])",
                     "data=2, tensor=2"),
      "no error");
}

TEST_F(VerifierTest, TensorNamesAreUnique) {
  std::string text = kGood;
  text.insert(text.find("forward:"), "    tensor \"w\" f32[] at 0 init zeros\n");
  EXPECT_EQ(TextError(text), "tensor \"w\": two tensors have this name");
}

TEST_F(VerifierTest, TensorsAreCopiesOfOriginals) {
  const auto error_of = [](const std::string& copies) {
    return TextError(R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %b: f32[64] = variable (dtype="f32", shape=[64])
    tensor "w" f32[4,8] at 0 init zeros
  %h: bf16[64] = variable (dtype="bf16", shape=[64])
)" + copies);
  };
  const std::string good = "    tensor \"w.bf16\" bf16[4,8] at 0 init zeros copy_of \"w\"\n";
  EXPECT_EQ(error_of(good), "no error");
  EXPECT_EQ(error_of("    tensor \"w.bf16\" bf16[4,8] at 0 init zeros copy_of \"v\"\n"),
            "tensor \"w.bf16\": it is a copy of \"v\", which does not exist");
  EXPECT_EQ(error_of("    tensor \"w.bf16\" bf16[8,4] at 0 init zeros copy_of \"w\"\n"),
            "tensor \"w.bf16\": bf16[8,4] is a copy of \"w\", f32[4,8], expected the same shape");
  EXPECT_EQ(error_of(good + "    tensor \"again\" bf16[4,8] at 32 init zeros copy_of \"w.bf16\"\n"),
            "tensor \"again\": it is a copy of \"w.bf16\", which is a copy itself");
  EXPECT_EQ(error_of("    tensor \"self\" bf16[4,8] at 0 init zeros copy_of \"self\"\n"),
            "tensor \"self\": it is a copy of \"self\", which is a copy itself");
}

TEST_F(VerifierTest, TensorsAreStoredInVariables) {
  ir::Graph graph = ParseOrDie(kGood);
  graph.tensors()[0].storage = graph.FindValue("x");
  EXPECT_EQ(Error(graph), "tensor \"w\": its storage is %x, expected a variable of the graph");
  graph.tensors()[0].storage = nullptr;
  EXPECT_EQ(Error(graph),
            "tensor \"w\": its storage is not in the graph, expected a variable of the graph");
}

TEST_F(VerifierTest, TensorsLieInsideTheirStorage) {
  for (const char* bad : {"f32[4,8] at 1", "f32[33] at 0", "f32[1] at -1", "f32[1] at 32",
                          "f32[] at 9223372036854775807", "bf16[4] at 0"}) {
    std::string text = kGood;
    text.replace(text.find("f32[4,8] at 0"), 13, bad);
    EXPECT_EQ(TextError(text), fmt::format("tensor \"w\": {} does not lie inside its storage %w: "
                                           "f32[4,8]",
                                           bad));
  }
}

TEST_F(VerifierTest, TensorsDoNotOverlap) {
  const std::string start = R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %b: f32[64] = variable (dtype="f32", shape=[64])
    tensor "second" f32[4] at 4 init zeros
    tensor "empty" f32[0] at 5 init zeros
)";
  EXPECT_EQ(TextError(start + "    tensor \"first\" f32[2,2] at 0 init zeros\n"), "no error");
  EXPECT_EQ(TextError(start + "    tensor \"first\" f32[5] at 0 init zeros\n"),
            "tensor \"second\" at 4 overlaps tensor \"first\" f32[5] at 0 in %b");
  EXPECT_EQ(TextError(start + "    tensor \"third\" f32[1] at 7 init zeros\n"),
            "tensor \"third\" at 7 overlaps tensor \"second\" f32[4] at 4 in %b");
}

TEST_F(VerifierTest, PlacementsFitOnceCollectivesAreInserted) {
  const std::string mismatch = R"(
  %x: f32[8,4] {S(0)} = input (dtype="f32", name="x", shape=[8,4])
  %y: f32[8,4] {B} = relu %x
)";
  EXPECT_EQ(PlacementError(mismatch),
            "forward: relu %y: along axis data: got (S(0)) -> (B), expected (S(0)) -> (S(0)) or "
            "(S(1)) -> (S(1)) or (B) -> (B)");
  EXPECT_EQ(TextError("graph \"g\" mesh(data=2) micro_batches=2\nforward:\n" + mismatch),
            "no error");
  EXPECT_EQ(PlacementError(R"(
  %x: f32[8,4] {S(0),S(1)} = input (dtype="f32", name="x", shape=[8,4])
  %y: f32[8,4] {S(0),S(1)} = relu %x
  %z: f32[8,4] {S(0),S(0)} = relu %x
)",
                           "data=2, tensor=2"),
            "forward: relu %z: along axis tensor: got (S(1)) -> (S(0)), expected (S(0)) -> (S(0)) "
            "or (S(1)) -> (S(1)) or (B) -> (B)");
}

TEST_F(VerifierTest, OpsWithoutSignaturesAreAllBroadcast) {
  EXPECT_EQ(PlacementError(R"(
  %x: f32[] {P} = input (dtype="f32", name="x", shape=[])
  output %x (name="x")
)"),
            "forward: output %x: along axis data: got (P) -> (), expected (B) -> ()");
  EXPECT_EQ(PlacementError(R"(
  %x: f32[8,4] {S(1)} = input (dtype="f32", name="x", shape=[8,4])
  output %x (name="x")
)"),
            "forward: output %x: along axis data: got (S(1)) -> (), expected (S(0)) -> () or (B) "
            "-> ()");
}

TEST_F(VerifierTest, CollectivesHaveTheirOwnSignature) {
  const std::string input =
      "  %x: f32[8,4] {S(0),B} = input (dtype=\"f32\", name=\"x\", shape=[8,4])\n";
  const std::string mesh = "data=2, tensor=2";
  EXPECT_EQ(PlacementError(input + "  %y: f32[8,4] {B,B} = all_gather %x", mesh), "no error");
  EXPECT_EQ(PlacementError(input + "  %y: f32[8,4] {P,B} = all_gather %x", mesh),
            "forward: all_gather %y: along axis data: got (S(0)) -> (P), expected (S(0)) -> (B)");
  EXPECT_EQ(PlacementError(input + "  %y: f32[8,4] {B,P} = all_gather %x", mesh),
            "forward: all_gather %y: along axis tensor: got (B) -> (P), expected the same "
            "placement everywhere");
  // All-broadcast is not a signature of a collective.
  EXPECT_EQ(PlacementError(input + "  %y: f32[8,4] {S(0),B} = all_gather %x (axis=1)", mesh),
            "forward: all_gather %y: along axis tensor: got (B) -> (B), expected (S(0)) -> (B)");
  EXPECT_EQ(PlacementError(input + "  %y: f32[8,4] {B,B} = all_gather %x (axis=2)", mesh),
            "forward: all_gather %y: got axis 2, expected one of the 2 of mesh(data=2,tensor=2)");
}

TEST_F(VerifierTest, NoPlaceIsLeftOnceCollectivesAreInserted) {
  EXPECT_EQ(PlacementError(R"(
  %x: f32[8] {S(0)} = input (dtype="f32", name="x", shape=[8])
  %y: f32[8] {B} = place %x (sbp="{B}")
)"),
            "forward: place %y: expected no place after the collectives are inserted");
}

}  // namespace
}  // namespace zg
