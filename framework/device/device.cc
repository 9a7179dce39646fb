#include "framework/device/device.h"

namespace zg {

StatusOr<const std::byte*> Device::Read(const std::byte* memory, int64_t bytes,
                                        std::vector<std::byte>* scratch) {
  if (is_host()) return memory;
  scratch->resize(bytes);
  ZG_RETURN_IF_ERROR(CopyOut(scratch->data(), memory, bytes));
  ZG_RETURN_IF_ERROR(Synchronize());
  return static_cast<const std::byte*>(scratch->data());
}

Status Device::Write(void* to_device, const void* from_host, int64_t bytes) {
  ZG_RETURN_IF_ERROR(CopyIn(to_device, from_host, bytes));
  return Synchronize();
}

}  // namespace zg
