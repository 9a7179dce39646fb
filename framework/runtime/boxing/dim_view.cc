#include "framework/runtime/boxing/dim_view.h"

namespace zg {

DimView ViewDim(const TensorType& type, int dim) {
  DimView view;
  for (int i = 0; i < dim; ++i) view.outer *= type.shape.dim(i);
  view.size = type.shape.dim(dim);
  view.inner_bytes = SizeOf(type.dtype);
  for (int i = dim + 1; i < type.shape.num_dims(); ++i) view.inner_bytes *= type.shape.dim(i);
  return view;
}

Status TakePart(Device& device, const DimView& view, PartOfDim which, const std::byte* whole,
                std::byte* part) {
  CopiedRows rows;
  rows.bytes = view.size / which.count * view.inner_bytes;
  rows.count = view.outer;
  rows.to = part;
  rows.to_stride = rows.bytes;
  rows.from = whole + which.index * rows.bytes;
  rows.from_stride = which.count * rows.bytes;
  return device.Copy(rows);
}

Status PutPart(Device& device, const DimView& view, PartOfDim which, const std::byte* part,
               std::byte* whole) {
  CopiedRows rows;
  rows.bytes = view.size / which.count * view.inner_bytes;
  rows.count = view.outer;
  rows.to = whole + which.index * rows.bytes;
  rows.to_stride = which.count * rows.bytes;
  rows.from = part;
  rows.from_stride = rows.bytes;
  return device.Copy(rows);
}

Status TakeParts(Device& device, const DimView& view, int64_t count, const std::byte* whole,
                 std::byte* parts) {
  const int64_t part_bytes = view.outer * (view.size / count) * view.inner_bytes;
  for (int64_t i = 0; i < count; ++i) {
    ZG_RETURN_IF_ERROR(TakePart(device, view, {i, count}, whole, parts + i * part_bytes));
  }
  return Status::Ok();
}

Status PutParts(Device& device, const DimView& view, int64_t count, const std::byte* parts,
                std::byte* whole) {
  const int64_t part_bytes = view.outer * (view.size / count) * view.inner_bytes;
  for (int64_t i = 0; i < count; ++i) {
    ZG_RETURN_IF_ERROR(PutPart(device, view, {i, count}, parts + i * part_bytes, whole));
  }
  return Status::Ok();
}

}  // namespace zg
