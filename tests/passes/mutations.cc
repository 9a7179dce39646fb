#include "tests/passes/mutations.h"

#include <algorithm>

#include "framework/ir/builder.h"

namespace zg::testing {
namespace {

using ir::Graph;
using ir::Node;
using ir::SectionKind;
using ir::Value;

using NodeFilter = std::function<bool(const Node&)>;
using NodeChange = std::function<bool(Graph&, Node*)>;

NodeFilter Op(const std::string& name) {
  return [name](const Node& node) { return node.op->name == name; };
}
NodeFilter In(SectionKind kind, const NodeFilter& filter) {
  return [=](const Node& node) { return node.section->kind == kind && filter(node); };
}
bool IsUpdate(const Node& node) { return node.op->traits.kind == ir::OpKind::kUpdate; }

// Changes one of the nodes that pass the filter: the first from `choice` on at which it works.
std::function<bool(Graph&, unsigned)> One(const NodeFilter& filter, const NodeChange& change) {
  return [=](Graph& graph, unsigned choice) {
    std::vector<Node*> nodes;
    for (Node* node : graph.AllNodes()) {
      if (filter(*node)) nodes.push_back(node);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (change(graph, nodes[(choice + i) % nodes.size()])) return true;
    }
    return false;
  };
}

bool SameKind(const Value& a, const Value& b) { return a.type == b.type && a.sbp == b.sbp; }

bool Replace(Graph& graph, Node* node, int index, Value* value) {
  if (value == node->inputs[index]) return false;
  graph.ReplaceInput(node, index, value);
  return true;
}

// Input `index` becomes another value of its kind that exists at that place.
NodeChange ReadAnother(int index, const NodeFilter& producer = nullptr) {
  return [=](Graph& graph, Node* node) {
    if (index >= static_cast<int>(node->inputs.size())) return false;
    const Value* current = node->inputs[index];
    for (Node* other : graph.AllNodes()) {
      if (other == node) return false;
      if (other->section != node->section && other->section->kind != SectionKind::kVariables) {
        continue;
      }
      if (producer != nullptr && !producer(*other)) continue;
      for (Value* value : other->outputs) {
        if (value != current && SameKind(*value, *current)) {
          return Replace(graph, node, index, value);
        }
      }
    }
    return false;
  };
}

NodeChange SwapInputs(int a, int b) {
  return [=](Graph& graph, Node* node) {
    if (std::max(a, b) >= static_cast<int>(node->inputs.size())) return false;
    Value* first = node->inputs[a];
    Value* second = node->inputs[b];
    if (first == second || !SameKind(*first, *second)) return false;
    graph.ReplaceInput(node, a, second);
    graph.ReplaceInput(node, b, first);
    return true;
  };
}

// The readers of one output read another.
NodeChange SwapOutputs(int a, int b) {
  return [=](Graph& graph, Node* node) {
    if (std::max(a, b) >= static_cast<int>(node->outputs.size())) return false;
    Value* first = node->outputs[a];
    Value* second = node->outputs[b];
    if (!SameKind(*first, *second) || first->users == second->users) return false;
    const std::vector<Node*> readers_of_first = first->users;
    graph.ReplaceAllUses(second, first);
    for (Node* reader : readers_of_first) {
      for (size_t i = 0; i < reader->inputs.size(); ++i) {
        if (reader->inputs[i] == first) {
          graph.ReplaceInput(reader, static_cast<int>(i), second);
          break;
        }
      }
    }
    return true;
  };
}

// Readers of the result read input `index` instead.
NodeChange LeaveOut(int index = 0) {
  return [=](Graph& graph, Node* node) {
    if (node->outputs.empty() || index >= static_cast<int>(node->inputs.size())) return false;
    if (node->outputs[0]->type != node->inputs[index]->type) return false;
    graph.ReplaceAllUses(node->outputs[0], node->inputs[index]);
    graph.Erase(node);
    return true;
  };
}

bool Erase(Graph& graph, Node* node) {
  graph.Erase(node);
  return true;
}

NodeChange Multiply(const std::string& attribute, double factor) {
  return [=](Graph&, Node* node) {
    if (!node->attributes.Has(attribute)) return false;
    const double value = node->attributes.Float(attribute);
    node->attributes.Set(attribute, value * factor);
    return value != 0;
  };
}

NodeChange AddTo(const std::string& attribute, int64_t difference) {
  return [=](Graph&, Node* node) {
    if (!node->attributes.Has(attribute)) return false;
    node->attributes.Set(attribute, node->attributes.Int(attribute) + difference);
    return true;
  };
}

// With other inputs and attributes, and the placements and names of the results kept.
bool Rebuild(Graph& graph, Node* node, const std::vector<Value*>& inputs,
             const std::string& op = "") {
  ir::Attributes attributes;
  if (op.empty()) attributes = node->attributes;
  const StatusOr<Node*> made = graph.AddNode(
      node->section, {op.empty() ? node->op->name : op, inputs, attributes, node->scope, ""}, node);
  if (!made.ok()) return false;
  for (size_t i = 0; i < node->outputs.size() && i < (*made)->outputs.size(); ++i) {
    (*made)->outputs[i]->sbp = node->outputs[i]->sbp;
    graph.ReplaceAllUses(node->outputs[i], (*made)->outputs[i]);
  }
  graph.Erase(node);
  return true;
}

// Without input `index`.
NodeChange DropInput(int index) {
  return [=](Graph& graph, Node* node) {
    std::vector<Value*> inputs = node->inputs;
    const int at = index < 0 ? static_cast<int>(inputs.size()) + index : index;
    if (at < 0 || at >= static_cast<int>(inputs.size())) return false;
    inputs.erase(inputs.begin() + at);
    return Rebuild(graph, node, inputs);
  };
}

// Assignments of the same type write each other's variable.
bool SwapTargets(Graph& graph, Node* node) {
  for (Node* other : graph.NodesOf("assign")) {
    if (other == node || !SameKind(*other->inputs[0], *node->inputs[0]) ||
        !SameKind(*other->inputs[1], *node->inputs[1])) {
      continue;
    }
    Value* target = node->inputs[0];
    graph.ReplaceInput(node, 0, other->inputs[0]);
    graph.ReplaceInput(other, 0, target);
    return true;
  }
  return false;
}

bool AssignsFrom(const Node& node, const NodeFilter& producer) {
  return node.op->name == "assign" && producer(*node.inputs[1]->producer);
}

NodeFilter AssignOf(const NodeFilter& producer) {
  return [=](const Node& node) { return AssignsFrom(node, producer); };
}

// Two stored tensors of one variable change places.
bool SwapTensors(Graph& graph, Role role) {
  for (ir::StoredTensor& a : graph.tensors()) {
    for (ir::StoredTensor& b : graph.tensors()) {
      if (&a == &b || a.storage != b.storage || ir::RoleOf(*a.storage) != role ||
          a.type != b.type) {
        continue;
      }
      std::swap(a.offset_elements, b.offset_elements);
      return true;
    }
  }
  return false;
}

// An assignment that happens in the middle of a step moves to the update section.
bool AccumulateInUpdate(Graph& graph, Node* node) {
  ir::Section* update = graph.section(SectionKind::kUpdate);
  Node* assign = nullptr;
  for (Node* user : node->outputs[0]->users) {
    if (user->op->name == "assign") assign = user;
  }
  if (assign == nullptr || update->nodes.empty()) return false;
  graph.MoveBefore(node, update->nodes.front());
  graph.MoveAfter(assign, node);
  return true;
}

// What `node` needs and comes behind `reader` in its section, in order, with `node` itself; empty when
// it needs the reader.
std::vector<Node*> NeededBehind(const Graph& graph, Node* node, const Node* reader) {
  std::vector<Node*> needed = {node};
  for (size_t i = 0; i < needed.size(); ++i) {
    for (const Value* input : needed[i]->inputs) {
      Node* producer = input->producer;
      if (producer == reader) return {};
      if (producer->section != reader->section) continue;
      if (graph.IndexOf(producer) < graph.IndexOf(reader)) continue;
      if (std::find(needed.begin(), needed.end(), producer) == needed.end()) {
        needed.push_back(producer);
      }
    }
  }
  std::sort(needed.begin(), needed.end(),
            [&](const Node* a, const Node* b) { return graph.IndexOf(a) < graph.IndexOf(b); });
  return needed;
}

// An update, with its assignment and what it needs, before a reader of what it overwrites.
bool UpdateTooEarly(Graph& graph, Node* update) {
  Node* assign = nullptr;
  for (Node* user : update->outputs[0]->users) {
    if (user->op->name == "assign" && user->inputs[0] == update->inputs[0]) assign = user;
  }
  if (assign == nullptr) return false;
  for (Node* reader : update->inputs[0]->users) {
    if (reader == update || reader == assign || reader->section != update->section) continue;
    if (graph.IndexOf(reader) >= graph.IndexOf(update)) continue;
    const std::vector<Node*> needed = NeededBehind(graph, update, reader);
    if (needed.empty()) continue;
    for (Node* node : needed) graph.MoveBefore(node, reader);
    graph.MoveAfter(assign, update);
    return true;
  }
  return false;
}

bool SwapStatements(Graph&, Node* node) {
  std::string program = node->attributes.String("program");
  // The function of the first statement becomes that of the second, where both take as much.
  const std::vector<std::pair<std::string, std::string>> swaps = {{"=gelu(", "=relu("},
                                                                  {"=add(", "=multiply("},
                                                                  {"=subtract(", "=add("},
                                                                  {"=multiply(", "=add("},
                                                                  {"=relu(", "=gelu("}};
  for (const auto& [from, to] : swaps) {
    const size_t at = program.find(from);
    if (at == std::string::npos) continue;
    program.replace(at, from.size(), to);
    node->attributes.Set("program", program);
    return true;
  }
  return false;
}

bool ChangeFactor(Graph&, Node* node) {
  std::string program = node->attributes.String("program");
  const size_t at = program.find("factor=");
  if (at == std::string::npos) return false;
  const size_t end = program.find(')', at);
  program.replace(at, end - at, "factor=0.125");
  node->attributes.Set("program", program);
  return true;
}

NodeChange SetSbp(int output, Sbp from, Sbp to) {
  return [=](Graph&, Node* node) {
    if (output >= static_cast<int>(node->outputs.size())) return false;
    NdSbp& sbp = node->outputs[output]->sbp;
    if (sbp.size() != 1 || sbp[0] != from) return false;
    sbp[0] = to;
    return true;
  };
}

bool IsCopy(const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const Value* value) {
    return value->name.find(".again") != std::string::npos;
  });
}

NodeFilter Copied(const std::string& op) {
  return [=](const Node& node) { return node.op->name == op && IsCopy(node); };
}

bool AnyNode(const Node& node) { return !node.inputs.empty(); }

}  // namespace

std::vector<Mutation> AllMutations() {
  const SectionKind backward = SectionKind::kBackward;
  const SectionKind update = SectionKind::kUpdate;
  std::vector<Mutation> all;
  const auto add = [&](const std::string& pass, const std::string& name, auto apply,
                       const std::string& equivalent = "") {
    all.push_back({pass, name, std::move(apply), equivalent});
  };

  add("mixed-precision", "a cast of another parameter",
      One(Op("cast"), ReadAnother(0, Op("variable"))));
  add("mixed-precision", "an op reads another value in 16 bits",
      One(Op("linear"), ReadAnother(1, Op("cast"))));

  add("build-backward", "the loss does not count by micro-batches",
      One(In(backward, Op("constant")), Multiply("value", 2.0)));
  add("build-backward", "a gradient of a value that is read twice is left out",
      One(In(backward, Op("add")), LeaveOut(0)));
  add("build-backward", "two gradients of parameters are swapped",
      One(Op("parameter_gradient"), ReadAnother(1)));
  add("build-backward", "a parameter has no gradient", One(Op("parameter_gradient"), Erase));
  add("build-backward", "gelu_grad with swapped operands", One(Op("gelu_grad"), SwapInputs(0, 1)));
  add("build-backward", "the gradient of a weight reads another activation",
      One(Op("linear_grad_weight"), ReadAnother(1)));
  add("build-backward", "dropout_grad draws another mask",
      One(Op("dropout_grad"), AddTo("stream", 1)));
  add("build-backward", "the mean of the losses has another divisor",
      One(In(update, Op("scale")), Multiply("factor", 0.5)));
  add("build-backward", "the losses are not summed",
      One(In(SectionKind::kForward, Op("accumulate")), LeaveOut(1)));

  add("scale-loss", "another scale", One(Op("loss_seed"), Multiply("value", 2.0)));
  add("scale-loss", "another initial exponent", One(Op("loss_seed"), AddTo("initial_exponent", 1)));

  add("recompute", "dropout is drawn again from another stream",
      One(Copied("dropout"), AddTo("stream", 1)));
  add("recompute", "a copy reads another value", One(Copied("linear"), ReadAnother(0)));
  add("recompute", "a copy reads another weight", One(Copied("linear"), ReadAnother(1)));
  add("recompute", "layer_norm is computed again with another epsilon",
      One(Copied("layer_norm"), Multiply("epsilon", 1000.0)));
  add("recompute", "a copied sum with an operand twice", One(Copied("add"), ReadAnother(1)));

  add("append-update", "another learning rate", One(IsUpdate, Multiply("lr", 2.0)));
  add("append-update", "another weight decay", One(IsUpdate, Multiply("weight_decay", 2.0)));
  add("append-update", "another momentum", One(IsUpdate, Multiply("momentum", 0.5)));
  add("append-update", "another beta1", One(IsUpdate, Multiply("beta1", 0.5)));
  add("append-update", "a state is not written", One(AssignOf(IsUpdate), [](Graph& g, Node* node) {
        return node->inputs[1]->output_index > 0 && Erase(g, node);
      }));
  add("append-update", "a parameter is not written",
      One(AssignOf(IsUpdate), [](Graph& g, Node* node) {
        return node->inputs[1]->output_index == 0 && Erase(g, node);
      }));
  add("append-update", "two results of updates are swapped", One(AssignOf(IsUpdate), SwapTargets));
  add("append-update", "two parameters share a state",
      One(IsUpdate, ReadAnother(2, Op("variable"))));
  add("append-update", "an update reads another gradient", One(IsUpdate, ReadAnother(1)));
  add("append-update", "weight decay is decoupled", One(IsUpdate, [](Graph&, Node* node) {
        if (!node->attributes.Has("decoupled") || node->attributes.Float("weight_decay") == 0) {
          return false;
        }
        node->attributes.Set("decoupled", !node->attributes.Bool("decoupled"));
        return true;
      }));

  add("master-weights", "the copy is not written", One(AssignOf(Op("cast")), Erase));
  add("master-weights", "the master is not written", One(AssignOf(IsUpdate), Erase));
  add("master-weights", "the copy is the old master",
      One(In(update, Op("cast")), [](Graph& graph, Node* node) {
        const Node* producer = node->inputs[0]->producer;
        return IsUpdate(*producer) && Replace(graph, node, 0, producer->inputs[0]);
      }));
  add("master-weights", "two copies are swapped", One(AssignOf(Op("cast")), SwapTargets));

  add("eliminate-dead-nodes", "an assignment goes", One(Op("assign"), Erase));
  add("eliminate-dead-nodes", "an output goes", One(Op("output"), Erase));

  add("bucketing", "a view at another offset", One(Op("bucket_view"), [](Graph&, Node* node) {
        const int64_t offset = node->attributes.Int("offset");
        const int64_t moved = offset >= 16 ? offset - 16 : offset + 16;
        const int64_t end = moved + node->outputs[0]->type.shape.num_elements();
        if (end > node->inputs[0]->type.shape.num_elements()) return false;
        node->attributes.Set("offset", moved);
        return true;
      }));
  add("bucketing", "two gradients are packed in the other order",
      One(Op("bucket_pack"), SwapInputs(0, 1)));
  add("bucketing", "a gradient is packed at another offset",
      One(Op("bucket_pack"), [](Graph&, Node* node) {
        std::vector<int64_t> offsets = node->attributes.Ints("offsets");
        const int64_t end = offsets.back() + node->inputs.back()->type.shape.num_elements();
        if (end >= node->attributes.Int("size")) return false;
        ++offsets.back();
        node->attributes.Set("offsets", offsets);
        return true;
      }));
  add("bucketing", "two parameters are stored in each other's place",
      [](Graph& graph, unsigned) { return SwapTensors(graph, Role::kParameter); });
  add("bucketing", "two states are stored in each other's place",
      [](Graph& graph, unsigned) { return SwapTensors(graph, Role::kOptimizerState); });
  add("bucketing", "a view of another bucket",
      One(Op("bucket_view"), ReadAnother(0, Op("variable"))));
  add("bucketing", "an update reads another bucket of gradients",
      One(IsUpdate, [](Graph& graph, Node* node) {
        for (Node* pack : graph.NodesOf("bucket_pack")) {
          if (pack->outputs[0] != node->inputs[1] &&
              SameKind(*pack->outputs[0], *node->inputs[1])) {
            return Replace(graph, node, 1, pack->outputs[0]);
          }
        }
        return false;
      }));

  add("infer-sbp", "a partial gradient counts as whole",
      One(Op("bucket_pack"), SetSbp(0, Sbp::P(), Sbp::B())),
      "insert-collectives then sums the gradient over the ranks before it is packed");
  add("infer-sbp", "a split value counts as partial",
      One(In(SectionKind::kForward, Op("gelu")), SetSbp(0, Sbp::S(0), Sbp::P())));
  add("infer-sbp", "a variable counts as partial",
      One(Op("variable"), SetSbp(0, Sbp::B(), Sbp::P())));
  add("infer-sbp", "data that is split counts as whole",
      One(Op("input"), SetSbp(0, Sbp::S(0), Sbp::B())));

  add("accumulate-gradients", "an update reads the last micro-batch only",
      One(IsUpdate, [](Graph& graph, Node* node) {
        for (Node* accumulate : graph.NodesOf("accumulate")) {
          const Value* sum = accumulate->inputs[0];
          if (sum != node->inputs[1] && sum->producer->outputs[0] != node->inputs[1]) continue;
          if (accumulate->section->kind != SectionKind::kBackward) continue;
          // An assignment of the micro-batch instead of the sum.
          for (Node* user : accumulate->outputs[0]->users) {
            if (user->op->name == "assign") {
              Value* term = accumulate->inputs[1];
              if (term->type != sum->type) return false;
              graph.ReplaceInput(user, 1, term);
              return true;
            }
          }
        }
        return false;
      }));
  add("accumulate-gradients", "a sum is not kept",
      One(In(backward, AssignOf(Op("accumulate"))), [](Graph& graph, Node* node) {
        // The accumulator keeps it in its own memory; what is left out must be all of it.
        Node* accumulate = node->inputs[1]->producer;
        graph.Erase(node);
        graph.Erase(accumulate);
        return true;
      }));
  add("accumulate-gradients", "a sum takes another bucket's gradient",
      One(In(backward, Op("accumulate")), ReadAnother(1)));
  add("accumulate-gradients", "sums happen once per step",
      One(In(backward, Op("accumulate")), AccumulateInUpdate));
  add("accumulate-gradients", "a sum of 16-bit gradients is not rounded",
      One(In(update, Op("cast")), [](Graph& graph, Node* node) {
        if (!ir::HasRole(*node->inputs[0], Role::kGradient)) return false;
        for (Node* user : std::vector<Node*>(node->outputs[0]->users)) {
          if (!IsUpdate(*user)) return false;
          graph.ReplaceInput(user, 1, node->inputs[0]);
        }
        graph.Erase(node);
        return true;
      }));

  add("shard-optimizer-state", "a state is not written",
      One(In(update, AssignOf(IsUpdate)), Erase));
  add("shard-optimizer-state", "two results are swapped", One(AssignOf(AnyNode), SwapTargets));
  add("shard-optimizer-state", "the new parameters are the old ones",
      One(In(update, Op("place")),
          [](Graph& graph, Node* node) {
            Node* producer = node->inputs[0]->producer;
            return IsUpdate(*producer) && Replace(graph, node, 0, producer->inputs[0]);
          }),
      "");
  add("shard-optimizer-state", "the request for the whole is left out",
      One(In(update, Op("place")),
          [](Graph& graph, Node* node) {
            return IsUpdate(*node->inputs[0]->producer) && LeaveOut()(graph, node);
          }),
      "insert-collectives brings what is assigned to the variable's placement");
  add("shard-optimizer-state", "an update reads another bucket's shard",
      One(IsUpdate, ReadAnother(0, Op("place"))));
  add("shard-optimizer-state", "a state stays whole",
      One(Op("variable"),
          [](Graph&, Node* node) {
            Value* value = node->outputs[0];
            if (RoleOf(*value) != Role::kOptimizerState || !value->sbp[0].is_split()) return false;
            value->sbp[0] = Sbp::B();
            return true;
          }),
      "it is cut for the update and gathered for the assignment; memory and traffic differ");

  add("shard-gradients", "sums happen once per step",
      One(In(backward, Op("accumulate")), AccumulateInUpdate));
  add("shard-gradients", "another bucket's gradient",
      One(In(backward, Op("place")), ReadAnother(0, Op("bucket_pack"))));
  add("shard-gradients", "the full-size bucket counts as gradients",
      One(Op("bucket_pack"),
          [](Graph&, Node* node) {
            if (!node->attributes.Bool("in_flight")) return false;
            node->attributes.Set("in_flight", false);
            return true;
          }),
      "categories decide about memory only; the golden file holds them");

  add("shard-parameters", "a section reads another bucket",
      One(Op("place"), ReadAnother(0, Op("variable"))));
  add("shard-parameters", "new parameters go to another bucket",
      One(AssignOf(IsUpdate), SwapTargets));
  add("shard-parameters", "new parameters are not written", One(AssignOf(IsUpdate), Erase));
  add("shard-parameters", "the update reads the old gradient of another",
      One(IsUpdate, ReadAnother(1)));

  add("clip-gradients", "a gradient is not in the norm", One(Op("add_square_sums"), DropInput(0)));
  add("clip-gradients", "a square sum is not in the control",
      One(Op("update_control"), DropInput(0)));
  add("clip-gradients", "a whole gradient counts once per rank",
      One(Op("square_sum"), SetSbp(0, Sbp::B(), Sbp::P())),
      "insert-collectives cuts the gradient: every rank takes the squares of its part");
  add("clip-gradients", "the norm of one rank's part",
      One(Op("square_sum"), SetSbp(0, Sbp::P(), Sbp::B())),
      "insert-collectives gathers the gradient before its squares are summed: the same norm at the "
      "price of more traffic");
  add("clip-gradients", "another limit",
      One([](const Node& node) { return node.attributes.Has("max_norm"); },
          Multiply("max_norm", 0.5)));
  add("clip-gradients", "an update without control", One(IsUpdate, DropInput(-1)));
  add("clip-gradients", "the norm of the parameters", One(Op("square_sum"), ReadAnother(0)));
  add("clip-gradients", "the scaler's state is not written",
      One(AssignOf(Op("scaled_update_control")), Erase));
  add("clip-gradients", "the count of updates is not written",
      One(AssignOf(Op("guarded_update_control")), Erase));

  add("insert-collectives", "a collective is left out",
      One([](const Node& node) { return node.op->name == "all_reduce" && node.inputs.size() == 1; },
          LeaveOut()));
  add("insert-collectives", "a local slice is left out", One(Op("local_slice"), LeaveOut()));
  add("insert-collectives", "a sum over ranks does not go on from the accumulator",
      One([](const Node& node) { return node.op->name == "all_reduce" && node.inputs.size() == 2; },
          DropInput(1)));
  add("insert-collectives", "a shard of a sum does not go on from the accumulator",
      One(
          [](const Node& node) {
            return node.op->name == "reduce_scatter" && node.inputs.size() == 2;
          },
          DropInput(1)));
  add("insert-collectives", "another value is reduced",
      One(
          [](const Node& node) {
            return node.op->name == "reduce_scatter" || node.op->name == "all_reduce";
          },
          ReadAnother(0)));
  add("insert-collectives", "another value is gathered", One(Op("all_gather"), ReadAnother(0)));
  add("insert-collectives", "another value is sliced", One(Op("local_slice"), ReadAnother(0)));
  add("insert-collectives", "the old parameters are gathered",
      One(Op("all_gather"), [](Graph& graph, Node* node) {
        Node* producer = node->inputs[0]->producer;
        if (!IsUpdate(*producer)) return false;
        // Their memory is that of the new ones, so a copy made before.
        ir::Builder builder(&graph, node->section);
        builder.InsertBefore(producer);
        Value* old = builder.Op("scale", {producer->inputs[0]}, {{"factor", 1.0}}, "old");
        if (!builder.status().ok()) return false;
        old->sbp = producer->inputs[0]->sbp;
        return Replace(graph, node, 0, old);
      }));

  add("fuse-gelu", "the outputs are swapped", One(Op("linear_gelu"), SwapOutputs(0, 1)));
  add("fuse-gelu", "the bias is left out", One(Op("linear_gelu"), DropInput(2)));
  add("fuse-gelu", "the gelu of another product", One(Op("linear_gelu"), ReadAnother(0)));
  add("fuse-gelu", "the gradient at another point",
      One(Op("linear_grad_input_gelu"), ReadAnother(2)));

  const auto adds = [](const Node& node) {
    return node.op->traits.takes_addend && node.attributes.Bool("adds");
  };
  const auto sums = [](const Node& node) {
    return node.op->traits.sums_rows && node.attributes.Bool("sums");
  };
  add("fuse-additions", "another addend", One(adds, [](Graph& graph, Node* node) {
        return ReadAnother(static_cast<int>(node->inputs.size()) - 1)(graph, node);
      }));
  add("fuse-additions", "the product of another input", One(adds, ReadAnother(0)));
  add("fuse-additions", "the sum of another gradient", One(sums, SwapOutputs(2, 3)));

  add("fuse-elementwise", "another function", One(Op("fused_elementwise"), SwapStatements));
  add("fuse-elementwise", "another factor", One(Op("fused_elementwise"), ChangeFactor));
  add("fuse-elementwise", "inputs in another order",
      One(Op("fused_elementwise"), SwapInputs(0, 1)));
  add("fuse-elementwise", "another input", One(Op("fused_elementwise"), ReadAnother(0)));

  add("update-early", "an update before a reader of the old parameters",
      One(In(backward, IsUpdate), UpdateTooEarly));
  add("update-early", "an assignment gets lost", One(In(backward, Op("assign")), Erase));

  add("schedule", "an assignment goes", One(Op("assign"), Erase));
  add("schedule", "a view of another bucket", One(Op("bucket_view"), ReadAnother(0)));
  add("schedule", "an output goes", One(Op("output"), Erase));
  return all;
}

}  // namespace zg::testing
