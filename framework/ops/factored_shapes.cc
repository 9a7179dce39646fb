#include "framework/ops/factored_shapes.h"

#include "framework/base/check.h"
#include "framework/ops/bucket_parts.h"

namespace zg {

void AppendMatrices(const Shape& tensor, int64_t begin, std::vector<int64_t>* matrices) {
  ZG_CHECK(tensor.num_dims() >= 2, "a tensor {} has no rows and columns", tensor.ToString());
  int64_t count = 1;
  for (int i = 0; i < tensor.num_dims() - 2; ++i) count *= tensor.dim(i);
  matrices->insert(matrices->end(), {begin, count, tensor.dim(-2), tensor.dim(-1)});
}

Status CheckMatricesAttribute(const ir::OpCall& call) {
  const std::vector<int64_t>& matrices = call.attributes.Ints("matrices");
  if (matrices.size() % 4 != 0) {
    return InvalidArgument(
        "{}: got {} numbers in `matrices`, expected begin, count, rows and columns", call.op->name,
        matrices.size());
  }
  for (size_t i = 0; i < matrices.size(); i += 4) {
    const int64_t begin = matrices[i];
    const Shape shape = {matrices[i + 1], matrices[i + 2], matrices[i + 3]};
    if (begin >= 0 && begin <= Shape::kMaxElements && shape.IsValid()) continue;
    return InvalidArgument(
        "{}: got matrices {} at {}, expected sizes of at least 0, and at most {} elements",
        call.op->name, shape.ToString(), begin, Shape::kMaxElements);
  }
  return Status::Ok();
}

int64_t BlockOfPart(const Shape& tensor, Sbp split, int64_t parts) {
  int64_t block = tensor.dim(split.dim()) / (parts * split.groups());
  for (int dim = split.dim() + 1; dim < tensor.num_dims(); ++dim) block *= tensor.dim(dim);
  return block;
}

FactoredTensors FactoredTensorsOf(const ir::Attributes& attributes, const Shape& parameter) {
  std::vector<int64_t> matrices = attributes.Ints("matrices");
  if (matrices.empty()) AppendMatrices(parameter, 0, &matrices);
  FactoredTensors all;
  for (size_t i = 0; i + 3 < matrices.size(); i += 4) {
    const FactoredTensor tensor = {matrices[i],     matrices[i + 1], matrices[i + 2],
                                   matrices[i + 3], all.num_rows,    all.num_columns};
    all.num_rows += tensor.num_rows();
    all.num_columns += tensor.num_columns();
    all.tensors.push_back(tensor);
  }
  return all;
}

FactoredTensors FactoredTensorsOf(const ir::OpCall& call) {
  FactoredTensors all = FactoredTensorsOf(call.attributes, call.inputs[0].shape);
  const std::vector<int64_t>& blocks = call.attributes.Ints("blocks");
  for (size_t i = 0; i < blocks.size() && i < all.tensors.size(); ++i) {
    all.tensors[i].parts = BucketRows::Of(call).num_parts;
    all.tensors[i].block = blocks[i];
  }
  return all;
}

}  // namespace zg
