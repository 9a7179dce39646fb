// Buckets: several tensors of one dtype end to end in one flat value, which collectives send and
// updates process as a whole (zero/bucketing.h). bucket_view names a tensor of a bucket and costs
// nothing; bucket_pack makes a bucket, with its inputs in place where the memory plan allows it.
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

ir::OpDef BucketViewOp();
ir::OpDef BucketPackOp();

}  // namespace zg
