#include "framework/kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "tests/kernels/arithmetics.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

// The bytes of the values in `dtype`.
std::vector<char> Bytes(DType dtype, const std::vector<float>& values) {
  std::vector<char> bytes(values.size() * SizeOf(dtype));
  ConvertFloats(DType::kF32, values.data(), dtype, bytes.data(),
                static_cast<int64_t>(values.size()));
  return bytes;
}

// C = A B + bias of the given sizes, by Gemm, from matrices with rows that are `gap` elements
// longer than necessary.
std::vector<float> Multiply(const GemmMethod& method, const GemmSizes& sizes,
                            const std::vector<float>& a, const std::vector<float>& b,
                            const float* bias, int64_t gap = 0) {
  const Gemm gemm(sizes, method);
  GuardedBuffer workspace(gemm.workspace_bytes());
  const int64_t c_stride = sizes.n + gap;
  const std::vector<char> unwritten = Bytes(sizes.dtype, {NAN});
  std::vector<char> c_bytes;
  for (int64_t i = 0; i < sizes.m * c_stride; ++i) {
    c_bytes.insert(c_bytes.end(), unwritten.begin(), unwritten.end());
  }
  const int64_t a_stride = (sizes.transpose_a ? sizes.m : sizes.k) + gap;
  const int64_t b_stride = (sizes.transpose_b ? sizes.k : sizes.n) + gap;
  const std::vector<char> bias_bytes =
      Bytes(sizes.dtype,
            bias == nullptr ? std::vector<float>() : std::vector<float>(bias, bias + sizes.n));
  const std::vector<char> b_bytes = Bytes(sizes.dtype, b);
  GemmOperand of_b = {b_bytes.data(), b_stride};
  GuardedBuffer packed(sizes.packed_b ? gemm.packed_b_bytes() : 0);
  if (sizes.packed_b) {
    gemm.PackB(of_b, packed.data());
    of_b = {packed.data(), 0};
  }
  gemm.Run({Bytes(sizes.dtype, a).data(), a_stride}, of_b,
           bias == nullptr ? nullptr : bias_bytes.data(), c_bytes.data(), c_stride,
           workspace.data());
  EXPECT_TRUE(workspace.IntactBehindTheEnd());
  EXPECT_TRUE(packed.IntactBehindTheEnd());
  std::vector<float> c(sizes.m * c_stride);
  ConvertFloats(sizes.dtype, c_bytes.data(), DType::kF32, c.data(), sizes.m * c_stride);
  std::vector<float> dense;
  for (int64_t i = 0; i < sizes.m; ++i) {
    for (int64_t j = 0; j < c_stride; ++j) {
      if (j < sizes.n) {
        dense.push_back(c[i * c_stride + j]);
      } else {
        EXPECT_TRUE(std::isnan(c[i * c_stride + j])) << "written between the rows of C";
      }
    }
  }
  return dense;
}

void Check(const GemmMethod& method, const GemmSizes& sizes, int64_t gap) {
  SCOPED_TRACE(::testing::Message() << sizes.m << " x " << sizes.n << " x " << sizes.k << ", "
                                    << sizes.transpose_a << sizes.transpose_b << ", gap " << gap);
  const int64_t a_stride = (sizes.transpose_a ? sizes.m : sizes.k) + gap;
  const int64_t b_stride = (sizes.transpose_b ? sizes.k : sizes.n) + gap;
  const auto random = [&](int64_t count, uint64_t seed) {
    std::vector<float> values = Random(count, seed);
    RoundFloats(sizes.dtype, values.data(), count);
    return values;
  };
  const std::vector<float> a = random((sizes.transpose_a ? sizes.k : sizes.m) * a_stride, 1);
  const std::vector<float> b = random((sizes.transpose_b ? sizes.n : sizes.k) * b_stride, 2);
  const std::vector<float> bias = random(sizes.n, 3);
  std::vector<double> want(sizes.m * sizes.n);
  for (int64_t i = 0; i < sizes.m; ++i) {
    for (int64_t j = 0; j < sizes.n; ++j) {
      double sum = bias[j];
      for (int64_t k = 0; k < sizes.k; ++k) {
        sum += static_cast<double>(a[sizes.transpose_a ? k * a_stride + i : i * a_stride + k]) *
               b[sizes.transpose_b ? j * b_stride + k : k * b_stride + j];
      }
      want[i * sizes.n + j] = sum;
    }
  }
  const double rounding = sizes.dtype == DType::kF32    ? 0
                          : sizes.dtype == DType::kBF16 ? 0x1p-8
                                                        : 0x1p-11;
  ExpectNear(Multiply(method, sizes, a, b, bias.data(), gap), want, 1e-6 + 1e-7 * sizes.k,
             1e-6 + rounding);
}

class GemmTest : public ::testing::TestWithParam<Arithmetic> {
 protected:
  DType dtype() const { return GetParam().dtype; }
  const GemmMethod& method() const { return *GetParam().method; }
};

INSTANTIATE_TEST_SUITE_P(Arithmetics, GemmTest, ::testing::ValuesIn(Arithmetics()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GemmTest, MatchesTheFormula) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t gap : {0, 3}) {
        for (const int64_t m : {1, 20, 49, 100}) {
          for (const int64_t n : {1, 17, 64, 113}) {
            for (const int64_t k : {1, 20, 61}) {
              Check(method(), {m, n, k, transpose_a, transpose_b, dtype()}, gap);
            }
          }
        }
        Check(method(), {3, 70, 2700, transpose_a, transpose_b, dtype()}, gap);
        Check(method(), {20, 20, 2700, transpose_a, transpose_b, dtype()}, gap);
        Check(method(), {50, 1600, 10, transpose_a, transpose_b, dtype()}, gap);
        Check(method(), {270, 50, 400, transpose_a, transpose_b, dtype()}, gap);
        Check(method(), {8, 16, 0, transpose_a, transpose_b, dtype()}, gap);
      }
    }
  }
}

// A row of C has the same bits in a product of any size, for every path through the blocks.
TEST_P(GemmTest, RowsDoNotDependOnTheSizes) {
  const int64_t n = 250;
  const std::vector<float> bias = Random(n, 3);
  for (const int64_t k : {449, 480}) {  // whole pairs and tiles, or not
    const std::vector<float> a = Random(300 * k, 1);
    const std::vector<float> b = Random(n * k, 2);
    for (const bool transpose_b : {false, true}) {
      const auto multiply = [&](int64_t m) {
        return Multiply(method(), {m, n, k, false, transpose_b, dtype()}, a, b, bias.data());
      };
      const std::vector<float> all = multiply(300);
      for (const int64_t m : {1, 5, 8, 20, 48, 64, 65}) {
        SCOPED_TRACE(::testing::Message() << m << " rows of " << k << ", " << transpose_b);
        ExpectSameBits(multiply(m), std::vector<float>(all.begin(), all.begin() + m * n));
      }
    }
  }
}

// Few rows go through the whole of long columns before the next ones, or through some of it.
TEST_P(GemmTest, FewRowsOfLongColumnsHaveTheBitsOfMany) {
  const int64_t n = 35, k = 4102, many = 66;
  const std::vector<float> a = Random(many * k, 1);
  const std::vector<float> b = Random(n * k, 2);
  for (const bool transpose_b : {false, true}) {
    const auto multiply = [&](int64_t m) {
      return Multiply(method(), {m, n, k, false, transpose_b, dtype()}, a, b, nullptr);
    };
    const std::vector<float> all = multiply(many);
    for (const int64_t m : {1, 7, 8, 9}) {
      SCOPED_TRACE(::testing::Message() << m << " rows, " << transpose_b);
      ExpectSameBits(multiply(m), std::vector<float>(all.begin(), all.begin() + m * n));
    }
  }
}

TEST_P(GemmTest, PackedColumnsGiveTheSameBits) {
  for (const bool transpose_b : {false, true}) {
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {1, 17, 61}, {20, 250, 480}, {70, 1100, 61}, {20, 40, 1100}}) {
      SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << ", " << transpose_b);
      GemmSizes sizes = {m, n, k, false, transpose_b, dtype()};
      const std::vector<float> a = Random(m * k, 1), b = Random(n * k, 2), bias = Random(n, 3);
      const std::vector<float> expected = Multiply(method(), sizes, a, b, bias.data());
      sizes.packed_b = true;
      ExpectSameBits(Multiply(method(), sizes, a, b, bias.data()), expected);
    }
  }
}

// A column of C likewise.
TEST_P(GemmTest, ColumnsDoNotDependOnTheSizes) {
  const int64_t m = 60, k = 100;
  const std::vector<float> a = Random(m * k, 1);
  const std::vector<float> b = Random(200 * k, 2);
  const auto multiply = [&](int64_t n) {
    return Multiply(method(), {m, n, k, false, true, dtype()}, a, b, nullptr);
  };
  const std::vector<float> all = multiply(200);
  for (const int64_t n : {1, 16, 50, 64, 97}) {
    const std::vector<float> some = multiply(n);
    for (int64_t i = 0; i < m; ++i) {
      ASSERT_EQ(std::memcmp(&some[i * n], &all[i * 200], n * sizeof(float)), 0) << n;
    }
  }
}

// Columns [begin, begin + count) of every group of a matrix of `columns` columns, side by side.
std::vector<float> ColumnsOfGroups(const std::vector<float>& x, int64_t columns, int64_t groups,
                                   int64_t begin, int64_t count) {
  std::vector<float> taken;
  for (size_t row = 0; row < x.size() / columns; ++row) {
    for (int64_t group = 0; group < groups; ++group) {
      const float* const first = x.data() + row * columns + group * (columns / groups) + begin;
      taken.insert(taken.end(), first, first + count);
    }
  }
  return taken;
}

// Ranks that hold one part each, and add their products pairwise, have these bits.
TEST(GemmParts, HaveTheBitsOfOneProductForEach) {
  struct Case {
    int64_t m, n, run;  // run: the k of a part in a group
    GemmParts parts;
  };
  for (const Case& test :
       {Case{1, 16, 4, {2, 1}}, Case{5, 17, 3, {2, 3}}, Case{32, 32, 8, {2, 1}},
        Case{32, 32, 32, {4, 1}}, Case{60, 50, 20, {8, 2}}, Case{300, 70, 400, {2, 1}},
        Case{300, 530, 390, {4, 3}}, Case{20, 1100, 50, {16, 1}}}) {
    const auto [count, groups] = test.parts;
    SCOPED_TRACE(::testing::Message() << test.m << " x " << test.n << " x " << test.run << ", "
                                      << count << " parts of " << groups << " groups");
    const int64_t k = test.run * count * groups;
    const std::vector<float> a = Random(test.m * k, 1);
    const std::vector<float> b = Random(test.n * k, 2);
    const std::vector<float> bias = Random(test.n, 3);
    const GemmMethod& method = FloatMethod(DType::kF32);
    std::vector<std::vector<float>> sums;
    for (int64_t part = 0; part < count; ++part) {
      sums.push_back(Multiply(method, {test.m, test.n, test.run * groups, false, true, DType::kF32},
                              ColumnsOfGroups(a, k, groups, part * test.run, test.run),
                              ColumnsOfGroups(b, k, groups, part * test.run, test.run),
                              part == 0 ? bias.data() : nullptr));
    }
    for (; sums.size() > 1; sums.resize(sums.size() / 2)) {
      for (size_t i = 0; i < sums.size() / 2; ++i) {
        std::vector<float> sum = sums[2 * i];
        for (size_t j = 0; j < sum.size(); ++j) sum[j] += sums[2 * i + 1][j];
        sums[i] = std::move(sum);
      }
    }
    for (const int64_t gap : {0, 5}) {
      const auto padded = [&](const std::vector<float>& x) {
        std::vector<float> rows;
        for (size_t row = 0; row < x.size() / k; ++row) {
          rows.insert(rows.end(), x.begin() + row * k, x.begin() + (row + 1) * k);
          rows.insert(rows.end(), gap, NAN);
        }
        return rows;
      };
      ExpectSameBits(Multiply(method, {test.m, test.n, k, false, true, DType::kF32, test.parts},
                              padded(a), padded(b), bias.data(), gap),
                     sums[0]);
    }
  }
}

// A product whose C is larger than the caches, into rows that begin on cache lines and into rows
// that do not.
void CheckPlacement(const GemmMethod& method, const GemmSizes& sizes, int64_t c_stride) {
  const int64_t element_bytes = SizeOf(sizes.dtype);
  const std::vector<char> a = Bytes(sizes.dtype, Random(sizes.m * sizes.k, 1));
  const std::vector<char> b = Bytes(sizes.dtype, Random(sizes.n * sizes.k, 2));
  const Gemm gemm(sizes, method);
  GuardedBuffer workspace(gemm.workspace_bytes());
  const auto multiply = [&](int64_t misalignment) {
    GuardedBuffer c(sizes.m * c_stride * element_bytes, misalignment);
    c.FillWithNaN();
    gemm.Run({a.data(), sizes.m}, {b.data(), sizes.n}, nullptr, c.data(), c_stride,
             workspace.data());
    EXPECT_TRUE(c.IntactBehindTheEnd());
    std::vector<float> values(sizes.m * c_stride);
    ConvertFloats(sizes.dtype, c.data(), DType::kF32, values.data(), sizes.m * c_stride);
    return values;
  };
  const std::vector<float> aligned = multiply(0);
  const std::vector<float> misaligned = multiply(1);
  for (int64_t i = 0; i < sizes.m; ++i) {
    const float* const row = &aligned[i * c_stride];
    ASSERT_EQ(std::memcmp(row, &misaligned[i * c_stride], sizes.n * sizeof(float)), 0) << i;
    ASSERT_TRUE(std::isfinite(row[0]) && std::isfinite(row[sizes.n - 1])) << i;
    if (sizes.n < c_stride) {
      ASSERT_TRUE(std::isnan(row[sizes.n])) << "written between the rows of C";
    }
  }
}

TEST_P(GemmTest, LargeResultsDoNotDependOnWhereTheyAreWritten) {
  // The last panel of the first one is incomplete.
  CheckPlacement(method(), {1100, 1000, 20, true, false, dtype()}, 1024);
  CheckPlacement(method(), {1100, 1024, 20, true, false, dtype()}, 1024);
  CheckPlacement(method(), {1100, 992, 20, true, false, dtype()}, 1024);
}

// An infinity in a row of A or a NaN in a column of B, in the last positions of sizes that leave
// blocks incomplete, affects no other row or column of C.
TEST_P(GemmTest, NonFiniteNumbersStayInTheirRowsAndColumns) {
  const int64_t m = 51, n = 53, k = 37;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      std::vector<float> a = Random(m * k, 1, 0.5f, 1.0f);
      std::vector<float> b = Random(n * k, 2, 0.5f, 1.0f);
      a.back() = INFINITY;
      b.back() = NAN;
      const std::vector<float> c =
          Multiply(method(), {m, n, k, transpose_a, transpose_b, dtype()}, a, b, nullptr);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          ASSERT_EQ(std::isnan(c[i * n + j]), j == n - 1) << i << ", " << j;
          ASSERT_EQ(std::isinf(c[i * n + j]), i == m - 1 && j < n - 1) << i << ", " << j;
        }
      }
    }
  }
}

// In blocks of rows and columns, and where k is cut.
TEST(GemmTilesTest, TheProcessorHasTheBitsOfTheEmulation) {
  if (!HasAmxProducts()) GTEST_SKIP() << "this processor has no AMX_BF16, or it is not permitted";
  const GemmSizes sizes = {70, 450, 2700, true, false, DType::kBF16};
  const std::vector<float> a = Random(sizes.m * sizes.k, 1), b = Random(sizes.n * sizes.k, 2);
  const std::vector<float> bias = Random(sizes.n, 3);
  ExpectSameBits(Multiply(AmxMethod(), sizes, a, b, bias.data()),
                 Multiply(kEmulatedAmxMethod, sizes, a, b, bias.data()));
}

// The default method of a Gemm.
TEST(GemmDefaultTest, IsTheFastestMethodOfTheProcessor) {
  const GemmMethod& bf16 = HasAmxProducts()        ? AmxMethod()
                           : PairProductsAreFast() ? PairMethod()
                                                   : FloatMethod(DType::kBF16);
  const GemmSizes sizes = {5, 9, 700, false, true, DType::kBF16};
  const std::vector<float> a = Random(sizes.m * sizes.k, 1), b = Random(sizes.n * sizes.k, 2);
  const Gemm by_default(sizes);
  EXPECT_EQ(by_default.workspace_bytes(), Gemm(sizes, bf16).workspace_bytes());
  GuardedBuffer workspace(by_default.workspace_bytes());
  std::vector<char> c = Bytes(DType::kBF16, std::vector<float>(sizes.m * sizes.n, NAN));
  by_default.Run({Bytes(DType::kBF16, a).data(), sizes.k}, {Bytes(DType::kBF16, b).data(), sizes.k},
                 nullptr, c.data(), sizes.n, workspace.data());
  EXPECT_EQ(c, Bytes(DType::kBF16, Multiply(bf16, sizes, a, b, nullptr)));
}

}  // namespace
}  // namespace zg::testing
