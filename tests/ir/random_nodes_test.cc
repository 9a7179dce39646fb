// No op crashes the graph: random inputs and attributes give a node or an error, and the verifier
// can check the node. Always the same ones.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "framework/ir/op_registry.h"
#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"
#include "framework/ops/register_all_ops.h"

namespace zg {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

class RandomNodes {
 public:
  explicit RandomNodes(unsigned seed) : random_(seed) {}

  ir::Attribute Value(const ir::Attribute& example) {
    if (std::holds_alternative<bool>(example)) return Below(2) == 1;
    if (std::holds_alternative<int64_t>(example)) return Integer();
    if (std::holds_alternative<double>(example)) {
      return Pick<double>({0.0, -1.0, 0.5, 1e308, std::nan(""), INFINITY});
    }
    const bool is_list = std::holds_alternative<std::vector<int64_t>>(example) ||
                         std::holds_alternative<Shape>(example);
    if (!is_list) {  // quoted in text
      return Pick<std::string>({"", "f32", "i64", "S(0)", "{B}", "{P}", "x", "t0=add(i0,i1)",
                                "t0=relu(i9)", "t0=", "=;,()", "t9=relu(t9)"});
    }
    std::vector<int64_t> integers(Below(5));
    for (int64_t& integer : integers) integer = Integer();
    return integers;
  }

  ir::Graph::NodeSpec Node(const ir::OpDef& op, const std::vector<ir::Value*>& values) {
    ir::Graph::NodeSpec spec;
    spec.op = op.name;
    const int max_inputs = op.max_inputs < 0 ? op.min_inputs + 3 : op.max_inputs;
    const int num_inputs = op.min_inputs + Below(max_inputs - op.min_inputs + 1);
    // Often all of one type, which most ops require.
    const int same = Below(2) == 0 ? Below(static_cast<int>(values.size())) : -1;
    for (int i = 0; i < num_inputs; ++i) {
      const int any = Below(static_cast<int>(values.size()));
      spec.inputs.push_back(values[same >= 0 && Below(4) != 0 ? same : any]);
    }
    for (const ir::AttributeDef& def : op.attributes) {
      if (def.required || Below(2) == 0) spec.attributes.Set(def.name, Value(def.example));
    }
    return spec;
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  template <typename T>
  T Pick(const std::vector<T>& items) {
    return items[Below(static_cast<int>(items.size()))];
  }
  int64_t Integer() {
    return Pick<int64_t>({-1, 0, 1, 1, 2, 2, 3, 4, 4, 12, 1 << 20, int64_t{1} << 40, kLargest,
                          kLargest - 1, kSmallest});
  }

  std::mt19937 random_;
};

TEST(RandomNodesTest, GiveANodeOrAnError) {
  RegisterAllOps();
  const StatusOr<ir::Graph> original = ir::Parse(R"(graph "g" mesh(data=2) micro_batches=1
variables:
  %scalar: f32[] {B} = variable (dtype="f32", shape=[])
  %empty: f32[0] {B} = variable (dtype="f32", shape=[0])
  %vector: f32[4] {B} = variable (dtype="f32", shape=[4])
  %matrix: f32[4,4] {B} = variable (dtype="f32", shape=[4,4])
  %cube: f32[2,3,4] {B} = variable (dtype="f32", shape=[2,3,4])
  %wide: bf16[2,4,12] {B} = variable (dtype="bf16", shape=[2,4,12])
  %indices: i64[4] {B} = variable (dtype="i64", shape=[4])
  %more_indices: i64[2,4] {B} = variable (dtype="i64", shape=[2,4])
  %small: i32[2,3] {B} = variable (dtype="i32", shape=[2,3])
  %bytes: u8[4] {B} = variable (dtype="u8", shape=[4])
  %largest: f32[72057594037927936] {B} = variable (dtype="f32", shape=[72057594037927936])
  %large: f32[268435456,268435456] {B} = variable (dtype="f32", shape=[268435456,268435456])
)");
  ASSERT_TRUE(original.ok()) << original.status().message();
  const std::string text = Print(*original);

  RandomNodes random(20240229);
  int num_nodes = 0;
  for (const ir::OpDef* op : ir::OpRegistry::Global().All()) {
    for (int i = 0; i < 150; ++i) {
      StatusOr<ir::Graph> graph = ir::Parse(text);
      std::vector<ir::Value*> values;
      for (ir::Node* node : graph->AllNodes()) values.push_back(node->outputs[0]);
      StatusOr<ir::Node*> node =
          graph->AddNode(graph->section(ir::SectionKind::kForward), random.Node(*op, values));
      if (!node.ok()) continue;
      ++num_nodes;
      for (ir::Value* output : (*node)->outputs) output->sbp = {Sbp::B()};
      for (bool collectives_inserted : {false, true}) {
        (void)ir::Verify(*graph, {collectives_inserted});
      }
      const StatusOr<ir::Graph> again = ir::Parse(ir::Print(*graph));
      ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << ir::PrintNode(**node);
      ASSERT_EQ(Print(*again), ir::Print(*graph));
    }
  }
  EXPECT_GT(num_nodes, 1000);
}

}  // namespace
}  // namespace zg
