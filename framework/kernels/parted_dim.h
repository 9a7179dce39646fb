// PartedDim: a dim of which a call may have only some of several equal parts, as when ranks
// together hold the rows of a table or the classes of logits. Its operand `part`, i64[n], has the
// indices of the n parts that the call has, its attribute `parts` the total number.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/kernel.h"

namespace zg {

struct PartedDim {
  int64_t size = 0;  // of the call's parts
  int64_t own_parts = 1;
  int64_t num_parts = 1;
  const int64_t* part = nullptr;  // own_parts elements; null: the call has the whole dim

  // Operand `input` of the call is `part`, if there is such an operand.
  static PartedDim Of(const ir::OpCall& call, size_t input, int64_t size) {
    if (call.inputs.size() <= input) return {size};
    return {size, call.inputs[input].shape.dim(0), call.attributes.Int("parts")};
  }

  // The elements of input 0 within one index of the dims before `dim`, its attribute; all of them,
  // if no dim is in parts.
  static PartedDim OfSlices(const ir::OpCall& call, size_t input) {
    const Shape& x = call.inputs[0].shape;
    if (call.inputs.size() <= input) return {x.num_elements()};
    const DimView view(x, call.attributes.Int("dim"));
    return Of(call, input, view.size * view.inner);
  }

  // The same with the part indices of a run.
  PartedDim At(const KernelArguments& arguments, int input) const {
    if (num_parts == 1) return *this;
    return {size, own_parts, num_parts, arguments.input<int64_t>(input)};
  }

  ZG_HOST_DEVICE ZG_INLINE int64_t PartSize() const { return size / own_parts; }
  ZG_HOST_DEVICE ZG_INLINE int64_t Total() const { return PartSize() * num_parts; }

  // The position of an index below Total() in this call; -1 if it is in another part.
  ZG_HOST_DEVICE ZG_INLINE int64_t Find(int64_t index) const {
    if (part == nullptr) return index;
    const int64_t number = index / PartSize();
    for (int64_t i = 0; i < own_parts; ++i) {
      if (part[i] == number) return i * PartSize() + index % PartSize();
    }
    return -1;
  }

  // The index of the element at position `own` in this call.
  ZG_HOST_DEVICE ZG_INLINE int64_t IndexOf(int64_t own) const {
    if (part == nullptr) return own;
    return part[own / PartSize()] * PartSize() + own % PartSize();
  }
};

}  // namespace zg
