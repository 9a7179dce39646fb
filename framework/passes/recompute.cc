#include "framework/passes/recompute.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "framework/passes/module_patterns.h"

namespace zg {
namespace {

class Recomputation {
 public:
  Recomputation(ir::Graph* graph, const std::vector<ScopePattern>& modules)
      : graph_(*graph),
        modules_(modules),
        forward_(graph->section(ir::SectionKind::kForward)),
        backward_(graph->section(ir::SectionKind::kBackward)) {}

  StatusOr<bool> Run() {
    FindWhatToCopy();
    FindPlaces();
    const std::vector<ir::Node*> readers = backward_->nodes;
    for (const ir::Node* node : std::vector<ir::Node*>(forward_->nodes)) {
      if (copied_nodes_.count(node) != 0) ZG_RETURN_IF_ERROR(Copy(*node));
    }
    for (ir::Node* reader : readers) {
      for (size_t i = 0; i < reader->inputs.size(); ++i) {
        const auto copy = copies_.find(reader->inputs[i]);
        if (copy != copies_.end()) graph_.ReplaceInput(reader, static_cast<int>(i), copy->second);
      }
    }
    return !copied_nodes_.empty();
  }

 private:
  // The outermost recomputed module around the node; empty if there is none.
  std::string_view SegmentOf(const ir::Node& node) const {
    std::string_view segment;
    for (const ScopePattern& pattern : modules_) {
      const std::string_view module = pattern.ModuleOf(node.scope);
      if (!module.empty() && (segment.empty() || module.size() < segment.size())) segment = module;
    }
    return segment;
  }

  // Walks from the end of forward, because a value's readers in backward are known only once its
  // users are.
  void FindWhatToCopy() {
    for (auto node = forward_->nodes.rbegin(); node != forward_->nodes.rend(); ++node) {
      if (!(*node)->op->traits.may_repeat() || SegmentOf(**node).empty()) continue;
      for (const ir::Value* output : (*node)->outputs) {
        if (!IsReadInsideOnly(*output)) continue;
        copied_values_.insert(output);
        copied_nodes_.insert(*node);
      }
    }
  }

  // Whether the value's segment, and nothing else, reads it after forward.
  bool IsReadInsideOnly(const ir::Value& value) const {
    const std::string_view segment = SegmentOf(*value.producer);
    bool is_read = false;
    for (const ir::Node* user : value.users) {
      if (user->section == forward_ && copied_nodes_.count(user) == 0) continue;
      if (SegmentOf(*user) != segment) return false;
      is_read = true;
    }
    return is_read;
  }

  // The copies of a segment are inserted before the first of its backward nodes that needs one.
  void FindPlaces() {
    for (ir::Node* reader : backward_->nodes) {
      const bool needs_copies =
          std::any_of(reader->inputs.begin(), reader->inputs.end(),
                      [&](const ir::Value* input) { return copied_values_.count(input) != 0; });
      if (needs_copies) places_.try_emplace(SegmentOf(*reader), reader);
    }
  }

  Status Copy(const ir::Node& node) {
    std::vector<ir::Value*> inputs;
    for (ir::Value* input : node.inputs) {
      const auto copy = copies_.find(input);
      inputs.push_back(copy == copies_.end() ? input : copy->second);
    }
    ZG_ASSIGN_OR_RETURN(ir::Node * copy,
                        graph_.AddNode(backward_,
                                       {node.op->name, std::move(inputs), node.attributes,
                                        node.scope, node.outputs[0]->name + ".again"},
                                       places_.at(SegmentOf(node))));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (copied_values_.count(node.outputs[i]) != 0) copies_[node.outputs[i]] = copy->outputs[i];
    }
    return Status::Ok();
  }

  ir::Graph& graph_;
  const std::vector<ScopePattern>& modules_;
  ir::Section* const forward_;
  ir::Section* const backward_;
  std::unordered_set<const ir::Node*> copied_nodes_;
  std::unordered_set<const ir::Value*> copied_values_;
  std::unordered_map<std::string_view, ir::Node*> places_;  // by segment
  std::unordered_map<const ir::Value*, ir::Value*> copies_;
};

}  // namespace

StatusOr<bool> Recompute::Run(ir::Graph& graph) const {
  if (modules_.empty()) return false;
  ir::Section* const forward = graph.section(ir::SectionKind::kForward);
  for (const ir::Node* node : forward->nodes) {
    if (node->outputs.empty() || node->outputs[0]->sbp.empty()) continue;
    return InvalidArgument("%{} has a placement already; run the pass before infer-sbp",
                           node->outputs[0]->name);
  }
  ZG_RETURN_IF_ERROR(CheckPatternsName(modules_, {forward}));
  return Recomputation(&graph, modules_).Run();
}

}  // namespace zg
