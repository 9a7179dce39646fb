// Tile registers as Intel's manual describes their instructions (volume 2, TDPBF16PS and so on),
// for gemm_amx.h on processors without AMX.
//
//   const Gemm gemm(sizes, kEmulatedAmxMethod);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "framework/kernels/cpu/gemm_amx.h"
#include "framework/tensor/half.h"

namespace zg::testing {

class EmulatedAmxTiles {
 public:
  static void Begin(const AmxConfig& config) {
    // The conditions under which the instruction faults.
    EXPECT_EQ(config.palette, 1);
    EXPECT_EQ(config.start_row, 0);
    for (const uint8_t byte : config.reserved) EXPECT_EQ(byte, 0);
    for (int i = 0; i < 16; ++i) {
      EXPECT_LE(config.rows[i], i < kTiles ? kRows : 0);
      EXPECT_LE(config.row_bytes[i], i < kTiles ? kColumns * 4 : 0);
      EXPECT_EQ(config.rows[i] == 0, config.row_bytes[i] == 0);
    }
    config_ = config;
  }
  static void End() { config_ = {}; }

  EmulatedAmxTiles() { EXPECT_EQ(config_.palette, 1) << "tiles are used without a GemmScope"; }

  template <int kTile>
  void Load(const float* rows, int64_t stride_bytes) {
    Zero<kTile>();
    const char* const bytes = reinterpret_cast<const char*>(rows);
    for (int row = 0; row < config_.rows[kTile]; ++row) {
      std::memcpy(tiles_[kTile][row], bytes + row * stride_bytes, config_.row_bytes[kTile]);
    }
  }

  template <int kTile>
  void Store(float* rows, int64_t stride_bytes) const {
    char* const bytes = reinterpret_cast<char*>(rows);
    for (int row = 0; row < config_.rows[kTile]; ++row) {
      std::memcpy(bytes + row * stride_bytes, tiles_[kTile][row], config_.row_bytes[kTile]);
    }
  }

  template <int kTile>
  void Zero() {
    std::memset(tiles_[kTile], 0, sizeof(tiles_[kTile]));
  }

  template <int kSum, int kA, int kB>
  void AddProduct() {
    static_assert(kSum != kA && kSum != kB && kA != kB);  // otherwise the instruction faults
    const int columns = config_.row_bytes[kSum] / 4;
    for (int row = 0; row < config_.rows[kSum]; ++row) {
      float even[kColumns] = {};
      float odd[kColumns] = {};
      for (int pair = 0; pair < config_.row_bytes[kA] / 4; ++pair) {
        const uint32_t a = tiles_[kA][row][pair];
        for (int column = 0; column < columns; ++column) {
          const uint32_t b = tiles_[kB][pair][column];
          even[column] = MultiplyAdd(Low(a), Low(b), even[column]);
          odd[column] = MultiplyAdd(High(a), High(b), odd[column]);
        }
      }
      for (int column = 0; column < columns; ++column) {
        float sum;
        std::memcpy(&sum, &tiles_[kSum][row][column], sizeof(sum));
        sum = Flushed(Flushed(sum) + Flushed(even[column] + odd[column]));
        std::memcpy(&tiles_[kSum][row][column], &sum, sizeof(sum));
      }
    }
  }

  // Denormal operands and results become zeros of the same sign.
  static float Flushed(float value) {
    return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value)
                                                                : value;
  }
  static float Low(uint32_t pair) {
    return Flushed(ToF32(BFloat16{static_cast<uint16_t>(pair & 0xffff)}));
  }
  static float High(uint32_t pair) {
    return Flushed(ToF32(BFloat16{static_cast<uint16_t>(pair >> 16)}));
  }
  // Rounds once: the product has 16 bits, so that in f64 its sum with an f32 is exact, or the
  // smaller of both is too small to matter.
  static float MultiplyAdd(float a, float b, float sum) {
    return Flushed(static_cast<float>(static_cast<double>(a) * b + sum));
  }

 private:
  static constexpr int kTiles = 8;
  static constexpr int kRows = 16;
  static constexpr int kColumns = 16;

  static inline thread_local AmxConfig config_ = {};
  uint32_t tiles_[kTiles][kRows][kColumns] = {};
};

inline constexpr GemmMethod kEmulatedAmxMethod =
    MakeAmxMethod<EmulatedAmxTiles>(RoundSums<DType::kBF16>);

}  // namespace zg::testing
