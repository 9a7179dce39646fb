// RecordFile: samples of equal size one after the other in a memory-mapped file, which may be
// larger than memory: pages are loaded with the samples that are read, and dropped when memory is
// short.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/io/mapped_file.h"

namespace zg {

class RecordFile {
 public:
  // `header_bytes` before the first record are skipped. Errors: no file, no record, or a size that
  // is not the header plus whole records.
  static StatusOr<RecordFile> open(const std::string& path, uint64_t record_bytes,
                                   uint64_t header_bytes = 0);

  uint64_t size() const { return (file_.size() - header_bytes_) / record_bytes_; }
  uint64_t record_bytes() const { return record_bytes_; }
  const uint8_t* operator[](uint64_t index) const;  // record_bytes() bytes; any alignment

 private:
  RecordFile(MappedFile file, uint64_t record_bytes, uint64_t header_bytes)
      : file_(std::move(file)), record_bytes_(record_bytes), header_bytes_(header_bytes) {}

  MappedFile file_;
  uint64_t record_bytes_;
  uint64_t header_bytes_;
};

}  // namespace zg
