// Fourier transforms: their result types and errors; their values are compared with PyTorch's by
// tests/zero/function_reference_test.cc. Large ones are as precise as small ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

// The type of the function's result for x f32[shape], or the error.
std::string Of(const Shape& shape, const std::function<Var(Var)>& function) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return function(in.f32("x", shape)); });
  if (!graph.status().ok()) return graph.status().message();
  return graph.result_type("run", "result")->ToString();
}

TEST(Fourier, Types) {
  EXPECT_EQ(Of({2, 9}, [](Var x) { return rfft(x).imag; }), "f32[2,5]");
  EXPECT_EQ(Of({8, 3}, [](Var x) { return rfft(x, 0).real; }), "f32[5,3]");
  EXPECT_EQ(Of({8, 3}, [](Var x) { return rfft(x, 0, 2).real; }), "f32[2,3]");
  EXPECT_EQ(Of({2, 6, 8}, [](Var x) { return rfft2(x).real; }), "f32[2,6,5]");
  EXPECT_EQ(Of({2, 5}, [](Var x) { return irfft({x, x}, 9); }), "f32[2,9]");
  EXPECT_EQ(Of({3, 100}, [](Var x) { return stft(x, 16).real; }), "f32[3,9,26]");
  EXPECT_EQ(Of({3, 100}, [](Var x) { return istft(stft(x, 16), 16, 100); }), "f32[3,100]");
}

TEST(Fourier, Errors) {
  const auto error = [](const Shape& shape, const std::function<Var(Var)>& function) {
    const std::string text = Of(shape, function);
    const std::string start = "graph g, eval 'run': ";
    EXPECT_EQ(text.substr(0, start.size()), start);
    return text.substr(std::min(text.size(), start.size()));
  };
  const auto back = [](Var x) { return irfft({x, x}, 5); };
  EXPECT_EQ(error({2, 4}, back), "irfft: got 4 elements for a size of 5, expected at most 3");
  EXPECT_EQ(error({2, 4}, [](Var x) { return rfft(x, 1, 4).real; }),
            "rfft: got a count of 4 for 4 elements, expected at most 3");
  EXPECT_EQ(error({2, 4},
                  [](Var x) {
                    return fft({x, select(x, 0, 0)}).real;
                  }),
            "fft: got the real part [2,4] and the imaginary part [4], expected one shape");
  EXPECT_THAT(error({2, 4}, [](Var x) { return rfft(to(x, DType::kBF16)).real; }),
              HasSubstr("linear"));
  EXPECT_THAT(error({2, 4}, [](Var x) { return rfft(x, 2).real; }), HasSubstr("rfft of %x"));
  EXPECT_THAT(error({2, 4}, [](Var x) { return rfft(to(x, DType::kI64)).real; }),
              HasSubstr("floating-point"));
  EXPECT_EQ(error({40}, [](Var x) { return stft(x, 8).real; }),
            "stft: got x [40], expected 2 dims");
  EXPECT_EQ(error({2, 40}, [](Var x) { return stft(x, 3).real; }),
            "stft: got frames of 3 elements, every 0, expected at least 1");
  EXPECT_EQ(error({2, 40},
                  [](Var x) {
                    StftOptions options;
                    options.window = ones({7});
                    return stft(x, 8, options).real;
                  }),
            "stft: got a window [7], expected [8]");
  EXPECT_EQ(error({2, 6, 11},
                  [](Var x) {
                    return istft({x, x}, 8, 20);
                  }),
            "istft: got x [2,6,11], expected 3 dims with 5 elements in dim 1");
  EXPECT_EQ(error({2, 5, 11},
                  [](Var x) {
                    return istft({x, x}, 8, 21);
                  }),
            "istft: got a length of 21, but 11 frames cover 20");
}

// Element k of the transform of two rows, real numbers and imaginary ones.
std::complex<double> Exact(const std::vector<float>& real, const std::vector<float>& imag,
                           int64_t k) {
  const auto n = static_cast<int64_t>(real.size());
  std::complex<double> sum = 0.0;
  for (int64_t j = 0; j < n; ++j) {
    const double turns = static_cast<double>(j * k % n) / static_cast<double>(n);
    sum += std::complex<double>(real[j], imag[j]) * std::polar(1.0, -2 * M_PI * turns);
  }
  return sum;
}

// With divisors, a prime number whose matrix is small enough, and one for which it is not.
TEST(Fourier, LargeTransformsArePrecise) {
  for (const int64_t size : {1000, 998, 1009, 4099, 8192}) {
    SCOPED_TRACE(size);
    Eager eager;
    std::vector<float> real(size), imag(size);
    for (int64_t i = 0; i < size; ++i) {
      real[i] = static_cast<float>(i * i % 37) / 18.5f - 1.0f;
      imag[i] = static_cast<float>(i * 11 % 31) / 15.5f - 1.0f;
    }
    const Tensor x = eager.f32({1, size}, real), y = eager.f32({1, size}, imag);
    const double tolerance = 3e-6 * std::sqrt(static_cast<double>(size));
    const auto expect = [&](const Complex& spectrum, const std::vector<float>& second) {
      const std::vector<float> a = Tensor(spectrum.real).values();
      const std::vector<float> b = Tensor(spectrum.imag).values();
      for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{77}, size / 2 - 1, size / 2}) {
        const std::complex<double> exact = Exact(real, second, k);
        EXPECT_NEAR(a[k], exact.real(), tolerance) << k;
        EXPECT_NEAR(b[k], exact.imag(), tolerance) << k;
      }
    };
    const Complex spectrum = fft({x, y}), half = rfft(x);
    expect(spectrum, imag);
    expect(half, std::vector<float>(size, 0.0f));
    const Complex back = ifft(spectrum);
    const std::vector<float> a = Tensor(back.real).values(), b = Tensor(back.imag).values();
    const std::vector<float> c = Tensor(irfft(half, size)).values();
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_NEAR(a[i], real[i], 3e-6) << i;
      EXPECT_NEAR(b[i], imag[i], 3e-6) << i;
      EXPECT_NEAR(c[i], real[i], 3e-6) << i;
    }
  }
}

}  // namespace
}  // namespace zg
