// Which nodes a step runs that updates the parameters of some groups.

#include "framework/passes/nodes_of_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/parse_or_die.h"

namespace zg {
namespace {

// Two parameters, of groups 0 and 1, whose gradients are summed over micro-batches; a buffer, and an
// output.
constexpr char kGraph[] = R"(graph "two" mesh(data=1) micro_batches=2
variables:
  %a: f32[] = variable (dtype="f32",role="parameter",shape=[])
  %b: f32[] = variable (dtype="f32",role="parameter",shape=[])
  %b.m: f32[] = variable (dtype="f32",role="optimizer_state",shape=[])
  %a.sum: f32[] = variable (dtype="f32",role="gradient",shape=[])
  %b.sum: f32[] = variable (dtype="f32",role="gradient",shape=[])
  %seen: f32[] = variable (dtype="f32",role="buffer",shape=[])
forward:
  %x: f32[] = input (name="x",dtype="f32",shape=[],placement="B")
  %ax: f32[] = multiply %a, %x
  %bx: f32[] = multiply %b, %x
  %y: f32[] = add %ax, %bx
  %next: f32[] = scale %bx (factor=0.5)
backward:
  %a.grad: f32[] = square %ax
  %b.grad: f32[] = square %bx
  %a.total: f32[] = accumulate %a.sum, %a.grad
  assign %a.sum, %a.total
  %b.total: f32[] = accumulate %b.sum, %b.grad
  assign %b.sum, %b.total
update:
  %a.next: f32[] = sgd_update %a, %a.sum (lr=0.5,weight_decay=0.0)
  assign %a, %a.next
  %b.next: f32[], %b.m.next: f32[] = sgd_momentum_update %b, %b.sum, %b.m (lr=0.5,weight_decay=0.0,group=1,momentum=0.9)
  %b.copy: f32[] = cast %b.next (dtype="f32")
  assign %b, %b.copy
  assign %b.m, %b.m.next
  assign %seen, %next
  output %y (name="loss")
)";

// The names of the values that a step computes, and of the variables that it assigns, "=".
std::string Needed(const std::set<int64_t>& groups) {
  const ir::Graph graph = testing::ParseOrDie(kGraph);
  const auto nodes = NodesOfGroups(graph, groups);
  std::string names;
  for (const ir::Node* node : graph.AllNodes()) {
    if (nodes.count(node) == 0) continue;
    const bool assigns = node->op->traits.kind == ir::OpKind::kAssign;
    names += assigns ? "=" + node->inputs[0]->name + " "
                     : (node->outputs.empty() ? "output " : node->outputs[0]->name + " ");
  }
  return names;
}

TEST(NodesOfGroups, AreWhatOutputsBuffersAndTheirUpdatesNeed) {
  EXPECT_EQ(Needed({0, 1}),
            "x ax bx y next a.grad b.grad a.total =a.sum b.total =b.sum a.next =a b.next b.copy =b "
            "=b.m =seen output ");
  EXPECT_EQ(Needed({0}), "x ax bx y next a.grad a.total =a.sum a.next =a =seen output ");
  EXPECT_EQ(Needed({1}),
            "x ax bx y next b.grad b.total =b.sum b.next b.copy =b =b.m =seen output ");
}

}  // namespace
}  // namespace zg
