// Buckets: several tensors of one dtype end to end in one, flat, which collectives send and updates
// compute as a whole (zero/bucketing.h). bucket_view gives a tensor of it a name and costs nothing;
// bucket_pack makes one, with its inputs in place where the memory plan can do so.
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

ir::OpDef BucketViewOp();
ir::OpDef BucketPackOp();

}  // namespace zg
