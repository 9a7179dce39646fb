// SafetensorsFile: a safetensors file, memory-mapped and checked; nothing of its data is copied.
//
//   ZG_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open("model.safetensors"));
//   const SafetensorsEntry* weight = file.Find("h.0.mlp.c_fc.weight");
//   if (weight != nullptr) std::memcpy(target, file.Data(*weight), weight->size_bytes());
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/mapped_file.h"
#include "framework/io/safetensors_dtype.h"
#include "framework/io/safetensors_header.h"

namespace zg {

class SafetensorsFile {
 public:
  // Errors: the file is missing, unreadable, truncated or breaks any rule of the format; the
  // message names the file and, if one is to blame, the tensor.
  static StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // In the order of their bytes in the file.
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // Null if there is no tensor of that name.
  const SafetensorsEntry* Find(std::string_view name) const;

  // The tensor's little-endian, row-major bytes; not aligned to its dtype in files of some writers.
  const uint8_t* Data(const SafetensorsEntry& entry) const { return data_ + entry.begin_byte; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header, const uint8_t* data);

  MappedFile file_;
  SafetensorsHeader header_;
  const uint8_t* data_;                                       // where the header ends
  std::map<std::string, size_t, std::less<>> index_by_name_;  // into entries()
};

}  // namespace zg
