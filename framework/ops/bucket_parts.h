// Buckets of several parts, (parts, elements): a mesh axis splits their tensors, and part k holds
// the k-th part of each, at the same element (zero/bucketing.h). A call has rows of a bucket, flat
// or in parts: equal pieces, each from another part. Updates that use whole tensors get the begin
// of each row, as an i64 laid out like the bucket, with an element for each piece, in elements of
// the whole bucket.
#pragma once

#include <cstdint>
#include <limits>

#include "framework/base/host_device.h"
#include "framework/ir/op_def.h"

namespace zg {

// The attribute of a rank's call that describes the bucket that its input 0 is a part of.
inline constexpr char kWholeBucket[] = "whole_bucket";

// OpDef::localize.
inline void SetWholeBucket(const ir::OpCall& logical, ir::OpCall* local) {
  local->attributes.Set(kWholeBucket, logical.inputs[0].shape);
}

struct BucketRows {
  int64_t num_parts = 1;                                        // of the whole bucket
  int64_t part_elements = std::numeric_limits<int64_t>::max();  // of each; a flat one is unlimited
  int64_t rows = 1;                                             // of the call
  int64_t elements = 0;                                         // of each row
  int64_t begins_per_row = 1;

  // Input 0 is the call's part of a bucket; the last input, if it is i64, has the begins of its
  // rows.
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

  // For a call whose input 0 is one whole tensor.
  static BucketRows OfTensor(const ir::OpCall& call) {
    BucketRows rows;
    rows.elements = call.inputs[0].shape.num_elements();
    return rows;
  }

  // The position of row `row` in the bucket; without `begins` the call has all of it.
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
