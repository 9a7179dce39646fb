// GzipReader: the content of a gzip file (RFC 1952), piece by piece. Checks its length and CRC-32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/base/status.h"
#include "framework/io/mapped_file.h"

namespace zg {

bool IsGzip(const MappedFile& file);

// The maximum number of bytes that one byte of a gzip file can expand to.
inline constexpr uint64_t kMaxGzipRatio = 1032;

class GzipReader {
 public:
  // `file` must outlive the reader.
  explicit GzipReader(const MappedFile& file);
  GzipReader(const GzipReader&) = delete;
  ~GzipReader();

  // Fills `data` from the end of the last read, and returns how many bytes it got: fewer than
  // `size_bytes` only at the content's end, and then the file has been checked to its last byte.
  // Errors: the file is truncated or damaged, or something follows the content.
  StatusOr<size_t> Read(void* data, size_t size_bytes);

 private:
  struct Stream;

  const MappedFile& file_;
  uint64_t taken_ = 0;  // number of the file's bytes that were passed to zlib
  bool is_at_end_ = false;
  std::unique_ptr<Stream> stream_;
};

}  // namespace zg
