#include "framework/io/safetensors.h"

#include <utility>

namespace zg {

StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  constexpr uint64_t kLengthBytes = 8;
  if (file.size() < kLengthBytes) {
    return DataLoss("{}: got {} bytes, expected at least {}; not a safetensors file", path,
                    file.size(), kLengthBytes);
  }
  uint64_t header_bytes = 0;  // little-endian in the file
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | file.data()[i];
  if (header_bytes == 0 || header_bytes > kMaxSafetensorsHeaderBytes) {
    return DataLoss("{}: got a header of {} bytes, expected 1 to {}; not a safetensors file", path,
                    header_bytes, kMaxSafetensorsHeaderBytes);
  }
  if (header_bytes > file.size() - kLengthBytes) {
    return DataLoss(
        "{}: got {} bytes, expected a header of {} bytes after the first {}; the file is "
        "truncated or not a safetensors file",
        path, file.size(), header_bytes, kLengthBytes);
  }
  const uint8_t* header_begin = file.data() + kLengthBytes;
  const std::string_view json(reinterpret_cast<const char*>(header_begin), header_bytes);
  const uint64_t data_bytes = file.size() - kLengthBytes - header_bytes;
  ZG_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(path, json, data_bytes));
  return SafetensorsFile(std::move(file), std::move(header), header_begin + header_bytes);
}

SafetensorsFile::SafetensorsFile(MappedFile file, SafetensorsHeader header, const uint8_t* data)
    : file_(std::move(file)), header_(std::move(header)), data_(data) {
  for (size_t i = 0; i < entries().size(); ++i) index_by_name_[entries()[i].name] = i;
}

const SafetensorsEntry* SafetensorsFile::Find(std::string_view name) const {
  const auto found = index_by_name_.find(name);
  return found == index_by_name_.end() ? nullptr : &entries()[found->second];
}

}  // namespace zg
