// The ops of framework/ops, and the cases of each family, which are in its file.
#include "framework/ops/register_all_ops.h"
#include "tests/ops/op_suite.h"

namespace zg::testing {

#define ZG_OP_FAMILY(Family) FamilyCases Family##Cases();
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"

void RegisterOpsUnderTest() { RegisterAllOps(); }

std::vector<FamilyCases> FamiliesUnderTest() {
  return {
#define ZG_OP_FAMILY(Family) Family##Cases(),
#define ZG_OP_FAMILY_WITHOUT_CUDA(Family) ZG_OP_FAMILY(Family)
#include "framework/ops/families.inc"
  };
}

}  // namespace zg::testing
