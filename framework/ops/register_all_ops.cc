#include "framework/ops/register_all_ops.h"

#include <mutex>

#include "framework/ir/op_registry.h"

namespace zg {

#define ZG_OP_FAMILY(Family) void Register##Family##Ops(ir::OpRegistry& registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#define ZG_OP_FAMILY_WITHOUT_KERNELS(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"

void RegisterAllOps() {
  static std::once_flag once;
  std::call_once(once, [] {
    ir::OpRegistry& registry = ir::OpRegistry::Global();
#define ZG_OP_FAMILY(Family) Register##Family##Ops(registry);
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#define ZG_OP_FAMILY_WITHOUT_KERNELS(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"
  });
}

}  // namespace zg
