#include "framework/io/idx_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "framework/io/gzip.h"
#include "framework/io/mapped_file.h"

namespace zg {
namespace {

constexpr uint8_t kU8 = 8;
constexpr char kFashionMnistPackage[] = "dataset-fashion-mnist";

// The content of a plain or gzipped file, from its beginning.
class Content {
 public:
  explicit Content(const MappedFile& file) : file_(file) {
    if (IsGzip(file)) gzip_.emplace(file);
  }

  // An upper bound of its bytes.
  uint64_t MaxBytes() const {
    return gzip_.has_value() ? file_.size() * kMaxGzipRatio : file_.size();
  }

  // Returns how many bytes there were, at most `size_bytes`.
  StatusOr<size_t> Read(uint8_t* data, size_t size_bytes) {
    if (gzip_.has_value()) return gzip_->Read(data, size_bytes);
    const auto bytes =
        static_cast<size_t>(std::min<uint64_t>(size_bytes, file_.size() - position_));
    std::copy_n(file_.data() + position_, bytes, data);
    position_ += bytes;
    return bytes;
  }

 private:
  const MappedFile& file_;
  std::optional<GzipReader> gzip_;
  uint64_t position_ = 0;
};

Status ReadExactly(const std::string& path, Content* content, std::string_view what, uint8_t* data,
                   size_t size_bytes) {
  ZG_ASSIGN_OR_RETURN(const size_t bytes, content->Read(data, size_bytes));
  if (bytes == size_bytes) return Status::Ok();
  return DataLoss("{}: got {} bytes of {}, expected {}; the file is truncated", path, bytes, what,
                  size_bytes);
}

Status CheckMagic(const std::string& path, const uint8_t (&magic)[4]) {
  if (magic[0] == 0 && magic[1] == 0 && magic[2] == kU8 && magic[3] > 0) return Status::Ok();
  return DataLoss(
      "{}: got the magic bytes {:02x} {:02x} {:02x} {:02x}, expected 00 00 08 and the number of "
      "dims; it is not an IDX file of u8",
      path, magic[0], magic[1], magic[2], magic[3]);
}

}  // namespace

StatusOr<IdxFile> read_idx_file(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  Content content(file);
  IdxFile idx;
  idx.path = path;
  uint8_t magic[4] = {};
  ZG_RETURN_IF_ERROR(ReadExactly(path, &content, "the header", magic, sizeof(magic)));
  ZG_RETURN_IF_ERROR(CheckMagic(path, magic));
  uint8_t dims[4 * 255] = {};
  ZG_RETURN_IF_ERROR(ReadExactly(path, &content, "the dims", dims, size_t{4} * magic[3]));
  uint64_t size = 1;
  for (int i = 0; i < magic[3]; ++i) {
    const uint8_t* const dim = dims + 4 * i;
    const uint64_t value = uint64_t{dim[0]} << 24 | dim[1] << 16 | dim[2] << 8 | dim[3];
    idx.shape.push_back(static_cast<int64_t>(value));
    // Nothing is allocated for sizes beyond what the file can hold.
    if (__builtin_mul_overflow(size, value, &size) || size > content.MaxBytes()) {
      return DataLoss(
          "{}: got {} bytes, which cannot hold the dims ({}, ...); it is truncated or "
          "damaged",
          path, file.size(), fmt::join(idx.shape, ", "));
    }
  }
  idx.values.resize(size);
  ZG_RETURN_IF_ERROR(ReadExactly(path, &content, "values", idx.values.data(), size));
  uint8_t more = 0;
  ZG_ASSIGN_OR_RETURN(const size_t extra, content.Read(&more, 1));
  if (extra == 0) return idx;
  return DataLoss("{}: got more bytes than the {} of the dims ({})", path, size,
                  fmt::join(idx.shape, ", "));
}

StatusOr<LabelledImages> read_labelled_images(const std::string& images_path,
                                              const std::string& labels_path, int num_classes) {
  ZG_ASSIGN_OR_RETURN(IdxFile images, read_idx_file(images_path));
  ZG_ASSIGN_OR_RETURN(IdxFile labels, read_idx_file(labels_path));
  if (images.shape.size() != 3) {
    return DataLoss("{}: got the dims ({}), expected images, height and width", images_path,
                    fmt::join(images.shape, ", "));
  }
  if (labels.shape.size() != 1 || labels.shape[0] != images.shape[0]) {
    return DataLoss("{}: got the dims ({}), expected ({}), a label for each image of {}",
                    labels_path, fmt::join(labels.shape, ", "), images.shape[0], images_path);
  }
  for (size_t i = 0; i < labels.values.size(); ++i) {
    if (labels.values[i] < num_classes) continue;
    return DataLoss("{}: got the label {} for image {}, expected one below {}", labels_path,
                    labels.values[i], i, num_classes);
  }
  return LabelledImages{images.shape[0], images.shape[1], images.shape[2], std::move(images.values),
                        std::move(labels.values)};
}

StatusOr<LabelledImages> read_fashion_mnist(FashionMnistPart part, const std::string& directory) {
  const std::string prefix = directory + (part == FashionMnistPart::kTrain ? "/train-" : "/t10k-");
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) {
    return NotFound("{}: is not there; install Debian's package {} (tools/setup.sh does)",
                    directory, kFashionMnistPackage);
  }
  return read_labelled_images(prefix + "images-idx3-ubyte.gz", prefix + "labels-idx1-ubyte.gz", 10);
}

}  // namespace zg
