#include "framework/data/record_file.h"

#include "framework/base/check.h"

namespace zg {

StatusOr<RecordFile> RecordFile::open(const std::string& path, uint64_t record_bytes,
                                      uint64_t header_bytes) {
  if (record_bytes == 0) return InvalidArgument("{}: got records of 0 bytes", path);
  ZG_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (file.size() <= header_bytes || (file.size() - header_bytes) % record_bytes != 0) {
    return DataLoss(
        "{}: got {} bytes, expected {} of a header and one or more records of {}; the file is "
        "truncated or has other records",
        path, file.size(), header_bytes, record_bytes);
  }
  return RecordFile(std::move(file), record_bytes, header_bytes);
}

const uint8_t* RecordFile::operator[](uint64_t index) const {
  ZG_CHECK(index < size(), "record {} of {}", index, size());
  return file_.data() + header_bytes_ + index * record_bytes_;
}

}  // namespace zg
