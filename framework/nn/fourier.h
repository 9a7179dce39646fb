// Discrete Fourier transforms (torch.fft, torch.stft): names and meaning are PyTorch's, whose default
// norms they have. A transform of up to 256 elements is a product with a matrix of cosines and sines; one
// of n = a b elements is made of transforms of a and of b elements, and one of a large prime number of
// three transforms of a power of two; frames are always products with a matrix. In mixed precision keep
// them in f32 (f32_modules).
#pragma once

#include <cstdint>

#include "framework/nn/var.h"

namespace zg {

// Complex numbers, as two Vars of one shape.
struct Complex {
  Var real;
  Var imag;
};

// a b, the conjugate, and the absolute value (whose gradient at 0 is not finite).
Complex multiply(const Complex& a, const Complex& b);
Complex conj(const Complex& x);
Var abs(const Complex& x);

// X[k] = sum_j x[j] e^(-2 pi i jk / n) along one dim; ifft is its inverse, which divides by n.
Complex fft(const Complex& x, int64_t dim = -1);
Complex ifft(const Complex& x, int64_t dim = -1);
// The first n / 2 + 1 elements of the transform of real numbers, the others being conjugates of them; or
// only the first `count`, in less time. irfft is its inverse, to `size` elements, where x lacks elements
// that are 0. It ignores the imaginary parts of the element 0 and, for an even size, of the last one.
// Error: more than size / 2 + 1 elements.
Complex rfft(Var x, int64_t dim = -1, int64_t count = 0);
Var irfft(const Complex& x, int64_t size, int64_t dim = -1);
// Along the last two dims: rfft along the last one, fft along the other.
Complex rfft2(Var x);
Var irfft2(const Complex& x, int64_t last_size);

struct StftOptions {
  int64_t hop = 0;     // between the begins of two frames; 0: a quarter of a frame
  Var window = {};     // (size), a factor of each element of a frame; empty: ones
  bool center = true;  // frame t is centred at element t hop: x is padded by its mirror image
};

// The rfft of frames of `size` elements of x (B, T) -> (B, size / 2 + 1, frames), with frames = T / hop
// + 1 if centred, (T - size) / hop + 1 otherwise.
Complex stft(Var x, int64_t size, const StftOptions& options = {});
// Its inverse, to `length` elements: what frames say of an element is averaged by the squares of the
// window, whose sum over the frames of an element must not be 0.
Var istft(const Complex& x, int64_t size, int64_t length, const StftOptions& options = {});

}  // namespace zg
