#include "framework/kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

// C = A B + bias of the given sizes, by Gemm, from matrices with rows `gap` elements longer than
// they need to be.
std::vector<float> Multiply(const GemmSizes& sizes, const std::vector<float>& a,
                            const std::vector<float>& b, const float* bias, int64_t gap = 0) {
  const Gemm gemm(sizes);
  GuardedBuffer workspace(gemm.workspace_bytes());
  const int64_t c_stride = sizes.n + gap;
  std::vector<float> c(sizes.m * c_stride, NAN);
  const int64_t a_stride = (sizes.transpose_a ? sizes.m : sizes.k) + gap;
  const int64_t b_stride = (sizes.transpose_b ? sizes.k : sizes.n) + gap;
  gemm.Run({a.data(), a_stride}, {b.data(), b_stride}, bias, c.data(), c_stride, workspace.data());
  EXPECT_TRUE(workspace.IntactBehindTheEnd());
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

void Check(const GemmSizes& sizes, int64_t gap) {
  SCOPED_TRACE(::testing::Message() << sizes.m << " x " << sizes.n << " x " << sizes.k << ", "
                                    << sizes.transpose_a << sizes.transpose_b << ", gap " << gap);
  const int64_t a_stride = (sizes.transpose_a ? sizes.m : sizes.k) + gap;
  const int64_t b_stride = (sizes.transpose_b ? sizes.k : sizes.n) + gap;
  const std::vector<float> a = Random((sizes.transpose_a ? sizes.k : sizes.m) * a_stride, 1);
  const std::vector<float> b = Random((sizes.transpose_b ? sizes.n : sizes.k) * b_stride, 2);
  const std::vector<float> bias = Random(sizes.n, 3);
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
  ExpectNear(Multiply(sizes, a, b, bias.data(), gap), want, 1e-6 + 1e-7 * sizes.k, 1e-6);
}

TEST(Gemm, MatchesTheFormula) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const int64_t gap : {0, 3}) {
        for (const int64_t m : {1, 7, 20, 49, 300}) {
          for (const int64_t n : {1, 15, 17, 64, 113}) {
            for (const int64_t k : {1, 20, 61}) {
              Check({m, n, k, transpose_a, transpose_b}, gap);
            }
          }
        }
        Check({20, 100, 2700, transpose_a, transpose_b}, gap);
        Check({70, 1600, 400, transpose_a, transpose_b}, gap);
        Check({8, 16, 0, transpose_a, transpose_b}, gap);
      }
    }
  }
}

// A row of C has the same bits in a product of any size, for every path through the blocks.
TEST(Gemm, RowsDoNotDependOnTheSizes) {
  const int64_t k = 450, n = 130;
  const std::vector<float> a = Random(300 * k, 1);
  for (const bool transpose_b : {false, true}) {
    const std::vector<float> b = Random(n * k, 2);
    const std::vector<float> all = Multiply({300, n, k, false, transpose_b}, a, b, nullptr);
    for (const int64_t m : {1, 5, 20, 48, 49}) {
      const std::vector<float> some = Multiply({m, n, k, false, transpose_b}, a, b, nullptr);
      ExpectSameBits(some, std::vector<float>(all.begin(), all.begin() + m * n));
    }
  }
}

// A column of C likewise.
TEST(Gemm, ColumnsDoNotDependOnTheSizes) {
  const int64_t m = 60, k = 100;
  const std::vector<float> a = Random(m * k, 1);
  const std::vector<float> b = Random(200 * k, 2);
  const std::vector<float> all = Multiply({m, 200, k, false, true}, a, b, nullptr);
  for (const int64_t n : {1, 16, 50, 64, 97}) {
    const std::vector<float> some = Multiply({m, n, k, false, true}, a, b, nullptr);
    for (int64_t i = 0; i < m; ++i) {
      ASSERT_EQ(std::memcmp(&some[i * n], &all[i * 200], n * sizeof(float)), 0) << n;
    }
  }
}

}  // namespace
}  // namespace zg::testing
