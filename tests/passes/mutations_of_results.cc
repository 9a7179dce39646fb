#include <utility>

#include "tests/passes/mutation_edits.h"
#include "tests/passes/mutations.h"

namespace zg::testing {

using ir::Graph;
using ir::Node;
using ir::SectionKind;
using ir::Value;

namespace {

// Matches nodes of the op whose first result has such a name.
NodeFilter Named(const std::string& op, const std::string& suffix) {
  return [=](const Node& node) {
    if (node.op->name != op || node.outputs.empty()) return false;
    const std::string& name = node.outputs[0]->name;
    return name.size() >= suffix.size() &&
           name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
  };
}

// Reads the last input's neighbour in kind.
bool ReadAnotherLast(Graph& graph, Node* node) {
  return ReadAnother(static_cast<int>(node->inputs.size()) - 1)(graph, node);
}

// The zeros in whose place backward puts the gradient of a composite.
bool IsPlaceholder(const Node& node) {
  return node.op->name == "scale" && node.attributes.Float("factor") == 0.0;
}

}  // namespace

std::vector<Mutation> MutationsOfResults() {
  const SectionKind eval = SectionKind::kEval;
  const SectionKind update = SectionKind::kUpdate;
  std::vector<Mutation> all;
  const auto add = [&](const std::string& pass, const std::string& name, auto apply,
                       const std::string& equivalent = "") {
    all.push_back({pass, name, std::move(apply), equivalent});
  };

  add("accumulate-results", "a mean is that of the last micro-batch alone",
      One(In(SectionKind::kForward, AssignOf(Op("accumulate"))), [](Graph& graph, Node* node) {
        return Replace(graph, node, 1, node->inputs[1]->producer->inputs[1]);
      }));
  add("accumulate-results", "a mean has another divisor",
      One(In(update, Named("scale", ".mean")), Multiply("factor", 0.5)));
  add("accumulate-results", "a buffer gets the sum",
      One(In(update, Named("scale", ".next")), Multiply("factor", 2.0)));
  add("accumulate-results", "a buffer is not written", One(In(update, Op("assign")), Erase));
  add("accumulate-results", "a result gets lost", One(In(update, Op("output")), Erase));

  add("average-eval-results", "a loss is the sum over the ranks",
      One(In(eval, Named("scale", ".mean")), LeaveOut()));
  add("average-eval-results", "a mean has another divisor",
      One(In(eval, Named("scale", ".mean")), Multiply("factor", 0.5)));

  add("keep-caches", "rows are written at another place",
      One(Op("write_rows"), [](Graph& graph, Node* node) {
        Value* const start = node->inputs[2];
        const StatusOr<Node*> twice = graph.AddNode(
            node->section, {"integer_add", {start, start}, {}, node->scope, "twice"}, node);
        return twice.ok() && Replace(graph, node, 2, (*twice)->outputs[0]);
      }));
  add("keep-caches", "other rows are written", One(Op("write_rows"), ReadAnother(1)));
  add("keep-caches", "a program does not find what another has left",
      One(Op("write_rows"), [](Graph& graph, Node* node) {
        Node* cache = node->inputs[0]->producer;
        if (node->inputs[0]->users.size() < 2) return false;
        const StatusOr<Node*> own =
            graph.AddNode(cache->section, {"cache", {}, cache->attributes, cache->scope, "own"});
        return own.ok() && Replace(graph, node, 0, (*own)->outputs[0]);
      }));

  add("drop-gradient-marks", "a reader gets the gradient's placeholder",
      One(In(eval, AnyNode), [](Graph& graph, Node* node) {
        for (Node* other : graph.NodesOf("scale")) {
          if (!IsPlaceholder(*other) || other == node || other->section != node->section) continue;
          if (node->inputs[0] == other->inputs[0]) {
            return Replace(graph, node, 0, other->outputs[0]);
          }
        }
        return false;
      }));
  add("drop-gradient-marks", "a reader gets what the composite is computed from",
      One(AnyNode, [](Graph& graph, Node* node) {
        for (Node* other : graph.NodesOf("tanh")) {
          if (other->section != node->section || node->inputs[0] != other->outputs[0]) continue;
          if (node->op->name == "tanh_grad" || IsPlaceholder(*node)) continue;
          return Replace(graph, node, 0, other->inputs[0]);
        }
        return false;
      }));

  add("eval-weights", "a program reads the weights that are trained",
      One(In(eval, Op("fused_elementwise")), LeaveOut()));
  add("eval-weights", "they are computed from another state",
      One(In(eval, Op("fused_elementwise")), ReadAnotherLast));
  add("eval-weights", "they are computed from another bucket",
      One(In(eval, Op("fused_elementwise")), ReadAnother(0)));
  add("eval-weights", "a program reads the weights of another bucket",
      One(In(eval, Op("bucket_view")), ReadAnother(0)));
  return all;
}

}  // namespace zg::testing
