#include "framework/kernels/cpu/check_indices.h"

#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

bool AreIndices(const int64_t* index, int64_t count, int64_t size) {
  return Multiversion([=]() ZG_VERSION {
    const auto end = static_cast<uint64_t>(size);  // negative ones are large
    uint64_t num_outside = 0;
    for (int64_t i = 0; i < count; ++i) num_outside += static_cast<uint64_t>(index[i]) >= end;
    return num_outside == 0;
  });
}

}  // namespace

Status CheckIndices(std::string_view op, const int64_t* index, int64_t count, int64_t size) {
  if (AreIndices(index, count, size)) return Status::Ok();
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] >= 0 && index[i] < size) continue;
    return InvalidArgument("{}: the index at position {} is {}, the dim has elements 0 to {}", op,
                           i, index[i], size - 1);
  }
  return Status::Ok();
}

}  // namespace zg
