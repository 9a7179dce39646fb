// Buckets of several parts, (parts, elements): a mesh axis splits the tensors that lie in them, and
// part k holds the k-th part of each, at the same element (zero/bucketing.h). What a call has of a
// bucket, flat or in parts, are rows: equal pieces, each of another part. Updates that know whole
// tensors are told where each row begins, by an i64 like the bucket, with an element for each piece:
// in elements of the whole bucket.
#pragma once

#include <cstdint>
#include <limits>

#include "framework/base/host_device.h"
#include "framework/ir/op_def.h"

namespace zg {

// The attribute of a rank's call that says what bucket its input 0 is a part of.
inline constexpr char kWholeBucket[] = "whole_bucket";

// OpDef::localize.
inline void SetWholeBucket(const ir::OpCall& logical, ir::OpCall* local) {
  local->attributes.Set(kWholeBucket, logical.inputs[0].shape);
}

struct BucketRows {
  int64_t num_parts = 1;                                        // of the whole bucket
  int64_t part_elements = std::numeric_limits<int64_t>::max();  // of each; a flat one has no end
  int64_t rows = 1;                                             // of the call
  int64_t elements = 0;                                         // of each row
  int64_t begins_per_row = 1;

  // Input 0 is what the call has of a bucket, the last input where its rows begin, if it is i64.
  static BucketRows Of(const ir::OpCall& call) {
    const Shape& own = call.inputs[0].shape;
    BucketRows rows;
    rows.elements = own.num_elements();
    if (own.num_dims() != 2) return rows;
    Shape whole = call.attributes.Shape(kWholeBucket);
    if (whole.num_dims() != 2) whole = own;
    rows = {whole.dim(0), whole.dim(1), own.dim(0), own.dim(1)};
    if (call.inputs.back().shape.num_dims() == 2) {
      rows.begins_per_row = call.inputs.back().shape.dim(1);
    }
    return rows;
  }

  // Of a call whose input 0 is one whole tensor.
  static BucketRows OfTensor(const ir::OpCall& call) {
    BucketRows rows;
    rows.elements = call.inputs[0].shape.num_elements();
    return rows;
  }

  // Where row `row` lies in the bucket; without `begins` the call has all of it.
  struct Place {
    int64_t part;
    int64_t first;  // element of the part
  };
  ZG_HOST_DEVICE Place PlaceOf(const int64_t* begins, int64_t row) const {
    if (begins == nullptr) return {row, 0};
    const int64_t at = begins[row * begins_per_row];
    return {at / part_elements, at % part_elements};
  }
};

}  // namespace zg
