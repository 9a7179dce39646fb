#include "framework/passes/hoist_inputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"

namespace zg {
namespace {

constexpr char kOnce[] = "once";

bool IsInput(const ir::Node& node) { return node.op->traits.kind == ir::OpKind::kInput; }

// Empty: none.
std::string OnceOf(const ir::Node& node) {
  return IsInput(node) && node.attributes.Has(kOnce) ? node.attributes.String(kOnce) : "";
}

// Whether its results are much more work than to read them.
bool IsWorthKeeping(const ir::Node& node) {
  constexpr int64_t kFlopsOfAnElement = 8;
  return node.op->flops != nullptr &&
         node.op->flops(node.Call()) >=
             kFlopsOfAnElement * node.outputs[0]->type.shape.num_elements();
}

// What a section computes from its inputs with `once`, from parameters and from constants alone.
class Computed {
 public:
  Computed(const ir::Section& section, const std::string& once) {
    for (ir::Node* node : section.nodes) {
      if (OnceOf(*node) == once) {
        once_.insert(node);
      } else if (!MayBeComputedOnce(*node)) {
        continue;
      }
      nodes_.push_back(node);
      known_.insert(node);
      if (DependsOn(*node, once_)) once_.insert(node);
      const bool is_product = once_.count(node) != 0 && IsWorthKeeping(*node);
      if (is_product || DependsOn(*node, after_products_)) after_products_.insert(node);
    }
    for (ir::Node* node : nodes_) {
      if (after_products_.count(node) == 0) continue;
      for (ir::Value* value : node->outputs) {
        if (IsReadElsewhere(*value)) values_.push_back(value);
      }
    }
  }

  // The results of products, and of what follows from them, that other nodes read.
  const std::vector<ir::Value*>& values() const { return values_; }

  bool ReadsItself(const ir::Node& reader) const { return known_.count(&reader) != 0; }

  // The nodes that compute the values, in execution order.
  std::vector<ir::Node*> NodesOfValues() const {
    std::unordered_set<const ir::Node*> needed;
    for (const ir::Value* value : values_) needed.insert(value->producer);
    std::vector<ir::Node*> nodes;
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      if (needed.count(*node) == 0) continue;
      nodes.push_back(*node);
      for (const ir::Value* input : (*node)->inputs) needed.insert(input->producer);
    }
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  // Whether the values can be kept, and are those of the other section.
  bool IsLike(const Computed& other) const {
    const auto is_same = [](const ir::Value* a, const ir::Value* b) {
      return a->type == b->type && a->producer->op == b->producer->op && IsFloat(a->type.dtype) &&
             a->type.shape.num_elements() > 0;
    };
    return std::equal(values_.begin(), values_.end(), other.values_.begin(), other.values_.end(),
                      is_same);
  }

 private:
  bool MayBeComputedOnce(const ir::Node& node) const {
    const ir::OpTraits& traits = node.op->traits;
    if (traits.has_side_effect || traits.is_random || traits.is_sink() || IsInput(node))
      return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* input) {
      return ir::HasRole(*input, Role::kParameter) || ir::HasRole(*input, Role::kBuffer) ||
             known_.count(input->producer) != 0;
    });
  }

  static bool DependsOn(const ir::Node& node, const std::unordered_set<const ir::Node*>& nodes) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const ir::Value* input) { return nodes.count(input->producer) != 0; });
  }

  bool IsReadElsewhere(const ir::Value& value) const {
    return std::any_of(value.users.begin(), value.users.end(),
                       [&](const ir::Node* user) { return known_.count(user) == 0; });
  }

  std::vector<ir::Node*> nodes_;
  std::unordered_set<const ir::Node*> known_;           // nodes_
  std::unordered_set<const ir::Node*> once_;            // those that depend on the inputs
  std::unordered_set<const ir::Node*> after_products_;  // those that depend on their products
  std::vector<ir::Value*> values_;
};

// (B, T, C), as caches are.
Shape RowsOf(const Shape& shape) {
  if (shape.num_dims() == 3) return shape;
  const int64_t channels = shape.num_dims() == 0 ? 1 : shape.dim(-1);
  return {1, shape.num_elements() / channels, channels};
}

ir::Value* Reshaped(ir::Value* value, const Shape& shape, ir::Builder* builder) {
  if (value->type.shape == shape) return value;
  const auto dims_of = [](const Shape& of) { return std::vector<int64_t>{of.num_dims()}; };
  return builder->Op(
      "reshape", {value},
      {{"from", dims_of(value->type.shape)}, {"to", dims_of(shape)}, {"sizes", shape.dims()}});
}

class Hoister {
 public:
  explicit Hoister(ir::Graph* graph) : graph_(*graph) {}

  // Adds the program `once`, which computes the values of the first of these sections.
  Status Hoist(const std::string& once, const std::vector<ir::Section*>& sections,
               const std::vector<Computed>& computed) {
    ir::Section* const program = graph_.AddEvalSection(once, sections[0]);
    ZG_RETURN_IF_ERROR(AddProgram(computed[0], program));
    for (const Computed& of_section : computed) ZG_RETURN_IF_ERROR(ReadCaches(of_section));
    return Status::Ok();
  }

 private:
  Status AddProgram(const Computed& computed, ir::Section* program) {
    ir::Builder builder(&graph_, program);
    std::unordered_map<const ir::Value*, ir::Value*> copies;
    for (const ir::Node* node : computed.NodesOfValues()) {
      std::vector<ir::Value*> inputs;
      for (ir::Value* input : node->inputs) {
        const auto copy = copies.find(input);
        inputs.push_back(copy == copies.end() ? input : copy->second);  // a parameter
      }
      ir::Attributes attributes = node->attributes;
      if (!OnceOf(*node).empty()) attributes.Set(kOnce, std::string());
      builder.set_scope(node->scope);
      const std::vector<ir::Value*> outputs =
          builder.Ops(node->op->name, inputs, attributes, node->outputs[0]->name);
      ZG_RETURN_IF_ERROR(builder.status());
      for (size_t i = 0; i < outputs.size(); ++i) copies[node->outputs[i]] = outputs[i];
    }
    ir::Value* const zero =
        builder.Op("iota", {}, {{"size", int64_t{1}}, {"start", int64_t{0}}, {"step", int64_t{1}}});
    for (const ir::Value* value : computed.values()) {
      builder.set_scope(value->producer->scope);
      const Shape rows = RowsOf(value->type.shape);
      ir::Builder variables(&graph_, graph_.section(ir::SectionKind::kVariables));
      variables.set_scope(value->producer->scope);
      caches_.push_back(variables.Op(
          "cache", {}, {{"dtype", value->type.dtype}, {"shape", rows}, {"placement", Sbp::B()}},
          value->name + ".cache"));
      ZG_RETURN_IF_ERROR(variables.status());
      builder.Op(op_names::kWriteRows,
                 {caches_.back(), Reshaped(copies.at(value), rows, &builder), zero}, {},
                 value->name + ".kept");
      ZG_RETURN_IF_ERROR(builder.status());
    }
    return Status::Ok();
  }

  Status ReadCaches(const Computed& computed) {
    for (size_t i = 0; i < caches_.size(); ++i) {
      ir::Value* const value = computed.values()[i];
      ir::Builder builder(&graph_, value->producer->section);
      builder.InsertBefore(graph_.NextOf(value->producer));
      builder.set_scope(value->producer->scope);
      ir::Value* const kept = Reshaped(caches_[i], value->type.shape, &builder);
      ZG_RETURN_IF_ERROR(builder.status());
      for (ir::Node* user : std::vector<ir::Node*>(value->users)) {
        if (computed.ReadsItself(*user)) continue;
        for (size_t input = 0; input < user->inputs.size(); ++input) {
          if (user->inputs[input] == value) {
            graph_.ReplaceInput(user, static_cast<int>(input), kept);
          }
        }
      }
    }
    return Status::Ok();
  }

  ir::Graph& graph_;
  std::vector<ir::Value*> caches_;  // of the values, in their order
};

}  // namespace

StatusOr<bool> HoistInputs::Run(ir::Graph& graph) const {
  std::map<std::string, std::vector<ir::Section*>> sections_of;
  for (const auto& section : graph.sections()) {
    std::set<std::string> programs;
    for (const ir::Node* node : section->nodes) programs.insert(OnceOf(*node));
    for (const std::string& once : programs) {
      if (!once.empty()) sections_of[once].push_back(section.get());
    }
  }
  for (const auto& [once, sections] : sections_of) {
    std::vector<Computed> computed;
    for (const ir::Section* section : sections) computed.emplace_back(*section, once);
    const bool is_same = std::all_of(computed.begin(), computed.end(), [&](const Computed& other) {
      return other.IsLike(computed[0]);
    });
    if (is_same && !computed[0].values().empty()) {
      ZG_RETURN_IF_ERROR(Hoister(&graph).Hoist(once, sections, computed));
    }
  }
  for (const auto& [once, sections] : sections_of) {
    for (const ir::Section* section : sections) {
      for (ir::Node* node : section->nodes) {
        if (!OnceOf(*node).empty()) node->attributes.Set(kOnce, std::string());
      }
    }
  }
  return !sections_of.empty();
}

}  // namespace zg
