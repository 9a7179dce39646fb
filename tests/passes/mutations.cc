#include "tests/passes/mutations.h"

#include <utility>

#include "framework/ir/builder.h"
#include "framework/ops/parameter_copy.h"
#include "tests/passes/mutation_edits.h"

namespace zg::testing {

using ir::Graph;
using ir::Node;
using ir::SectionKind;
using ir::Value;

std::vector<Mutation> AllMutations() {
  const SectionKind backward = SectionKind::kBackward;
  const SectionKind update = SectionKind::kUpdate;
  std::vector<Mutation> all = MutationsOfResults();
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
  add("build-backward", "the gradient of images reads another weight",
      One(In(backward, Op("conv2d_grad_input")), ReadAnother(1)));
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

  add("match-phases", "a gradient is not 0", One(Op("constant"), [](Graph&, Node* node) {
        node->attributes.Set("value", node->attributes.Float("value") + 1.0);
        return true;
      }));
  add("match-phases", "another's gradient", One(Op("parameter_gradient"), ReadAnother(1)));

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

  add("choose-stages", "a parameter has another stage",
      One(Op("variable"),
          [](Graph&, Node* node) {
            if (RoleOf(*node->outputs[0]) != Role::kParameter) return false;
            const int64_t stage = node->attributes.Int("stage");
            node->attributes.Set("stage", stage == 3 ? int64_t{1} : int64_t{3});
            return true;
          }),
      "stages decide about memory and traffic only; the golden file holds them");
  add("place-parameters", "a tensor lies along another dim than its variable",
      [](Graph& graph, unsigned) {
        for (ir::StoredTensor& tensor : graph.tensors()) {
          for (Sbp& sbp : tensor.split) {
            if (!sbp.is_split() || tensor.type.shape.num_dims() < 2) continue;
            sbp = Sbp::S(sbp.dim() == 0 ? 1 : 0);
            return true;
          }
        }
        return false;
      });
  add("place-parameters", "a variable is split, what it stores is not", [](Graph& graph, unsigned) {
    for (ir::StoredTensor& tensor : graph.tensors()) {
      if (tensor.split.empty()) continue;
      tensor.split.clear();
      return true;
    }
    return false;
  });
  add("place-results", "another value is placed", One(Op("place"), ReadAnother(0)));
  add("place-results", "a value is not placed", One(Op("place"), LeaveOut()),
      "where a value lies decides about memory and traffic only; the golden file holds it");

  const auto at_another_offset = [](Graph&, Node* node) {
    const int64_t offset = node->attributes.Int("offset");
    const int64_t moved = offset >= 16 ? offset - 16 : offset + 16;
    const int64_t end = moved + node->outputs[0]->type.shape.num_elements();
    if (end > node->inputs[0]->type.shape.num_elements()) return false;
    node->attributes.Set("offset", moved);
    return true;
  };
  add("bucketing", "a view at another offset", One(Op("bucket_view"), at_another_offset));
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

  add("bucket-frozen", "a view at another offset", One(Op("bucket_view"), at_another_offset));
  add("bucket-frozen", "two parameters are stored in each other's place",
      [](Graph& graph, unsigned) { return SwapTensors(graph, Role::kParameter); });
  add("bucket-frozen", "a copy of another bucket", One(Op("cast"), ReadAnother(0, Op("variable"))));
  add("bucket-frozen", "a view of another bucket",
      One(Op("bucket_view"), ReadAnother(0, Op("variable"))));

  add("infer-sbp", "a partial gradient counts as whole",
      One(Op("bucket_pack"), SetSbp(0, Sbp::P(), Sbp::B())));
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
          // Assigns the micro-batch's value instead of the sum.
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
        // The accumulator keeps the value in its own memory; the removed node must hold all of it.
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

  const auto measure = [](const std::string& op) {
    return [op](const Node& node) {
      return IsUpdate(node) && node.op->name == op && !node.inputs.empty() &&
             node.inputs.back()->type.dtype == DType::kI64;
    };
  };
  const auto read_another_from_end = [](int from_end) {
    return [from_end](Graph& graph, Node* node) {
      return ReadAnother(static_cast<int>(node->inputs.size()) - from_end)(graph, node);
    };
  };
  add("tensor-norms", "norms of what the update does not read",
      One(Op("tensor_square_sums"), ReadAnother(1)));
  add("tensor-norms", "norms of old states", One(Op("tensor_square_sums"), SwapInputs(2, 3)));
  add("tensor-norms", "the norms of another bucket",
      One(measure("normed_update"), read_another_from_end(2)));
  add("tensor-norms", "parts begin at the wrong elements", One(Op("iota"), AddTo("step", 16)));
  add("sum-factors", "rows and columns of another gradient",
      One(Op("factor_sums"), ReadAnother(0)));
  add("sum-factors", "the sums of another bucket",
      One(measure("factored_update"), read_another_from_end(3)));
  add("sum-factors", "the steps of another bucket",
      One(measure("factored_update"), read_another_from_end(2)));
  add("sum-factors", "the norms of the parameter and of its gradient are swapped",
      One(Op("tensor_square_sums"), SwapInputs(0, 1)));
  add("sum-factors", "parts begin at the wrong elements", One(Op("iota"), AddTo("step", 16)));

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
        // They share memory with the new values, so a copy is made before.
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
  add("fuse-additions", "another addend", One(adds, [](Graph& graph, Node* node) {
        return ReadAnother(static_cast<int>(node->inputs.size()) - 1)(graph, node);
      }));
  add("fuse-additions", "the product of another input", One(adds, ReadAnother(0)));
  const auto sums_rows = [](const Node& node) {
    return node.op->traits.sums_rows && node.attributes.Bool("sums");
  };
  add("fuse-additions", "the sum over rows is another output", One(sums_rows, SwapOutputs(2, 3)));

  const auto with_grad = Op("softmax_cross_entropy_with_grad");
  add("fuse-loss-gradient", "other logits", One(with_grad, ReadAnother(1)));
  add("fuse-loss-gradient", "the mean over more", One(with_grad, Multiply("divisor", 2.0)));

  const auto copies = [](const Node& node) { return CopyOf(node.attributes).has_value(); };
  add("fuse-copies", "an update that copies reads another gradient", One(copies, ReadAnother(1)));
  add("fuse-copies", "an update that copies has another learning rate",
      One(copies, Multiply("lr", 2.0)));

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
