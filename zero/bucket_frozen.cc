#include "zero/bucket_frozen.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/passes/sixteen_bit_casts.h"
#include "zero/flat_bucket.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// The dtype in which the model reads the parameter, here or, if nobody does, in other phases.
DType ReadDType(const ir::Value& parameter, const NeedsOfPhases& needs) {
  if (parameter.users.empty() && needs.sixteen_bit.count(parameter.name) != 0) return needs.dtype;
  const std::vector<ir::Node*> casts = SixteenBitCastsOf(parameter);
  return casts.empty() ? parameter.type.dtype : casts[0]->outputs[0]->type.dtype;
}

struct Bucket {
  std::vector<ir::Value*> parameters;
  DType read = DType::kF32;
  FlatLayout layout;
};

class Packer {
 public:
  Packer(const ir::Graph& graph, int64_t bucket_bytes, int64_t shard_min_elements,
         const NeedsOfPhases& needs)
      : graph_(graph),
        bytes_(bucket_bytes),
        shard_min_elements_(shard_min_elements),
        needs_(needs) {}

  void Add(ir::Value* parameter) {
    const DType read = ReadDType(*parameter, needs_);
    const int64_t elements = PartElements(*parameter);
    const bool is_small = elements < shard_min_elements_;
    const int64_t stage = is_small ? 0 : parameter->producer->attributes.Int("stage");
    Bucket& bucket = OpenBucketFor(*parameter, read, elements, stage);
    bucket.parameters.push_back(parameter);
    bucket.layout.offsets.push_back(bucket.layout.elements);
    bucket.layout.elements += RoundUp(elements, AlignmentOf(read));
  }

  std::vector<Bucket> Finish() {
    for (Bucket& bucket : buckets_) {
      int64_t& elements = bucket.layout.elements;
      if (bucket.layout.stage >= 3 && NumShards(graph_) > 1) {
        elements = RoundUp(elements, AlignmentOf(bucket.read) * graph_.mesh().num_data_ranks());
      } else {  // nobody reads beyond the last tensor
        elements = bucket.layout.offsets.back() + PartElements(*bucket.parameters.back());
      }
    }
    return std::move(buckets_);
  }

 private:
  static int64_t AlignmentOf(DType dtype) { return kBucketAlignmentBytes / SizeOf(dtype); }

  int64_t PartElements(const ir::Value& parameter) const {
    return parameter.type.shape.num_elements() / NumPartsOf(graph_, parameter);
  }

  // The newest bucket of the same kind, if it has room for this many elements, or a new one.
  Bucket& OpenBucketFor(const ir::Value& parameter, DType read, int64_t elements, int64_t stage) {
    const int split_axis = SplitAxisOf(parameter);
    for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
      const bool is_same = bucket->read == read && bucket->layout.stage == stage &&
                           bucket->layout.split_axis == split_axis &&
                           bucket->parameters[0]->type.dtype == parameter.type.dtype;
      if (!is_same) continue;
      if ((bucket->layout.elements + elements) * SizeOf(read) <= bytes_) return *bucket;
      break;  // older ones are full
    }
    Bucket& bucket = buckets_.emplace_back();
    bucket.read = read;
    bucket.layout.stage = stage;
    bucket.layout.split_axis = split_axis;
    return bucket;
  }

  const ir::Graph& graph_;
  const int64_t bytes_;
  const int64_t shard_min_elements_;
  const NeedsOfPhases& needs_;
  std::vector<Bucket> buckets_;
};

// The value of a bucket that the model reads: a parameter or a cast of one.
struct Old {
  ir::Value* value;
  std::string name;      // taken over by the view
  ir::Attributes place;  // of the tensor in the bucket
};

// Replaces the parameters of a bucket by a flat one.
class BucketMaker {
 public:
  BucketMaker(ir::Graph* graph, const Bucket& bucket, std::string name)
      : graph_(*graph), bucket_(bucket), name_(std::move(name)) {}

  Status Run() {
    ZG_ASSIGN_OR_RETURN(ir::Value * flat,
                        MakeFlatVariable(graph_, name_, bucket_.parameters, bucket_.layout));
    flat->producer->attributes.Set("trainable", false);
    FindOldValues();
    for (const auto& section : graph_.sections()) {
      ZG_RETURN_IF_ERROR(ReadIn(*section, flat));
    }
    if (is_copied()) {
      for (const Old& old : old_) graph_.Erase(old.value->producer);
    }
    for (const ir::Value* parameter : bucket_.parameters) graph_.Erase(parameter->producer);
    return Status::Ok();
  }

 private:
  // Whether the model reads casts of the parameters, and so of the bucket.
  bool is_copied() const { return bucket_.read != bucket_.parameters[0]->type.dtype; }

  void FindOldValues() {
    for (size_t i = 0; i < bucket_.parameters.size(); ++i) {
      ir::Value* parameter = bucket_.parameters[i];
      const ir::Attributes place = PlaceInBucket(*parameter, bucket_.layout.offsets[i]);
      if (!is_copied()) AddOldValue(parameter, place);
      for (const ir::Node* user : parameter->users) {
        if (is_copied()) AddOldValue(user->outputs[0], place);
      }
    }
  }

  void AddOldValue(ir::Value* value, const ir::Attributes& place) {
    old_.push_back({value, value->name, place});
    graph_.Rename(value, value->name + ".unbucketed");
  }

  // A section makes its own copy, and has its own views.
  Status ReadIn(const ir::Section& section, ir::Value* flat) {
    ir::Node* first = FirstReaderIn(section);
    if (first == nullptr) return Status::Ok();
    ir::Value* bucket = flat;
    if (is_copied()) {
      ir::Builder builder(&graph_, first->section);
      builder.InsertBefore(first);
      bucket = builder.Op("cast", {flat}, {{"dtype", bucket_.read}},
                          fmt::format("{}.{}", name_, DTypeName(bucket_.read)));
      ZG_RETURN_IF_ERROR(builder.status());
    }
    for (const Old& old : old_) {
      ZG_RETURN_IF_ERROR(ReadThroughView(graph_, UsersIn(graph_, section, *old.value), old.value,
                                         bucket, old.place, old.name));
    }
    return Status::Ok();
  }

  // Null if the section reads nothing of the bucket.
  ir::Node* FirstReaderIn(const ir::Section& section) const {
    ir::Node* first = nullptr;
    for (const Old& old : old_) {
      const std::vector<ir::Node*> readers = UsersIn(graph_, section, *old.value);
      if (readers.empty()) continue;
      if (first == nullptr || graph_.IndexOf(readers[0]) < graph_.IndexOf(first)) {
        first = readers[0];
      }
    }
    return first;
  }

  ir::Graph& graph_;
  const Bucket& bucket_;
  const std::string name_;
  std::vector<Old> old_;
};

}  // namespace

StatusOr<bool> BucketFrozen::Run(ir::Graph& graph) const {
  if (graph.is_placed()) return false;
  Packer packer(graph, bucket_bytes_, shard_min_elements_, needs_);
  for (ir::Value* parameter : FrozenVariables(graph)) {
    if (IsBucket(graph, *parameter)) continue;
    packer.Add(parameter);
  }
  const std::vector<Bucket> buckets = packer.Finish();
  for (size_t i = 0; i < buckets.size(); ++i) {
    ZG_RETURN_IF_ERROR(BucketMaker(&graph, buckets[i], fmt::format("frozen{}", i)).Run());
  }
  return !buckets.empty();
}

}  // namespace zg::zero
