// Ops that give a graph its structure rather than compute. Devices are compared here;
// tests/kernels/structure_test.cc and tests/runtime test what these ops do.
#include "tests/ops/op_case.h"

namespace zg::testing {

FamilyCases StructureCases() {
  FamilyCases family;
  family.large = {Sized("accumulate", "many elements", {F32({5000}), F32({5000})}, {}, {0}),
                  Sized("bucket_pack", "gaps", {F32({3, 5}), F32({7}), F32({16})},
                        {{"offsets", std::vector<int64_t>{1, 16, 30}}, {"size", int64_t{64}}}),
                  Sized("constant", "a number", {}, {{"value", 2.5}})};
  const Shape bucket = {4 << 20};
  family.bench = {Sized("accumulate", "bucket", {F32(bucket), F32(bucket)}, {}, {0}),
                  Sized("bucket_pack", "copy", {F32(bucket)},
                        {{"offsets", std::vector<int64_t>{0}}, {"size", bucket.num_elements()}})};
  family.exact_on_gpu = {"accumulate", "bucket_pack", "constant"};
  return family;
}

}  // namespace zg::testing
