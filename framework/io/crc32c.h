// CRC-32C (Castagnoli), the checksum of the records of TensorBoard's files.
#pragma once

#include <cstdint>
#include <string_view>

namespace zg {

uint32_t Crc32c(std::string_view bytes);

}  // namespace zg
