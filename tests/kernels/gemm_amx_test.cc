#include "framework/kernels/cpu/gemm_amx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/kernels/cpu/gemm.h"
#include "framework/tensor/half.h"
#include "tests/kernels/emulated_amx_tiles.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

std::vector<BFloat16> ToBF16(const std::vector<float>& values) {
  std::vector<BFloat16> rounded;
  for (const float value : values) rounded.push_back(FromF32<BFloat16>(value));
  return rounded;
}

// The product of a row of A and a column of B, according to the manual: tile after tile of 32 k.
float Chain(const std::vector<BFloat16>& row, const std::vector<BFloat16>& column, float sum) {
  using Tiles = EmulatedAmxTiles;
  for (size_t begin = 0; begin < row.size(); begin += 32) {
    float sums[2] = {};
    for (size_t k = begin; k < std::min(begin + 32, row.size()); ++k) {
      sums[k % 2] = Tiles::MultiplyAdd(Tiles::Flushed(ToF32(row[k])),
                                       Tiles::Flushed(ToF32(column[k])), sums[k % 2]);
    }
    sum = Tiles::Flushed(Tiles::Flushed(sum) + Tiles::Flushed(sums[0] + sums[1]));
  }
  return sum;
}

// Blocks of A (rows, depth) and B (depth, columns), and their storage.
struct Blocks {
  int64_t rows;
  int64_t columns;
  int64_t depth;
  std::vector<BFloat16> a;  // by rows
  std::vector<BFloat16> b;  // by columns
  bool transpose_a = false;
  bool transpose_b = false;

  std::vector<BFloat16> Row(int64_t i) const {
    return {a.begin() + i * depth, a.begin() + (i + 1) * depth};
  }
  std::vector<BFloat16> Column(int64_t j) const {
    return {b.begin() + j * depth, b.begin() + (j + 1) * depth};
  }

  // Their product, packed and multiplied in sections of `section` k; `start` has a value per
  // column, or is null.
  std::vector<float> Multiply(const GemmMethod& method, int64_t section, const float* start) const {
    const auto transposed = [this](const std::vector<BFloat16>& matrix, int64_t count) {
      std::vector<BFloat16> result(matrix.size());
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t k = 0; k < depth; ++k) result[k * count + i] = matrix[i * depth + k];
      }
      return result;
    };
    const std::vector<BFloat16> stored_a = transpose_a ? transposed(a, rows) : a;
    const std::vector<BFloat16> stored_b = transpose_b ? b : transposed(b, columns);
    const int64_t whole_rows = RoundUp(rows, method.row_unit);
    const int64_t whole_columns = RoundUp(columns, method.column_unit);
    const int64_t whole_section = RoundUp(section, method.depth_unit);
    GuardedBuffer packed_a(whole_rows * whole_section * 2);
    GuardedBuffer packed_b(whole_columns * whole_section * 2);
    GuardedBuffer c(whole_rows * whole_columns * 4);
    std::vector<float> whole_start(whole_columns, NAN);
    if (start != nullptr) std::copy_n(start, columns, whole_start.begin());
    for (GuardedBuffer* buffer : {&packed_a, &packed_b, &c}) buffer->FillWithNaN();
    const GemmScope scope(method);
    BlockProduct product;
    product.a = static_cast<float*>(packed_a.data());
    product.b = static_cast<float*>(packed_b.data());
    product.rows = rows;
    product.columns = columns;
    product.c = static_cast<float*>(c.data());
    product.c_stride = whole_columns;
    for (int64_t k = 0; k == 0 || k < depth; k += section) {
      product.depth = std::min(section, depth - k);
      product.start = k == 0 && start != nullptr ? whole_start.data() : nullptr;
      product.continues = k > 0;
      method.pack_a({stored_a.data() + k * (transpose_a ? rows : 1), transpose_a ? rows : depth,
                     !transpose_a, rows, product.depth},
                    static_cast<float*>(packed_a.data()));
      method.pack_b({stored_b.data() + k * (transpose_b ? 1 : columns),
                     transpose_b ? depth : columns, transpose_b, columns, product.depth},
                    static_cast<float*>(packed_b.data()));
      method.multiply(product);
    }
    for (GuardedBuffer* buffer : {&packed_a, &packed_b, &c}) {
      EXPECT_TRUE(buffer->IntactBehindTheEnd());
    }
    std::vector<float> result;
    for (int64_t i = 0; i < rows; ++i) {
      result.insert(result.end(), product.c + i * whole_columns,
                    product.c + i * whole_columns + columns);
    }
    return result;
  }
};

Blocks RandomBlocks(int64_t rows, int64_t columns, int64_t depth) {
  return {rows, columns, depth, ToBF16(Random(rows * depth, 1)),
          ToBF16(Random(columns * depth, 2))};
}

const GemmMethod& Emulated() { return kEmulatedAmxMethod; }

// The bits of every sum, where k is cut and where it is not, from a bias and from zero.
TEST(GemmAmxTest, ASumIsTheChainOfItsRowAndColumn) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t depth : {0, 1, 2, 31, 32, 33, 100, 131}) {
        SCOPED_TRACE(::testing::Message() << transpose_a << transpose_b << ", " << depth);
        Blocks blocks = RandomBlocks(37, 50, depth);
        blocks.transpose_a = transpose_a;
        blocks.transpose_b = transpose_b;
        const std::vector<float> bias = Random(blocks.columns, 3);
        for (const float* const start : {static_cast<const float*>(nullptr), bias.data()}) {
          std::vector<float> want;
          for (int64_t i = 0; i < blocks.rows; ++i) {
            for (int64_t j = 0; j < blocks.columns; ++j) {
              want.push_back(Chain(blocks.Row(i), blocks.Column(j), start ? start[j] : 0.0f));
            }
          }
          for (const int64_t section : {32, 64, 160}) {
            ExpectSameBits(blocks.Multiply(Emulated(), section, start), want);
          }
        }
      }
    }
  }
}

// The same with columns of B where they are stored.
std::vector<float> MultiplyColumns(const GemmMethod& method, const Blocks& blocks,
                                   const float* start) {
  const int64_t sum_stride = RoundUp(blocks.columns, method.column_unit);
  GuardedBuffer a(RoundUp(blocks.rows, method.column_unit) * blocks.depth * 2);
  GuardedBuffer sums(RoundUp(blocks.rows, method.row_unit) * sum_stride * 4);
  GuardedBuffer b(blocks.columns * blocks.depth * 2);
  std::copy(blocks.b.begin(), blocks.b.end(), static_cast<BFloat16*>(b.data()));
  for (GuardedBuffer* buffer : {&a, &sums}) buffer->FillWithNaN();
  method.pack_few_rows({blocks.a.data(), blocks.depth, true, blocks.rows, blocks.depth},
                       static_cast<float*>(a.data()));
  ColumnsProduct product;
  product.a = static_cast<float*>(a.data());
  product.rows = blocks.rows;
  product.b = {b.data(), blocks.depth, true, blocks.columns, blocks.depth};
  product.start = start;
  product.c = static_cast<float*>(sums.data());
  product.c_stride = sum_stride;
  const GemmScope scope(method);
  method.multiply_columns(product);
  for (GuardedBuffer* buffer : {&a, &sums}) EXPECT_TRUE(buffer->IntactBehindTheEnd());
  std::vector<float> result;
  for (int64_t i = 0; i < blocks.rows; ++i) {
    result.insert(result.end(), product.c + i * sum_stride,
                  product.c + i * sum_stride + blocks.columns);
  }
  return result;
}

TEST(GemmAmxTest, FewRowsWithColumnsInPlaceHaveTheSameBits) {
  std::vector<const GemmMethod*> methods = {&Emulated()};
  if (HasAmxProducts()) methods.push_back(&AmxMethod());
  for (const GemmMethod* method : methods) {
    for (const int64_t rows : {1, 7, 16, 17, 32, 33, 48, 64}) {
      for (const int64_t columns : {1, 15, 16, 31, 64, 100}) {
        for (const int64_t depth : {32, 224}) {
          SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth);
          Blocks blocks = RandomBlocks(rows, columns, depth);
          blocks.transpose_b = true;
          const std::vector<float> bias = Random(columns, 3);
          for (const float* const start : {static_cast<const float*>(nullptr), bias.data()}) {
            ExpectSameBits(MultiplyColumns(*method, blocks, start),
                           blocks.Multiply(Emulated(), 32, start));
          }
        }
      }
    }
  }
}

// Both operands are padded with zeros, and no infinity may be multiplied with them.
TEST(GemmAmxTest, WhatFillsUpABlockLeaksNowhere) {
  for (const int64_t depth : {1, 33, 50}) {
    Blocks blocks = RandomBlocks(17, 18, depth);
    const BFloat16 infinity = FromF32<BFloat16>(std::numeric_limits<float>::infinity());
    blocks.a[16 * depth + depth - 1] = infinity;                // row 16
    blocks.b[17 * depth + depth - 1] = FromF32<BFloat16>(NAN);  // column 17
    const std::vector<float> c = blocks.Multiply(Emulated(), 32, nullptr);
    for (int64_t i = 0; i < 17; ++i) {
      for (int64_t j = 0; j < 18; ++j) {
        const float value = c[i * 18 + j];
        if (j == 17) {
          EXPECT_TRUE(std::isnan(value));
        } else {
          EXPECT_EQ(std::isinf(value), i == 16) << i << ", " << j;
        }
      }
    }
  }
}

TEST(GemmAmxTest, DenormalNumbersCountAsZero) {
  const float smallest = std::numeric_limits<float>::min();
  const auto product = [](float a, float b) {
    const Blocks blocks = {1, 1, 1, ToBF16({a}), ToBF16({b})};
    return blocks.Multiply(Emulated(), 32, nullptr)[0];
  };
  EXPECT_EQ(product(smallest, 1.0f), smallest);
  EXPECT_EQ(product(smallest, 0.5f), 0.0f);          // the result
  EXPECT_EQ(product(smallest / 2, 0x1p100f), 0.0f);  // an operand
}

TEST(GemmAmxTest, TheProcessorHasTheBitsOfTheEmulation) {
  if (!HasAmxProducts()) GTEST_SKIP() << "this processor has no AMX_BF16, or it is not permitted";
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t depth : {0, 1, 33, 100, 131}) {
        SCOPED_TRACE(::testing::Message() << transpose_a << transpose_b << ", " << depth);
        Blocks blocks = RandomBlocks(70, 50, depth);
        blocks.transpose_a = transpose_a;
        blocks.transpose_b = transpose_b;
        const std::vector<float> bias = Random(blocks.columns, 3);
        ExpectSameBits(blocks.Multiply(AmxMethod(), 64, bias.data()),
                       blocks.Multiply(Emulated(), 64, bias.data()));
      }
    }
  }
}

// Ties, carries into the exponent and into infinity, and NaNs, in rows that are whole cache lines
// and in others.
TEST(GemmAmxTest, TheProcessorRoundsSumsAsTheEmulation) {
  if (!HasAmxProducts()) GTEST_SKIP() << "this processor has no AMX_BF16, or it is not permitted";
  constexpr int64_t kRows = 3, kStride = 64;
  std::vector<float> sums = Random(kRows * kStride, 1);
  const float special[] = {
      0.0f,      -0.0f,      INFINITY,  -INFINITY,       NAN,          -NAN,          0x1.01p0f,
      0x1.03p0f, 0x1.ff8p0f, 0x1.fep0f, 0x1.fffffep127f, -0x1.fep127f, 0x1.010002p0f, 0x1p-126f};
  std::copy(std::begin(special), std::end(special), sums.begin() + kStride - 5);
  for (const int64_t columns : {1, 15, 16, 31, 32, 33, 63, 64}) {
    for (const bool streams : {false, true}) {
      if (streams && columns % 32 != 0) continue;
      SCOPED_TRACE(::testing::Message() << columns << (streams ? ", streaming" : ""));
      const auto round = [&](const GemmMethod& method) {
        GuardedBuffer c(kRows * kStride * int64_t{sizeof(BFloat16)});
        c.FillWithNaN();
        method.round({sums.data(), kStride, kRows, columns, c.data(), kStride, streams});
        EXPECT_TRUE(c.IntactBehindTheEnd());
        const auto* const bits = static_cast<const uint16_t*>(c.data());
        return std::vector<uint16_t>(bits, bits + kRows * kStride);
      };
      EXPECT_EQ(round(AmxMethod()), round(Emulated()));
    }
  }
}

}  // namespace
}  // namespace zg::testing
