#include "framework/passes/storage.h"

#include <algorithm>

#include "framework/base/check.h"

namespace zg {

bool Location::depends_on_rank() const {
  return std::any_of(axis_stride_bytes.begin(), axis_stride_bytes.end(),
                     [](int64_t stride) { return stride != 0; });
}

int64_t Location::OffsetOn(const Mesh& mesh, int rank) const {
  int64_t offset = offset_bytes;
  for (size_t axis = 0; axis < axis_stride_bytes.size(); ++axis) {
    offset += mesh.Coordinate(rank, static_cast<int>(axis)) * axis_stride_bytes[axis];
  }
  return offset;
}

namespace {

class StorageAssigner {
 public:
  explicit StorageAssigner(const ir::Graph& graph) : graph_(graph) {
    int position = 0;
    for (const ir::Node* node : graph.AllNodes()) {
      position_[node] = position++;
      for (const ir::Value* output : node->outputs) {
        storage_.locations[output] = {static_cast<int>(storage_.buffers.size()), 0, {}};
        storage_.buffers.push_back({output, graph.LocalType(*output).bytes(), {output}});
      }
    }
  }

  Storage Run() {
    for (const ir::Node* node : graph_.AllNodes()) {
      if (node->op->traits.kind == ir::OpKind::kAssign) {
        ProduceInVariable(*node);
      } else if (node->op->aliases != nullptr) {
        for (const ir::AliasRule& rule : node->op->aliases(node->LocalCall(graph_.mesh())))
          Apply(*node, rule);
      }
    }
    return std::move(storage_);
  }

 private:
  void Apply(const ir::Node& node, const ir::AliasRule& rule) {
    const ir::Value* input = node.inputs[rule.input];
    const ir::Value* output = node.outputs[rule.output];
    switch (rule.kind) {
      case ir::AliasRule::Kind::kOutputInsideInput:
        return Merge(output, Inside(input, rule, output));
      case ir::AliasRule::Kind::kInputInsideOutput:
        // A value that an earlier section keeps would take the room of the whole from there on.
        if (input->producer->section == node.section && SpansFreeBuffer(input) &&
            IsLastReader(node, *input) && BufferOf(input) != BufferOf(output)) {
          Merge(input, Inside(output, rule, input));
        }
        return;
      case ir::AliasRule::Kind::kInPlace:
        if (IsAlone(output) && CanOverwrite(node, input, output)) Merge(output, storage_.Of(input));
        return;
    }
  }

  // The location of `part` when the rule puts it inside `whole`.
  Location Inside(const ir::Value* whole, const ir::AliasRule& rule, const ir::Value* part) const {
    Location location = storage_.Of(whole);
    location.offset_bytes += rule.offset_elements * SizeOf(whole->type.dtype);
    if (rule.at_rank_slice) AddRankSlice(*whole, *part, &location);
    return location;
  }

  // `part` is the rank's own part of `whole` along the axes that split only `part`; the last of
  // them cuts finest.
  void AddRankSlice(const ir::Value& whole, const ir::Value& part, Location* location) const {
    const std::vector<MeshAxis>& axes = graph_.mesh().axes();
    location->axis_stride_bytes.resize(axes.size());
    int64_t stride = graph_.LocalType(part).bytes();
    for (size_t axis = axes.size(); axis-- > 0;) {
      if (part.sbp.empty() || !part.sbp[axis].is_split() || part.sbp[axis] == whole.sbp[axis]) {
        continue;
      }
      location->axis_stride_bytes[axis] += stride;
      stride *= axes[axis].size;
    }
  }

  // Whether `wait` ends the transfer that `node` has started.
  static bool IsEndOf(const ir::Node& node, const ir::Node& wait) {
    return wait.op->traits.kind == ir::OpKind::kWait && wait.inputs[0]->producer == &node;
  }

  void ProduceInVariable(const ir::Node& assign) {
    const ir::Value* variable = assign.inputs[0];
    const ir::Value* value = assign.inputs[1];
    if (value->producer->op->traits.kind == ir::OpKind::kWait) {
      value = value->producer->inputs[0];
    }
    if (BufferOf(variable) == BufferOf(value) || IsVariable(value) || !IsAlone(value)) return;
    // The old contents must be dead once the value's producer runs. The producer may overwrite its
    // own input only if that is the rank's own part of its output, as in all_gather.
    for (const ir::Value* member : storage_.buffers[BufferOf(variable)].members) {
      for (const ir::Node* user : member->users) {
        if (user == &assign) continue;
        if (user->section == assign.section && position_.at(user) > position_.at(value->producer))
          return;
        if (user == value->producer && !ReadsItsOwnPart(*user, *member)) return;
      }
    }
    Merge(value, storage_.Of(variable));
  }

  // Whether the op wants `input` at the rank's own part of an output.
  bool ReadsItsOwnPart(const ir::Node& node, const ir::Value& input) const {
    if (node.op->aliases == nullptr) return false;
    const std::vector<ir::AliasRule> rules = node.op->aliases(node.LocalCall(graph_.mesh()));
    return std::any_of(rules.begin(), rules.end(), [&](const ir::AliasRule& rule) {
      return rule.kind == ir::AliasRule::Kind::kInputInsideOutput && rule.at_rank_slice &&
             node.inputs[rule.input] == &input;
    });
  }

  int BufferOf(const ir::Value* value) const { return storage_.Of(value).buffer; }

  bool IsVariable(const ir::Value* value) const {
    const ir::Value* root = storage_.buffers[BufferOf(value)].root;
    return root->producer->op->traits.kind == ir::OpKind::kVariable;
  }

  // Whether the node is the only reader of the value, and nothing reads its memory later, through a
  // view.
  bool IsLastReader(const ir::Node& node, const ir::Value& value) const {
    const bool is_only_reader =
        std::all_of(value.users.begin(), value.users.end(),
                    [&](const ir::Node* user) { return user == &node || IsEndOf(node, *user); });
    return is_only_reader && std::count(value.users.begin(), value.users.end(), &node) == 1 &&
           !IsReadAfter(node, value);
  }

  // Whether the memory of the value is read after the node.
  bool IsReadAfter(const ir::Node& node, const ir::Value& value) const {
    for (const ir::Value* member : storage_.buffers[BufferOf(&value)].members) {
      for (const ir::Node* user : member->users) {
        if (position_.at(user) > position_.at(&node) && !IsEndOf(node, *user)) return true;
      }
    }
    return false;
  }

  // Whether the value is exactly its buffer, and the buffer may move.
  bool SpansFreeBuffer(const ir::Value* value) const {
    const Location& location = storage_.Of(value);
    return !IsVariable(value) && location.offset_bytes == 0 && !location.depends_on_rank() &&
           storage_.buffers[location.buffer].bytes == graph_.LocalType(*value).bytes();
  }

  // Whether nothing else is in the value's buffer, so that moving it cannot overwrite anything
  // before its producer runs.
  bool IsAlone(const ir::Value* value) const {
    const std::vector<const ir::Value*>& members = storage_.buffers[BufferOf(value)].members;
    return std::all_of(members.begin(), members.end(), [&](const ir::Value* member) {
      return member == value || IsEndOf(*value->producer, *member->producer);
    });
  }

  // Whether `node` is the last reader of the memory of `input`, which is as large as `output` and
  // not a variable's.
  bool CanOverwrite(const ir::Node& node, const ir::Value* input, const ir::Value* output) const {
    if (IsVariable(input) || graph_.LocalType(*input).bytes() != graph_.LocalType(*output).bytes())
      return false;
    if (IsReadAfter(node, *input)) return false;
    return std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
  }

  // Moves the whole buffer of `value` so that `value` is at `target`.
  void Merge(const ir::Value* value, const Location& target) {
    const Location from = storage_.Of(value);
    if (from.buffer == target.buffer) return;
    Buffer& source = storage_.buffers[from.buffer];
    ZG_CHECK(from.offset_bytes == 0 && !from.depends_on_rank(), "%{} does not begin its buffer",
             value->name);
    for (const ir::Value* member : source.members) {
      Location& location = storage_.locations[member];
      location.buffer = target.buffer;
      location.offset_bytes += target.offset_bytes;
      location.axis_stride_bytes.resize(graph_.mesh().num_axes());
      for (size_t axis = 0; axis < target.axis_stride_bytes.size(); ++axis) {
        location.axis_stride_bytes[axis] += target.axis_stride_bytes[axis];
      }
      storage_.buffers[target.buffer].members.push_back(member);
    }
    source.members.clear();
  }

  const ir::Graph& graph_;
  Storage storage_;
  std::unordered_map<const ir::Node*, int> position_;
};

}  // namespace

Storage AssignStorage(const ir::Graph& graph) { return StorageAssigner(graph).Run(); }

}  // namespace zg
