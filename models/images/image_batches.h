// Batches of grey images for training and for tests: pixels are normalised to mean 0 and deviation
// 1. In training each image is shifted by up to two pixels and mirrored at random, as a function of
// the seed, the epoch and the sample. An optional frame of black pixels makes images larger.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/random.h"
#include "framework/data/sample_order.h"
#include "framework/io/idx_file.h"

namespace zg::models {

struct ImageBatch {
  std::vector<float> x;        // (B, 1, H, W)
  std::vector<int64_t> y;      // (B)
  std::vector<float> weights;  // (B), 0 for an empty row
};

class ImageBatches {
 public:
  // `images` must outlive it. `frame` pixels are added at each edge.
  ImageBatches(const LabelledImages& images, uint64_t seed, bool augments, int64_t frame = 0);

  int64_t height() const { return images_.height + 2 * frame_; }
  int64_t width() const { return images_.width + 2 * frame_; }

  // The samples of a micro-batch, as rows of a batch of `rows`; further rows are zero.
  void Fill(const MicroBatch& from, int64_t rows, ImageBatch* to) const;

 private:
  struct Change {
    int64_t down = 0;
    int64_t right = 0;
    bool mirrors = false;
  };
  Change ChangeOf(int64_t epoch, uint64_t sample) const;

  const LabelledImages& images_;
  RandomKey key_;
  bool augments_;
  int64_t frame_;
  float mean_ = 0.0f;
  float deviation_ = 1.0f;
};

}  // namespace zg::models
