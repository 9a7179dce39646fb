#include "models/images/image_batches.h"

#include <cmath>

namespace zg::models {
namespace {

constexpr int64_t kMostPixels = 2;  // maximum shift of an image

}  // namespace

ImageBatches::ImageBatches(const LabelledImages& images, uint64_t seed, bool augments,
                           int64_t frame)
    : images_(images), key_(FoldIn(RandomKey{seed}, "images")), augments_(augments), frame_(frame) {
  // Integers: exact in every order.
  int64_t sum = 0, squares = 0;
  for (const uint8_t pixel : images.pixels) {
    sum += pixel;
    squares += int64_t{pixel} * pixel;
  }
  const double count = static_cast<double>(images.pixels.size());
  const double mean = static_cast<double>(sum) / count;
  const double variance = static_cast<double>(squares) / count - mean * mean;
  mean_ = static_cast<float>(mean);
  deviation_ = variance > 0.0 ? static_cast<float>(std::sqrt(variance)) : 1.0f;
}

ImageBatches::Change ImageBatches::ChangeOf(int64_t epoch, uint64_t sample) const {
  if (!augments_) return {};
  const RandomKey key = FoldIn(FoldIn(key_, static_cast<uint64_t>(epoch)), sample);
  Change change;
  change.down = static_cast<int64_t>(UniformBelow(key, 0, 2 * kMostPixels + 1)) - kMostPixels;
  change.right = static_cast<int64_t>(UniformBelow(key, 1, 2 * kMostPixels + 1)) - kMostPixels;
  change.mirrors = UniformBelow(key, 2, 2) == 1;
  return change;
}

void ImageBatches::Fill(const MicroBatch& from, int64_t rows, ImageBatch* to) const {
  const int64_t pixels = height() * width();
  to->x.assign(rows * pixels, 0.0f);
  to->y.assign(rows, 0);
  to->weights = from.weights(rows);
  for (int64_t row = 0; row < from.num_real(); ++row) {
    const uint64_t sample = from.samples[row];
    const Change change = ChangeOf(from.epoch, sample);
    const uint8_t* const image = images_.pixels.data() + sample * images_.height * images_.width;
    float* const out = to->x.data() + row * pixels;
    to->y[row] = images_.labels[sample];
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t h = i / width() - frame_ - change.down;
      const int64_t column = change.mirrors ? width() - 1 - i % width() : i % width();
      const int64_t w = column - frame_ - change.right;
      const bool is_inside = h >= 0 && h < images_.height && w >= 0 && w < images_.width;
      const float pixel = is_inside ? image[h * images_.width + w] : 0.0f;
      out[i] = (pixel - mean_) / deviation_;
    }
  }
}

}  // namespace zg::models
