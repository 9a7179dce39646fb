// Any bytes as a .safetensors file: an error, or tensors that are inside the file and cover its
// data exactly.
#include <algorithm>
#include <string>

#include "framework/base/check.h"
#include "framework/io/safetensors.h"
#include "tests/fuzz/input_file.h"

namespace zg {
namespace {

constexpr size_t kLengthBytes = 8;

// The file's pages would hide a read beyond the header's end; a string of that size does not.
void ParseHeaderAlone(const uint8_t* data, size_t size) {
  if (size < kLengthBytes) return;
  const std::string header(reinterpret_cast<const char*>(data + kLengthBytes), size - kLengthBytes);
  for (const uint64_t data_bytes : {uint64_t{0}, ~uint64_t{0}}) {
    const StatusOr<SafetensorsHeader> parsed = ParseSafetensorsHeader("input", header, data_bytes);
    ZG_CHECK(parsed.ok() || !parsed.status().message().empty(), "an error says nothing");
  }
}

void ReadTensors(const SafetensorsFile& file, const uint8_t* data, size_t size) {
  uint64_t covered_bytes = 0;
  for (const SafetensorsEntry& entry : file.entries()) {
    ZG_CHECK(file.Find(entry.name) == &entry, "a tensor is not found under its name");
    ZG_CHECK(entry.begin_byte == covered_bytes, "a gap or an overlap");
    covered_bytes = entry.end_byte;
    const StatusOr<uint64_t> bytes = SafetensorsByteSize(entry.dtype, entry.shape);
    ZG_CHECK(bytes.ok() && *bytes == entry.size_bytes(), "a tensor has another size than its type");
    const uint8_t* const values = file.Data(entry);
    ZG_CHECK(std::equal(values, values + entry.size_bytes(),
                        data + size - (file.entries().back().end_byte - entry.begin_byte)),
             "a tensor has other bytes than the file");
  }
}

}  // namespace
}  // namespace zg

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zg::ParseHeaderAlone(data, size);
  const zg::InputFile input(data, size);
  const zg::StatusOr<zg::SafetensorsFile> file = zg::SafetensorsFile::Open(input.path());
  if (file.ok()) zg::ReadTensors(*file, data, size);
  return 0;
}
