// Batches of images: their values, frames, and random changes that depend on seed, epoch and sample.
#include "models/images/image_batches.h"

#include <gtest/gtest.h>

#include <vector>

namespace zg::models {
namespace {

// Two images of 2 x 2 pixels, with mean 15 and deviation 5.
LabelledImages TwoImages() { return {2, 2, 2, {10, 20, 10, 20, 20, 10, 20, 10}, {3, 7}}; }

ImageBatch Filled(const ImageBatches& batches, const MicroBatch& from, int64_t rows) {
  ImageBatch batch;
  batches.Fill(from, rows, &batch);
  return batch;
}

TEST(ImageBatches, NormalisedPixelsAndEmptyRows) {
  const LabelledImages images = TwoImages();
  const ImageBatch batch = Filled(ImageBatches(images, 1, false), {0, {1, 0}}, 3);
  EXPECT_EQ(batch.x, (std::vector<float>{1, -1, 1, -1, -1, 1, -1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(batch.y, (std::vector<int64_t>{7, 3, 0}));
}

TEST(ImageBatches, AFrameIsBlack) {
  const LabelledImages images = TwoImages();
  const ImageBatches batches(images, 1, false, 1);
  EXPECT_EQ(batches.height(), 4);
  EXPECT_EQ(batches.width(), 4);
  const ImageBatch batch = Filled(batches, {0, {0}}, 1);
  EXPECT_EQ(batch.x,
            (std::vector<float>{-3, -3, -3, -3, -3, -1, 1, -3, -3, -1, 1, -3, -3, -3, -3, -3}));
}

TEST(ImageBatches, ChangesAreOfSeedEpochAndSample) {
  LabelledImages images{8, 6, 6, {}, std::vector<uint8_t>(8)};
  for (int i = 0; i < 8 * 36; ++i) images.pixels.push_back(static_cast<uint8_t>(i * 37 % 251));
  const std::vector<uint64_t> samples = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const int64_t frame : {0, 2}) {
    const ImageBatches batches(images, 5, true, frame);
    const ImageBatch first = Filled(batches, {0, samples}, 8);
    EXPECT_EQ(Filled(ImageBatches(images, 5, true, frame), {0, samples}, 8).x, first.x);
    EXPECT_NE(Filled(batches, {1, samples}, 8).x, first.x);
    EXPECT_NE(Filled(ImageBatches(images, 6, true, frame), {0, samples}, 8).x, first.x);
    EXPECT_NE(Filled(ImageBatches(images, 5, false, frame), {0, samples}, 8).x, first.x);
    // A sample is changed in the same way regardless of its position.
    const ImageBatch alone = Filled(batches, {0, {6}}, 1);
    const int64_t pixels = batches.height() * batches.width();
    EXPECT_EQ(alone.x,
              std::vector<float>(first.x.begin() + 6 * pixels, first.x.begin() + 7 * pixels));
  }
}

}  // namespace
}  // namespace zg::models
