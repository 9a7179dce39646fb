// IdxFile: an array of bytes in MNIST's file format, plain or gzipped: two zeros, the type (8: u8),
// the number of dims, each dim as a big-endian u32, then the values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg {

struct IdxFile {
  std::string path;
  std::vector<int64_t> shape;   // at least one dim
  std::vector<uint8_t> values;  // row-major
};

// Reads the whole file. Errors name file, got, expected: missing, another magic or type, truncated,
// more bytes than the dims say, damaged gzip.
StatusOr<IdxFile> read_idx_file(const std::string& path);

// Images and their labels.
struct LabelledImages {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> pixels;  // (count, height, width)
  std::vector<uint8_t> labels;  // (count)
};

// Reads two IDX files, of 3 dims and of 1. Further errors: other dims, counts that differ, a label
// that is not below `num_classes`.
StatusOr<LabelledImages> read_labelled_images(const std::string& images_path,
                                              const std::string& labels_path, int num_classes);

// Debian's package dataset-fashion-mnist: 28x28 images of 10 kinds of clothes, 60,000 for training
// and 10,000 for tests.
inline constexpr char kFashionMnistDirectory[] = "/usr/share/datasets/fashion-mnist";
enum class FashionMnistPart { kTrain, kTest };
StatusOr<LabelledImages> read_fashion_mnist(FashionMnistPart part,
                                            const std::string& directory = kFashionMnistDirectory);

}  // namespace zg
