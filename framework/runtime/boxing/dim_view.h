// Copies between a tensor and one of its equal parts along a dim.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/tensor/tensor_type.h"

namespace zg {

// A tensor seen as [outer, dim, inner].
struct DimView {
  int64_t outer = 1;
  int64_t size = 1;         // elements of the dim
  int64_t inner_bytes = 1;  // of one element of the dim
};

DimView ViewDim(const TensorType& type, int dim);

// One of the equal parts along the viewed dim.
struct PartOfDim {
  int64_t index = 0;
  int64_t count = 1;
};

// Queues the copy of a part of `whole` to `part`, which is contiguous, or back.
Status TakePart(Device& device, const DimView& view, PartOfDim which, const std::byte* whole,
                std::byte* part);
Status PutPart(Device& device, const DimView& view, PartOfDim which, const std::byte* part,
               std::byte* whole);

// The same for all `count` parts, which lie side by side in `parts`.
Status TakeParts(Device& device, const DimView& view, int64_t count, const std::byte* whole,
                 std::byte* parts);
Status PutParts(Device& device, const DimView& view, int64_t count, const std::byte* parts,
                std::byte* whole);

}  // namespace zg
