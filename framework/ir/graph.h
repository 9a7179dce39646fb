// Graph: the program of one job, the same on every rank. Values are in single-assignment form.
// Nodes are in sections, and inside a section in execution order.
//
// What runs when:
//   variables       never: parameters, optimizer state and accumulators, alive from start to end
//   forward         once per local micro-batch
//   backward        once per local micro-batch, right after forward
//   update          once per step, after the last micro-batch
//   eval "<name>"   on request, between steps; shares the variables and nothing else
//
// A step consists of `micro_batches` micro-batches over all ranks; rank r of n computes the
// micro-batches j*n + r.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attribute.h"
#include "framework/ir/initializer.h"
#include "framework/ir/mesh.h"
#include "framework/ir/op_def.h"
#include "framework/ir/role.h"
#include "framework/ir/sbp.h"

namespace zg::ir {

struct Node;
struct Section;

struct Value {
  std::string name;  // unique in the graph; printed with a leading %
  TensorType type;   // of one micro-batch; from infer-sbp on, of the logical value over all ranks
  NdSbp sbp;         // empty until infer-sbp
  Node* producer = nullptr;
  int output_index = 0;      // among the producer's outputs
  std::vector<Node*> users;  // one entry per use, in no particular order; maintained by Graph
  size_t owner_index = 0;    // index among its graph's values; likewise
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value*> inputs;
  std::vector<Value*> outputs;
  Attributes attributes;
  std::string scope;  // the module path that made it, "blocks.3.attention"
  Section* section = nullptr;
  size_t owner_index = 0;  // index among its graph's nodes; maintained by Graph

  OpCall Call() const;                       // with logical types
  OpCall LocalCall(const Mesh& mesh) const;  // with the types that one rank sees
};

// The mesh axes that a boxing node works along, in ascending order: one axis, except for sums over
// several.
std::vector<int> BoxingAxes(const Node& node);

bool IsVariable(const Value& value);
Role RoleOf(const Value& variable);
bool HasRole(const Value& value, Role role);  // false if the value is not a variable
bool IsTrainableParameter(const Value& value);

// Whether the value is a gradient of parameters: packed into its bucket, summed over micro-batches,
// or a view, cast or other placement of one of these.
bool HoldsGradient(const Value& value);

// Whether the value is a gradient bucket in flight: it is reduced as soon as it is complete, and
// its memory is released then.
bool IsInFlight(const Value& value);

// Whether the node makes ranks exchange data.
bool MovesData(const Node& node);

// Whether the node only starts its transfer: until a `wait` for it, nobody may read its result, nor
// write its input or its result.
bool IsStart(const Node& node);

// The starts that a `wait` waits for: the one that made its input, or, if the input is a variable,
// the starts of the values assigned to it, in any section.
std::vector<Node*> StartsOf(const Node& wait);

enum class SectionKind { kVariables, kForward, kBackward, kUpdate, kEval };
std::string_view SectionKindName(SectionKind kind);

struct Section {
  SectionKind kind;
  std::string name;  // name of an eval section
  std::vector<Node*> nodes;
};

// A named logical tensor that outlives a step, and its storage: elements [offset, offset + size) of
// the flat logical value of a `variable` node. Bucketing moves tensors; names and shapes never
// change. A tensor that a mesh axis splits (`split`) is stored in parts: each rank of that axis has
// its part at `offset` of its own storage.
struct StoredTensor {
  std::string name;  // "blocks.3.attention.qkv.weight", "blocks.3.attention.qkv.weight.exp_avg"
  TensorType type;
  Initializer initializer;
  Value* storage = nullptr;
  int64_t offset_elements = 0;
  std::string copy_of{};  // if not empty: holds that tensor's values, rounded to another dtype
  NdSbp split{};          // along at most one mesh axis, S(dim); empty: not split
};

class Graph {
 public:
  explicit Graph(std::string name = "graph", Mesh mesh = Mesh::DataParallel(1),
                 int64_t micro_batches = 1);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  Graph Clone() const;  // an equal graph with nodes and values of its own

  const std::string& name() const { return name_; }
  const Mesh& mesh() const { return mesh_; }
  void set_mesh(Mesh mesh) { mesh_ = std::move(mesh); }
  int64_t micro_batches() const { return micro_batches_; }  // per step, over all ranks
  void set_micro_batches(int64_t count) { micro_batches_ = count; }

  // Whether values have placements (infer-sbp): all of them do, or none. While infer-sbp assigns
  // them, in execution order, the graph counts as placed.
  bool is_placed() const;

  // Sections in execution order; the first four always exist.
  const std::vector<std::unique_ptr<Section>>& sections() const { return sections_; }
  Section* section(SectionKind kind) const;  // not for kEval
  // Behind the others, or before one of them.
  Section* AddEvalSection(std::string name, const Section* before = nullptr);

  // Makes a node before the node `before`, or at the end of the section if `before` is null.
  // Missing attributes get their defaults; output types come from the op's shape rule. `name` is a
  // hint for the names of outputs. Errors: unknown op, wrong number of inputs, unknown or missing
  // attribute, inputs that the shape rule rejects.
  struct NodeSpec {
    std::string op;
    std::vector<Value*> inputs;
    Attributes attributes;
    std::string scope;
    std::string name;
  };
  StatusOr<Node*> AddNode(Section* section, NodeSpec spec, Node* before = nullptr);

  void ReplaceInput(Node* node, int index, Value* value);
  void DropInputs(Node* node);  // it only holds its outputs from here on
  void ReplaceAllUses(Value* from, Value* to);
  void Erase(Node* node);                       // its outputs must have no users
  void MoveBefore(Node* node, Node* before);    // inside one section or across
  void MoveAfter(Node* node, Node* after);      // likewise
  Node* NextOf(const Node* node) const;         // in its section; null for the last
  void Rename(Value* value, std::string name);  // made unique
  int IndexOf(const Node* node) const;          // position in its section

  Value* FindValue(std::string_view name) const;  // null if there is none
  std::vector<Node*> AllNodes() const;            // section by section
  std::vector<Node*> NodesOf(std::string_view op) const;
  std::vector<Node*> NodesOf(OpKind kind) const;

  std::vector<StoredTensor>& tensors() { return tensors_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  StoredTensor* FindTensor(std::string_view name);  // null if there is none
  const StoredTensor* FindTensor(std::string_view name) const;

  TensorType LocalType(const Value& value) const;  // the part that one rank holds

 private:
  std::string UniqueName(const std::string& hint);

  std::string name_;
  Mesh mesh_;
  int64_t micro_batches_ = 1;
  std::vector<std::unique_ptr<Section>> sections_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Value>> values_;
  std::unordered_map<std::string, Value*> values_by_name_;
  std::unordered_map<std::string, int> name_counts_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace zg::ir
