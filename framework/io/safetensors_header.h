// The header of a safetensors file: its tensors and the positions of their bytes. The parser trusts
// nothing; its result covers the file's data exactly, so readers need no further checks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_dtype.h"

namespace zg {

constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";

struct SafetensorsEntry {
  std::string name;
  SafetensorsDType dtype = SafetensorsDType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin_byte = 0;  // from the start of the data, which follows the header
  uint64_t end_byte = 0;    // exclusive

  uint64_t size_bytes() const { return end_byte - begin_byte; }
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

// Parses and checks `json`, the header's text, of a file that has `data_bytes` bytes after its
// header. Stricter than the reference implementation: also rejects duplicate names and unknown
// fields. `path` is only used in messages.
StatusOr<SafetensorsHeader> ParseSafetensorsHeader(const std::string& path, std::string_view json,
                                                   uint64_t data_bytes);

// Bytes of a tensor. Errors, without the tensor's name: a negative dim, an overflow (even if a dim
// is 0), packed elements that do not fill whole bytes.
StatusOr<uint64_t> SafetensorsByteSize(SafetensorsDType dtype, const std::vector<int64_t>& shape);

// `text` in quotes for a message: escaped, and truncated if it is long.
std::string QuoteForMessage(std::string_view text);

}  // namespace zg
