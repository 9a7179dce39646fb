#include "framework/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "framework/base/check.h"

namespace zg {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header and trailer
constexpr uint64_t kMaxPiece = std::numeric_limits<uInt>::max();

}  // namespace

struct GzipReader::Stream {
  z_stream zlib = {};
};

bool IsGzip(const MappedFile& file) {
  return file.size() >= 2 && file.data()[0] == 0x1f && file.data()[1] == 0x8b;
}

GzipReader::GzipReader(const MappedFile& file) : file_(file), stream_(std::make_unique<Stream>()) {
  const int result = inflateInit2(&stream_->zlib, kGzipWindow);
  ZG_CHECK(result == Z_OK, "inflateInit2: {}", result);
}

GzipReader::~GzipReader() { inflateEnd(&stream_->zlib); }

StatusOr<size_t> GzipReader::Read(void* data, size_t size_bytes) {
  z_stream& zlib = stream_->zlib;
  size_t filled = 0;
  while (filled < size_bytes && !is_at_end_) {
    if (zlib.avail_in == 0) {
      const uint64_t piece = std::min(file_.size() - taken_, kMaxPiece);
      if (piece == 0)
        return DataLoss("{}: the gzip data ends too early; it is truncated", file_.path());
      zlib.next_in = const_cast<Bytef*>(file_.data() + taken_);
      zlib.avail_in = static_cast<uInt>(piece);
      taken_ += piece;
    }
    const uint64_t room = std::min<uint64_t>(size_bytes - filled, kMaxPiece);
    zlib.next_out = static_cast<Bytef*>(data) + filled;
    zlib.avail_out = static_cast<uInt>(room);
    const int result = inflate(&zlib, Z_NO_FLUSH);
    filled += room - zlib.avail_out;
    if (result == Z_STREAM_END) {
      is_at_end_ = true;
      const uint64_t left = zlib.avail_in + (file_.size() - taken_);
      if (left > 0) {
        return DataLoss("{}: got {} bytes behind the gzip data, expected none", file_.path(), left);
      }
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return DataLoss("{}: the gzip data is damaged: {}", file_.path(),
                      zlib.msg != nullptr ? zlib.msg : zError(result));
    }
  }
  return filled;
}

}  // namespace zg
