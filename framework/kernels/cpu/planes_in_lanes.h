// Sixteen images of one channel, whose pixels become vectors: pixel by pixel, an image in each lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/transpose.h"

namespace zg {

// Neighbouring planes of a tensor, `stride` elements from one to the next.
template <typename T>
struct Planes {
  T* data;
  int64_t stride;
  int64_t count;      // at most kLanes
  int64_t ahead = 0;  // elements to what is read after a pixel's block, which is prefetched
};

// Calls run(pixel, pixels) for chunks of at most kLanes pixels that make up [begin, end). The last one
// overlaps the one before it, so that chunks are whole where there are enough pixels.
template <typename Run>
ZG_INLINE void ForChunks(int64_t begin, int64_t end, const Run& run) {
  const int64_t pixels = std::min<int64_t>(end - begin, kLanes);
  for (int64_t pixel = begin; pixel < end; pixel += kLanes) {
    run(std::min(pixel, end - pixels), pixels);
  }
}

// vectors[i] = pixel + i of each plane; zeros in the lanes of planes that there are not.
template <typename T>
ZG_INLINE void LoadPixels(const Planes<const T>& planes, int64_t pixel, int64_t pixels,
                          Lanes (&vectors)[kLanes]) {
  const T* const from = planes.data + pixel;
  if (planes.count == kLanes && pixels == kLanes) {
    return LoadTransposed(from, planes.stride, planes.ahead, vectors);
  }
  for (int64_t i = 0; i < kLanes; ++i) {
    vectors[i] = i < planes.count ? LoadLanes(from + i * planes.stride, pixels, 0.0f) : Lanes{};
  }
  Transpose(vectors);
}

// The reverse.
template <typename T>
ZG_INLINE void StorePixels(Lanes (&vectors)[kLanes], int64_t pixel, int64_t pixels,
                           const Planes<T>& planes) {
  T* const to = planes.data + pixel;
  if (planes.count == kLanes && pixels == kLanes) {
    return StoreTransposed(vectors, planes.stride, to);
  }
  Transpose(vectors);
  for (int64_t i = 0; i < planes.count; ++i) {
    float values[kLanes];
    StoreLanes(vectors[i], values);
    for (int64_t k = 0; k < pixels; ++k) to[i * planes.stride + k] = FromF32<T>(values[k]);
  }
}

}  // namespace zg
