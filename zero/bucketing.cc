#include "zero/bucketing.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "framework/ir/builder.h"
#include "framework/ops/factored_shapes.h"
#include "framework/ops/quantised_blocks.h"
#include "zero/flat_bucket.h"
#include "zero/pack_owned.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

constexpr char kMatrices[] = "matrices";

// Update nodes whose tensors share a bucket.
struct Bucket {
  std::vector<ir::Node*> updates;
  std::vector<int64_t> offsets;  // in elements
  int64_t elements = 0;
  int64_t stage = 3;   // of its parameters
  bool owned = false;  // no rank's part may cut a tensor: it is packed last (zero/pack_owned.h)
};

// The split of the parameter and its states along axes other than ZeRO's; empty: none.
const NdSbp& SplitOf(const ir::Node& update) {
  return update.inputs[0]->producer->attributes.NdSbp("split");
}

int SplitAxis(const ir::Node& update) { return SplitAxisOf(*update.inputs[0]); }

int64_t NumParts(const ir::Graph& graph, const ir::Node& update) {
  return NumPartsOf(graph, *update.inputs[0]);
}

// The dtype of gradients and of the parameters that the model reads, which are sent between ranks.
DType DTypeOf(const ir::Node& update) { return update.inputs[1]->type.dtype; }

class BucketFiller {
 public:
  BucketFiller(const ir::Graph& graph, const BucketingOptions& options)
      : graph_(graph), options_(options), num_shards_(NumShards(graph)) {}

  void Add(ir::Node* update) {
    const bool is_small = ElementsOf(*update) < options_.shard_min_elements;
    Bucket& bucket = OpenBucketFor(*update, is_small ? 0 : StageOf(*update));
    bucket.updates.push_back(update);
    bucket.offsets.push_back(bucket.elements);
    bucket.elements += AlignedElementsOf(*update);
  }

  std::vector<Bucket> Finish() {
    std::vector<Bucket> finished;
    for (Bucket& bucket : buckets_) {
      if (bucket.owned) {
        Pack(bucket, &finished);
        continue;
      }
      bucket.elements = RoundUp(bucket.elements, MultipleFor(*bucket.updates[0]));
      finished.push_back(std::move(bucket));
    }
    return finished;
  }

 private:
  // The newest bucket of the same kind with room for the tensor, or a new one.
  Bucket& OpenBucketFor(const ir::Node& update, int64_t stage) {
    const bool owned = stage > 0 && IsOwned(update);
    for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
      const ir::Node& first = *bucket->updates[0];
      if (first.op != update.op || !(first.attributes == update.attributes) ||
          DTypeOf(first) != DTypeOf(update) || bucket->stage != stage ||
          SplitAxis(first) != SplitAxis(update)) {
        continue;
      }
      if (owned || (bucket->elements + ElementsOf(update)) * SizeOf(DTypeOf(update)) <=
                       options_.bucket_bytes)
        return *bucket;
      break;  // older ones are full
    }
    buckets_.emplace_back();
    buckets_.back().stage = stage;
    buckets_.back().owned = owned;
    return buckets_.back();
  }

  bool IsOwned(const ir::Node& update) const {
    return num_shards_ > 1 && SplitAxis(update) < 0 &&
           (update.op->traits.keeps_tensors_whole || options_.partition != Partition::kEven);
  }

  void Pack(const Bucket& all, std::vector<Bucket>* finished) const {
    std::vector<OwnedTensor> tensors;
    for (const ir::Node* update : all.updates) {
      const auto& flops = update->op->flops;
      tensors.push_back({AlignedElementsOf(*update), flops ? flops(update->Call()) : 0});
    }
    PackOptions options;
    options.num_owners = num_shards_;
    options.partition =
        options_.partition == Partition::kEven ? Partition::kBalanced : options_.partition;
    options.bucket_elements = options_.bucket_bytes / SizeOf(DTypeOf(*all.updates[0]));
    options.part_multiple = MultipleFor(*all.updates[0]) / num_shards_;
    for (const OwnedBucket& packed : PackOwned(tensors, options)) {
      Bucket& bucket = finished->emplace_back();
      bucket.elements = packed.elements;
      bucket.stage = all.stage;
      for (const OwnedBucket::Place& place : packed.places) {
        bucket.updates.push_back(all.updates[place.tensor]);
        bucket.offsets.push_back(place.offset);
      }
    }
  }

  // The alignment of tensors in elements: at the beginning of a block, too, if there are blocks.
  static int64_t AlignmentOf(const ir::Node& update) {
    return IsQuantised(update) ? kQuantisedBlock : kBucketAlignmentBytes / SizeOf(DTypeOf(update));
  }

  // The alignment of parts: the parts of the blocks' scales are aligned, too.
  static int64_t PartAlignmentOf(const ir::Node& update) {
    constexpr auto kScales = static_cast<int64_t>(kBucketAlignmentBytes / sizeof(float));
    return AlignmentOf(update) * (IsQuantised(update) ? kScales : 1);
  }

  // A bucket's elements are a multiple of this: every rank that has terms of the sum adds up an equal
  // part, also of a bucket that only some of them shard. These are the data ranks, and the ranks that
  // share micro-batches unless they have parts of the tensors.
  int64_t MultipleFor(const ir::Node& update) const {
    const Mesh& mesh = graph_.mesh();
    const auto num_sharing =
        mesh.num_ranks() / mesh.num_data_ranks() / static_cast<int>(NumParts(graph_, update));
    return mesh.num_data_ranks() * std::lcm(PartAlignmentOf(update), int64_t{num_sharing});
  }

  int64_t AlignedElementsOf(const ir::Node& update) const {
    return RoundUp(ElementsOf(update), AlignmentOf(update));
  }

  // The elements of a rank's part.
  int64_t ElementsOf(const ir::Node& update) const {
    return update.inputs[0]->type.shape.num_elements() / NumParts(graph_, update);
  }

  const ir::Graph& graph_;
  BucketingOptions options_;
  const int num_shards_;
  std::vector<Bucket> buckets_;
};

// The update nodes in the order in which backward completes their gradients.
std::vector<ir::Node*> InGradientOrder(const ir::Graph& graph) {
  std::unordered_map<const ir::Node*, int> position;
  for (ir::Node* node : graph.section(ir::SectionKind::kBackward)->nodes)
    position.emplace(node, position.size());
  std::vector<ir::Node*> updates = UpdateNodes(graph);
  std::stable_sort(updates.begin(), updates.end(), [&](const ir::Node* a, const ir::Node* b) {
    return position[a->inputs[1]->producer] < position[b->inputs[1]->producer];
  });
  return updates;
}

std::vector<ir::Node*> InOrder(const ir::Graph& graph, BucketOrder order) {
  if (order == BucketOrder::kGradients) return InGradientOrder(graph);
  std::vector<ir::Node*> updates = UpdateNodes(graph);  // in the order of the parameters
  std::reverse(updates.begin(), updates.end());
  return updates;
}

// Replaces the variables of one bucket's updates by flat ones.
class BucketMaker {
 public:
  BucketMaker(ir::Graph* graph, const Bucket& bucket, std::string name)
      : graph_(*graph), bucket_(bucket), name_(std::move(name)) {}

  Status Run() {
    ir::Node* first = bucket_.updates[0];
    ir::Builder update(&graph_, graph_.section(ir::SectionKind::kUpdate));
    update.InsertBefore(first);
    ZG_ASSIGN_OR_RETURN(ir::Value * parameters, Flatten(InputsAt(0)));
    ZG_ASSIGN_OR_RETURN(ir::Value * gradients, Pack());
    std::vector<ir::Value*> inputs = {parameters, gradients};
    for (size_t slot = 2; slot < first->inputs.size(); ++slot) {
      ZG_ASSIGN_OR_RETURN(ir::Value * state, FlattenState(slot));
      inputs.push_back(state);
    }
    const std::vector<ir::Value*> updated =
        update.Ops(first->op->name, inputs, Attributes(), name_ + ".next");
    ZG_RETURN_IF_ERROR(update.status());
    const std::vector<ir::Value*> read = ReadByModel();
    ir::Value* flat_read = parameters;
    if (read[0] != first->inputs[0]) {  // 16-bit copies of the masters
      ZG_ASSIGN_OR_RETURN(flat_read, Flatten(read));
      ir::Value* copy = update.Op("cast", {updated[0]}, {{"dtype", flat_read->type.dtype}},
                                  flat_read->name + ".next");
      update.Ops("assign", {flat_read, copy});
    }
    update.Ops("assign", {inputs[0], updated[0]});
    for (size_t i = 1; i < updated.size(); ++i) update.Ops("assign", {inputs[i + 1], updated[i]});
    ZG_RETURN_IF_ERROR(update.status());
    return RemoveOld(read, flat_read);
  }

 private:
  // The attributes that the updates have in common. An update that uses whole tensors needs their
  // positions.
  ir::Attributes Attributes() const {
    ir::Attributes attributes = bucket_.updates[0]->attributes;
    constexpr char kTensors[] = "tensors";
    std::vector<int64_t> tensors, matrices, blocks;
    const int64_t num_parts = NumParts(graph_, *bucket_.updates[0]);
    for (size_t i = 0; i < bucket_.updates.size(); ++i) {
      const ir::Node& update = *bucket_.updates[i];
      const Shape& shape = update.inputs[0]->type.shape;
      tensors.push_back(bucket_.offsets[i]);
      tensors.push_back(shape.num_elements() / num_parts);
      if (!attributes.Has(kMatrices)) continue;
      AppendMatrices(shape, bucket_.offsets[i], &matrices);
      if (SplitAxis(update) < 0) continue;  // else a bucket of parts, if only of one
      blocks.push_back(BlockOfPart(shape, SplitOf(update)[SplitAxis(update)], num_parts));
    }
    if (attributes.Has(kTensors)) attributes.Set(kTensors, tensors);
    if (attributes.Has(kMatrices)) attributes.Set(kMatrices, matrices);
    if (!blocks.empty()) attributes.Set("blocks", blocks);
    return attributes;
  }

  // One value of each update.
  std::vector<ir::Value*> InputsAt(size_t slot) const {
    std::vector<ir::Value*> values;
    for (const ir::Node* update : bucket_.updates) values.push_back(update->inputs[slot]);
    return values;
  }
  std::vector<ir::Value*> ReadByModel() const {
    std::vector<ir::Value*> values;
    for (const ir::Node* update : bucket_.updates)
      values.push_back(ParameterAssign(*update)->inputs[0]);
    return values;
  }

  // The flat variable that replaces these; named after the first, such as "bucket0.exp_avg".
  StatusOr<ir::Value*> Flatten(const std::vector<ir::Value*>& variables) {
    return FlattenAt(variables, {bucket_.offsets, bucket_.elements, bucket_.stage,
                                 SplitAxis(*bucket_.updates[0])});
  }

  StatusOr<ir::Value*> FlattenState(size_t slot) {
    const ir::Node& first = *bucket_.updates[0];
    if (IsFactored(first)) return FlattenFactors(slot);
    const bool is_scale = IsQuantised(first) && first.inputs[slot]->type.dtype == DType::kF32;
    if (!is_scale) return Flatten(InputsAt(slot));
    std::vector<int64_t> blocks;  // before each tensor, which begins at a block
    for (const int64_t offset : bucket_.offsets) blocks.push_back(offset / kQuantisedBlock);
    return FlattenAt(InputsAt(slot), {blocks, bucket_.elements / kQuantisedBlock, bucket_.stage});
  }

  // Row or column statistics are end to end, and whole on every rank, because all ranks need them.
  StatusOr<ir::Value*> FlattenFactors(size_t slot) {
    std::vector<int64_t> offsets;
    int64_t end = 0;
    for (const ir::Value* state : InputsAt(slot)) {
      offsets.push_back(end);
      end += state->type.shape.num_elements();
    }
    return FlattenAt(InputsAt(slot), {offsets, end, /*stage=*/0});
  }

  StatusOr<ir::Value*> FlattenAt(const std::vector<ir::Value*>& variables,
                                 const FlatLayout& layout) {
    const std::string& state = variables[0]->name;
    const size_t length = bucket_.updates[0]->inputs[0]->name.size();
    return MakeFlatVariable(graph_, name_ + state.substr(length), variables, layout);
  }

  // Packs right after the last gradient of the bucket exists.
  StatusOr<ir::Value*> Pack() {
    std::vector<ir::Value*> gradients;
    ir::Node* last = nullptr;
    for (ir::Node* update : bucket_.updates) {
      gradients.push_back(update->inputs[1]);
      ir::Node* producer = update->inputs[1]->producer;
      if (last == nullptr || graph_.IndexOf(producer) > graph_.IndexOf(last)) last = producer;
    }
    ir::Builder backward(&graph_, last->section);
    backward.InsertBefore(graph_.NextOf(last));
    ir::Attributes attributes = {{"offsets", bucket_.offsets}, {"size", bucket_.elements}};
    if (SplitAxis(*bucket_.updates[0]) >= 0) {
      NdSbp splits;
      for (const ir::Node* update : bucket_.updates) {
        splits.push_back(SplitOf(*update)[SplitAxis(*update)]);
      }
      attributes.Set("parts", NumParts(graph_, *bucket_.updates[0]));
      attributes.Set("splits", splits);
    }
    ir::Value* packed = backward.Op("bucket_pack", gradients, attributes, name_ + ".grad");
    ZG_RETURN_IF_ERROR(backward.status());
    return packed;
  }

  // `read` are the values that the model reads; from here on it reads views of `flat_read`.
  Status RemoveOld(const std::vector<ir::Value*>& read, ir::Value* flat_read) {
    for (size_t i = 0; i < bucket_.updates.size(); ++i) {
      ir::Node* update = bucket_.updates[i];
      std::vector<ir::Value*> variables = {update->inputs[0]};
      variables.insert(variables.end(), update->inputs.begin() + 2, update->inputs.end());
      if (read[i] != variables[0]) variables.push_back(read[i]);
      const ir::Attributes place = PlaceInBucket(*update->inputs[0], bucket_.offsets[i]);
      for (ir::Value* output : update->outputs) EraseUsers(output);
      graph_.Erase(update);
      ZG_RETURN_IF_ERROR(ReadThroughViews(read[i], flat_read, place));
      for (ir::Value* old : variables) graph_.Erase(old->producer);
    }
    return Status::Ok();
  }

  void EraseUsers(ir::Value* value) {
    for (ir::Node* user : std::vector<ir::Node*>(value->users)) {
      for (ir::Value* output : user->outputs) EraseUsers(output);
      graph_.Erase(user);
    }
  }

  // Every section that uses the parameter gets a view of its own, right before the first use.
  Status ReadThroughViews(ir::Value* parameter, ir::Value* bucket, const ir::Attributes& place) {
    const std::string name = parameter->name;
    graph_.Rename(parameter, name + ".unbucketed");
    for (const auto& section : graph_.sections()) {
      ZG_RETURN_IF_ERROR(ReadThroughView(graph_, UsersIn(graph_, *section, *parameter), parameter,
                                         bucket, place, name));
    }
    return Status::Ok();
  }

  ir::Graph& graph_;
  const Bucket& bucket_;
  std::string name_;
};

}  // namespace

StatusOr<bool> Bucketing::Run(ir::Graph& graph) const {
  BucketFiller filler(graph, options_);
  bool any = false;
  for (ir::Node* update : InOrder(graph, options_.order)) {
    if (!update->inputs[0]->sbp.empty()) continue;  // bucketed before placements were inferred
    if (update->inputs[1]->producer->op->traits.kind == ir::OpKind::kPack) continue;
    filler.Add(update);
    any = true;
  }
  const std::vector<Bucket> buckets = filler.Finish();
  for (size_t i = 0; i < buckets.size(); ++i) {
    BucketMaker maker(&graph, buckets[i], fmt::format("bucket{}", i));
    ZG_RETURN_IF_ERROR(maker.Run());
  }
  return any;
}

}  // namespace zg::zero
