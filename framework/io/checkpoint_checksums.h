// Checksums of a checkpoint's files, checksums.json. It is written last: a directory without it is
// not a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/base/status.h"

namespace zg {

struct FileChecksum {
  uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits
};

using Checksums = std::map<std::string, FileChecksum>;  // by file name

std::string ChecksumsAsJson(const Checksums& checksums);

// Errors: missing or malformed. No other checksum covers this file, so every byte must be as
// ChecksumsAsJson writes it.
StatusOr<Checksums> ReadChecksums(const std::string& path);

// Reads the file once from start to end, without mapping it.
StatusOr<FileChecksum> ChecksumOfFile(const std::string& path);

// Error: another size or digest, or the file cannot be read.
Status CheckFile(const std::string& path, const FileChecksum& expected);

}  // namespace zg
