// What gives a graph its frame rather than computes: devices are compared, and tests/kernels and
// tests/runtime have what the ops must do.
#include "tests/ops/op_case.h"

namespace zg::testing {

FamilyCases StructureCases() {
  FamilyCases family;
  family.cases = {
      {.op = "accumulate",
       .label = "many elements",
       .inputs = {F32({5000}), F32({5000})},
       .f32_inputs = {0}},
      {.op = "bucket_pack",
       .label = "gaps",
       .inputs = {F32({3, 5}), F32({7}), F32({16})},
       .attributes = {{"offsets", std::vector<int64_t>{1, 16, 30}}, {"size", int64_t{64}}}},
      {.op = "constant", .label = "a number", .attributes = {{"value", 2.5}}}};
  family.exact_on_gpu = {"accumulate", "bucket_pack", "constant"};
  return family;
}

}  // namespace zg::testing
