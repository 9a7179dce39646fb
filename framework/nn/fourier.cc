#include "framework/nn/fourier.h"

#include <cmath>
#include <string>
#include <vector>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/elementary.h"
#include "framework/nn/functions.h"
#include "framework/nn/images.h"
#include "framework/nn/indexing.h"
#include "framework/nn/padding.h"
#include "framework/nn/products.h"
#include "framework/nn/shapes.h"

namespace zg {
namespace {

constexpr double kTau = 6.283185307179586;

// cos(2 pi t / n) and sin of whole numbers t.
struct Waves {
  Var cosines;
  Var sines;
};

Waves WavesAt(Var t, int64_t n) {
  const Var angles = scale(to(remainder(t, n), DType::kF32), kTau / static_cast<double>(n));
  return {cos(angles), sin(angles)};
}

// Those of t = row column.
Waves WavesOf(int64_t n, int64_t rows, int64_t columns) {
  return WavesAt(unsqueeze(arange(rows), 1) * arange(columns), n);
}

// The factors of the first elements in the inverse of n: one stands for its conjugate, too, unless it
// is its own.
Var InverseFactors(int64_t n, int64_t count) {
  Var times = 2.0 - to(equal(arange(count), 0.0), DType::kF32);
  if (n % 2 == 0) times = times - to(equal(2 * arange(count), static_cast<double>(n)), DType::kF32);
  return scale(times, 1.0 / static_cast<double>(n));
}

// The matrix (n, count) whose product with the real and imaginary parts of the first elements is the
// inverse.
Waves InverseWavesOf(int64_t n, int64_t count) {
  const Waves waves = WavesOf(n, n, count);
  const Var times = InverseFactors(n, count);
  return {waves.cosines * times, waves.sines * times};
}

// Rows whose products with real numbers are the real parts of their transform, then the imaginary ones.
Var PartsOf(const Waves& waves) { return concat({waves.cosines, scale(waves.sines, -1.0)}); }

// The halves of y along a dim; empty after an error.
Complex FromParts(Var y, int64_t dim) {
  const std::vector<Var> parts = chunk(y, 2, dim);
  return parts.size() < 2 ? Complex() : Complex{parts[0], parts[1]};
}

// f(x) with dim `dim` as the last one.
template <typename F>
Complex AlongLast(const char* function, const Complex& x, int64_t dim, const F& f) {
  const nn::Trace::Function called(function);
  nn::Trace& trace = nn::Trace::Of(function);
  for (const Var& part : {x.real, x.imag}) {
    Status status = trace.CheckUsable(part);
    if (status.ok()) status = nn::ExpectFloatingPoint(function, part);
    if (status.ok()) status = nn::DimOf(function, part, dim).status();
    if (!status.ok()) return {trace.Fail(status), Var()};
  }
  if (x.real.shape() != x.imag.shape()) {
    return {
        trace.Fail(InvalidArgument("{}: got the real part {} and the imaginary part {}, expected "
                                   "one shape",
                                   function, x.real.shape().ToString(), x.imag.shape().ToString())),
        Var()};
  }
  const int64_t last = x.real.shape().num_dims() - 1;
  if (dim == -1 || dim == last) return f(x);
  const auto swapped = [&](Var part) { return part.empty() ? part : transpose(part, dim, -1); };
  const Complex y = f({swapped(x.real), swapped(x.imag)});
  return {swapped(y.real), swapped(y.imag)};
}

// Up to so many numbers, a matrix of waves costs less than smaller transforms; and if n has no divisors.
constexpr int64_t kSmallMatrix = 256 * 256;
constexpr int64_t kLargeMatrix = 1024 * 1024;

// x times e^(-2 pi i t / n) for the waves at t, elementwise. Without an imaginary part x is real.
Complex Turned(const Complex& x, const Waves& waves) {
  if (x.imag.empty()) return {x.real * waves.cosines, x.real * scale(waves.sines, -1.0)};
  return {x.real * waves.cosines + x.imag * waves.sines,
          x.imag * waves.cosines - x.real * waves.sines};
}

template <typename F>
Complex OfParts(const Complex& x, const F& f) {
  return {f(x.real), x.imag.empty() ? Var() : f(x.imag)};
}

Complex Transform(const Complex& x, int64_t count);

// By the matrix of all waves.
Complex TransformByMatrix(const Complex& x, int64_t count) {
  const int64_t n = x.real.dim(-1);
  const Waves waves = WavesOf(n, count, n);
  if (x.imag.empty()) return FromParts(linear(x.real, PartsOf(waves)), -1);
  return {linear(x.real, waves.cosines) + linear(x.imag, waves.sines),
          linear(x.imag, waves.cosines) - linear(x.real, waves.sines)};
}

// For n = a b elements (Cooley and Tukey, 1965): x[b j + m] and X[k + a l] are matrices; first the
// transforms of the columns m, which are turned, then those of the rows k.
Complex TransformByDivisor(const Complex& x, int64_t a, int64_t count) {
  const int64_t n = x.real.dim(-1), b = n / a;
  Dims shape = x.real.shape().dims();
  shape.back() = a;
  shape.push_back(b);
  const auto turned = [](Var part) { return transpose(part, -1, -2); };
  const Complex columns =
      OfParts(x, [&](Var part) { return turned(reshape(part, shape)); });  // (..., b, a)
  const Complex rows = OfParts(Turned(Transform(columns, a), WavesOf(n, b, a)), turned);
  const Complex y = Transform(rows, (count + a - 1) / a);  // (..., a, count / a)
  return OfParts(y, [&](Var part) { return slice(flatten(turned(part), -2), -1, 0, count); });
}

// As a convolution (Bluestein, 1970), from 2 jk = j^2 + k^2 - (k - j)^2, by transforms of a power of
// two elements.
Complex TransformByConvolution(const Complex& x, int64_t count) {
  const int64_t n = x.real.dim(-1);
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  const auto waves_of_squares = [n](Var j) { return WavesAt(j * j, 2 * n); };
  const Waves own = waves_of_squares(arange(n));
  const Var far = arange(size), distance = minimum(far, scale(far, -1.0) + size);
  const Waves between = waves_of_squares(distance);
  const auto kept = [&](Var part) { return where(distance < n, part, 0.0); };
  const auto padded = [&](Var part) { return pad(part, -1, 0, size - n); };
  const Complex filter = Transform({kept(between.cosines), kept(between.sines)}, size);
  const Complex product = multiply(Transform(OfParts(Turned(x, own), padded), size), filter);
  // The inverse transform, conjugated twice.
  const Complex y = conj(Transform(conj(product), count));
  const auto first = [&](Var wave) { return slice(wave, 0, 0, count) / static_cast<double>(size); };
  return Turned(y, {first(own.cosines), first(own.sines)});
}

// The divisor of n that is closest below its root; 1: there is none.
int64_t DivisorOf(int64_t n) {
  auto divisor = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % divisor != 0) --divisor;
  return divisor;
}

// The first `count` elements of the transform of the last dim.
Complex Transform(const Complex& x, int64_t count) {
  const int64_t n = x.real.dim(-1);
  if (n * count <= kSmallMatrix) return TransformByMatrix(x, count);
  if (const int64_t divisor = DivisorOf(n); divisor > 1) {
    return TransformByDivisor(x, divisor, count);
  }
  return n * count <= kLargeMatrix ? TransformByMatrix(x, count) : TransformByConvolution(x, count);
}

Complex TransformLast(const Complex& x) { return Transform(x, x.real.dim(-1)); }

struct Frames {
  int64_t size;
  int64_t hop;
  Var window;
  int64_t padding;  // at each end

  Frames(int64_t size, const StftOptions& options)
      : size(size),
        hop(options.hop == 0 ? size / 4 : options.hop),
        window(options.window),
        padding(options.center ? size / 2 : 0) {}

  Status Check(const std::string& function) const {
    if (size < 1 || hop < 1) {
      return InvalidArgument("{}: got frames of {} elements, every {}, expected at least 1",
                             function, size, hop);
    }
    if (!window.empty() && window.shape() != Shape{size}) {
      return InvalidArgument("{}: got a window {}, expected [{}]", function,
                             window.shape().ToString(), size);
    }
    return Status::Ok();
  }
};

}  // namespace

Complex multiply(const Complex& a, const Complex& b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

Complex conj(const Complex& x) { return {x.real, scale(x.imag, -1.0)}; }

Var abs(const Complex& x) { return hypot(x.real, x.imag); }

Complex fft(const Complex& x, int64_t dim) { return AlongLast("fft", x, dim, TransformLast); }

Complex ifft(const Complex& x, int64_t dim) {
  return AlongLast("ifft", x, dim, [](const Complex& last) -> Complex {
    const Complex y = TransformLast(conj(last));
    const double factor = 1.0 / static_cast<double>(last.real.dim(-1));
    return {scale(y.real, factor), scale(y.imag, -factor)};
  });
}

Complex rfft(Var x, int64_t dim, int64_t count) {
  return AlongLast("rfft", {x, x}, dim, [&](const Complex& last) -> Complex {
    const int64_t n = last.real.dim(-1), half = n / 2 + 1;
    if (count < 0 || count > half) {
      return {nn::Trace::Of("rfft").Fail(InvalidArgument(
                  "rfft: got a count of {} for {} elements, expected at most {}", count, n, half)),
              Var()};
    }
    return Transform({last.real, Var()}, count == 0 ? half : count);
  });
}

Var irfft(const Complex& x, int64_t size, int64_t dim) {
  const auto inverse = [&](const Complex& last) -> Complex {
    const int64_t count = last.real.dim(-1);
    if (size < 1 || count > size / 2 + 1) {
      return {nn::Trace::Of("irfft").Fail(
                  InvalidArgument("irfft: got {} elements for a size of {}, expected at most {}",
                                  count, size, size / 2 + 1)),
              Var()};
    }
    if (size * count <= kSmallMatrix) {
      const Waves waves = InverseWavesOf(size, count);
      return {linear(last.real, waves.cosines) - linear(last.imag, waves.sines), Var()};
    }
    const Var times = InverseFactors(size, count);
    const auto whole = [&](Var part) { return pad(part, -1, 0, size - count); };
    return Transform(OfParts(conj({last.real * times, last.imag * times}), whole), size);
  };
  return AlongLast("irfft", x, dim, inverse).real;
}

Complex rfft2(Var x) { return fft(rfft(x, -1), -2); }

Var irfft2(const Complex& x, int64_t last_size) { return irfft(ifft(x, -2), last_size, -1); }

Complex stft(Var x, int64_t size, const StftOptions& options) {
  const nn::Trace::Function called("stft");
  nn::Trace& trace = nn::Trace::Of("stft");
  const Frames frames(size, options);
  Status status = trace.CheckUsable(x);
  if (status.ok()) status = frames.Check("stft");
  if (status.ok() && x.shape().num_dims() != 2) {
    status = InvalidArgument("stft: got x {}, expected 2 dims", x.shape().ToString());
  }
  if (!status.ok()) return {trace.Fail(status), Var()};
  if (frames.padding > 0) x = pad(x, 1, frames.padding, frames.padding, PadMode::kReflect);
  Var filters = unsqueeze(PartsOf(WavesOf(size, size / 2 + 1, size)), 1);
  if (!frames.window.empty()) filters = filters * frames.window;
  Conv1dOptions conv;
  conv.stride = frames.hop;
  return FromParts(conv1d(unsqueeze(x, 1), filters, conv), 1);
}

Var istft(const Complex& x, int64_t size, int64_t length, const StftOptions& options) {
  return nn::Checked("istft", x.real, [&]() -> StatusOr<Var> {
    const Frames frames(size, options);
    ZG_RETURN_IF_ERROR(frames.Check("istft"));
    if (x.real.shape().num_dims() != 3 || x.real.dim(1) != size / 2 + 1) {
      return InvalidArgument("istft: got x {}, expected 3 dims with {} elements in dim 1",
                             x.real.shape().ToString(), size / 2 + 1);
    }
    const int64_t count = x.real.dim(2);
    const int64_t covered = (count - 1) * frames.hop + size - 2 * frames.padding;
    if (length < 1 || length > covered) {
      return InvalidArgument("istft: got a length of {}, but {} frames cover {}", length, count,
                             covered);
    }
    const Waves waves = InverseWavesOf(size, size / 2 + 1);
    Var filters =
        unsqueeze(PartsOf({transpose(waves.cosines, 0, 1), transpose(waves.sines, 0, 1)}), 1);
    Var weight = ones({1, 1, size});
    if (!frames.window.empty()) {
      filters = filters * frames.window;
      weight = weight * square(frames.window);
    }
    Conv1dOptions conv;
    conv.stride = frames.hop;
    const Var sum = conv_transpose1d(concat({x.real, x.imag}, 1), filters, conv);
    const Var weights = conv_transpose1d(ones({1, 1, count}), weight, conv);
    const auto kept = [&](Var y) { return slice(y, 2, frames.padding, frames.padding + length); };
    return squeeze(kept(sum) / kept(weights), 1);
  });
}

}  // namespace zg
