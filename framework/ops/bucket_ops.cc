#include "framework/ops/bucket_ops.h"

#include "framework/base/check.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

// The number of parts of a bucket (size) or (parts, size); 0: not a bucket.
int64_t NumParts(const Shape& bucket) {
  if (bucket.num_dims() == 1) return 1;
  return bucket.num_dims() == 2 ? bucket.dim(0) : 0;
}

}  // namespace

ir::OpDef BucketViewOp() {
  ir::OpDef op;
  op.name = "bucket_view";
  op.traits.kind = ir::OpKind::kView;
  op.traits.sinks_to_user = true;
  op.doc =
      "The tensor of `shape` that lies at element `offset` of a flat bucket; shares its memory. Of "
      "a bucket of several parts, (parts, size), each part holds a part of the tensor, which is "
      "split as `split` says.";
  op.attributes = {{"offset", int64_t{0}, true}, {"shape", Shape{}, true}, {"split", Sbp::B()}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& bucket = call.inputs[0];
    const Shape& shape = call.attributes.Shape("shape");
    const int64_t offset = call.attributes.Int("offset");
    const int64_t num_parts = NumParts(bucket.shape);
    if (num_parts < 1 || !shape.IsValid() || shape.num_elements() % num_parts != 0 || offset < 0 ||
        offset > bucket.shape.dim(-1) - shape.num_elements() / num_parts) {
      return InvalidArgument("bucket_view: shape {} at offset {} does not lie inside the bucket {}",
                             shape.ToString(), offset, bucket.ToString());
    }
    return Types{{bucket.dtype, shape}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) -> std::vector<ir::SbpSignature> {
    const Sbp split = call.attributes.Sbp("split");
    if (!split.is_split()) return {};
    return {{{Sbp::S(0)}, {split}}};
  };
  op.not_differentiable = "buckets are made after backward is built";
  op.aliases = [](const ir::OpCall& call) {
    ZG_CHECK(NumParts(call.inputs[0].shape) == 1, "a view of more than the rank's own part");
    return InsideInput(call.attributes.Int("offset"));
  };
  return op;
}

ir::OpDef BucketPackOp() {
  ir::OpDef op;
  op.name = "bucket_pack";
  op.traits.kind = ir::OpKind::kPack;
  op.doc =
      "A flat bucket of `size` elements with input i at offsets[i] and zeros elsewhere. Its inputs "
      "are gradients of parameters, produced in place where the memory plan can do so. "
      "`in_flight`: it is reduced as soon as it is complete, and its memory given up then. A bucket "
      "with `splits`, (parts, size), holds in each of its parts one of input i, which is split as "
      "splits[i] says.";
  op.max_inputs = -1;
  op.attributes = {{"offsets", std::vector<int64_t>{}, true},
                   {"size", int64_t{0}, true},
                   {"in_flight", false},
                   {"parts", int64_t{1}},
                   {"splits", NdSbp{}}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const std::vector<int64_t>& offsets = call.attributes.Ints("offsets");
    if (offsets.size() != call.inputs.size()) {
      return InvalidArgument("bucket_pack: got {} offsets for {} inputs", offsets.size(),
                             call.inputs.size());
    }
    const int64_t size = call.attributes.Int("size");
    const int64_t num_parts = call.attributes.Int("parts");
    const size_t num_splits = call.attributes.NdSbp("splits").size();
    const bool is_split = num_splits > 0;
    const TensorType bucket = {call.inputs[0].dtype,
                               is_split ? Shape{num_parts, size} : Shape{size}};
    if (num_parts < 1 || (!is_split && num_parts > 1) ||
        (is_split && num_splits != call.inputs.size())) {
      return InvalidArgument("bucket_pack: got {} parts and {} splits for {} inputs", num_parts,
                             num_splits, call.inputs.size());
    }
    int64_t end = 0;
    for (size_t i = 0; i < offsets.size(); ++i) {
      const TensorType& input = call.inputs[i];
      if (offsets[i] < end) {
        return InvalidArgument("bucket_pack: input {} overlaps the one before it", i);
      }
      const int64_t elements = input.shape.num_elements() / num_parts;
      if (!bucket.shape.IsValid() || input.shape.num_elements() % num_parts != 0 ||
          offsets[i] > size - elements) {
        return InvalidArgument("bucket_pack: input {}, {} at {}, does not lie inside the bucket {}",
                               i, input.ToString(), offsets[i], bucket.ToString());
      }
      end = offsets[i] + elements;
    }
    return Types{bucket};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = {
        {std::vector<Sbp>(call.inputs.size(), Sbp::P()), {Sbp::P()}}};
    const NdSbp& splits = call.attributes.NdSbp("splits");
    if (!splits.empty()) signatures.push_back({splits, {Sbp::S(0)}});
    return signatures;
  };
  op.not_differentiable = "buckets are made after backward is built";
  op.aliases = [](const ir::OpCall& call) {
    std::vector<ir::AliasRule> rules;
    const std::vector<int64_t>& offsets = call.attributes.Ints("offsets");
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const int64_t end = i + 1 < offsets.size() ? offsets[i + 1] : call.attributes.Int("size");
      ZG_CHECK(offsets[i] + call.inputs[i].shape.num_elements() <= end,
               "bucket_pack: input {} is {}, more than the rank's own part", i,
               call.inputs[i].ToString());
      ir::AliasRule rule;
      rule.kind = ir::AliasRule::Kind::kInputInsideOutput;
      rule.input = static_cast<int>(i);
      rule.offset_elements = offsets[i];
      rules.push_back(rule);
    }
    return rules;
  };
  return op;
}

}  // namespace zg
