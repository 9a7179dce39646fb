#include <algorithm>
#include <atomic>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/matrix_batch.h"

namespace zg {
namespace {

// to -= factor from.
ZG_INLINE void SubtractMultiple(const float* from, float factor, int64_t count, float* to) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] -= factor * from[i];
}

ZG_INLINE void Swap(float* a, float* b, int64_t count) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float own = a[i];
    a[i] = b[i];
    b[i] = own;
  }
}

// What an elimination found. The result of a singular matrix is unfinished.
struct Eliminated {
  bool is_singular;
  float sign;  // of the exchanges of rows
};

// Makes a (n, n) upper triangular, with the largest element of each column as its pivot, and does the
// same with the rows of x (n, k).
ZG_INLINE Eliminated Eliminate(int64_t n, int64_t k, float* a, float* x) {
  float sign = 1.0f;
  for (int64_t c = 0; c < n; ++c) {
    int64_t pivot = c;
    float largest = elementwise::Abs(a[c * n + c]);
    for (int64_t r = c + 1; r < n; ++r) {
      const float magnitude = elementwise::Abs(a[r * n + c]);
      if (magnitude > largest) {
        largest = magnitude;
        pivot = r;
      }
    }
    if (largest == 0.0f) return {true, 0.0f};
    if (pivot != c) {
      Swap(a + pivot * n + c, a + c * n + c, n - c);
      Swap(x + pivot * k, x + c * k, k);
      sign = -sign;
    }
    for (int64_t r = c + 1; r < n; ++r) {
      const float factor = a[r * n + c] / a[c * n + c];
      SubtractMultiple(a + c * n + c + 1, factor, n - c - 1, a + r * n + c + 1);
      SubtractMultiple(x + c * k, factor, k, x + r * k);
    }
  }
  return {false, sign};
}

// x = t^-1 x for a triangular t (n, n), whose element (r, c) is a[r row + c column]. Rows are done in
// their order, or from the last one on.
struct Triangular {
  const float* a;
  int64_t n, row, column;
  bool from_end;
  bool has_diagonal;  // else it is ones

  ZG_INLINE void Solve(int64_t k, float* x) const {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t r = from_end ? n - 1 - i : i;
      float* const own = x + r * k;
      for (int64_t j = 0; j < i; ++j) {
        const int64_t c = from_end ? n - 1 - j : j;
        SubtractMultiple(x + c * k, a[r * row + c * column], k, own);
      }
      if (!has_diagonal) continue;
      const float diagonal = a[r * (row + column)];
      ZG_INDEPENDENT
      for (int64_t i_column = 0; i_column < k; ++i_column) own[i_column] /= diagonal;
    }
  }
};

// a' (n, n).
ZG_INLINE void CopyTransposed(const float* a, int64_t n, float* to) {
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) to[c * n + r] = a[r * n + c];
  }
}

// x = a^-1 x, or a'^-1 x; false if a is singular.
bool SolveOne(const float* a, bool transposed, int64_t n, int64_t k, float* scratch, float* x) {
  return Multiversion([=]() ZG_VERSION {
    if (transposed) {
      CopyTransposed(a, n, scratch);
    } else {
      std::copy_n(a, n * n, scratch);
    }
    if (Eliminate(n, k, scratch, x).is_singular) return false;
    Triangular{scratch, n, n, 1, true, true}.Solve(k, x);
    return true;
  });
}

// A kernel that needs a copy of each matrix.
class OfMatrices : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, batch_.count, 1, Cost()), BytesOfThread());
  }

 protected:
  explicit OfMatrices(const KernelSpec& spec)
      : batch_(spec.call.inputs[0].shape), threads_(spec.threads) {}

  // Calls run(matrix, scratch) for each matrix; false means that it cannot be done. Error: the first
  // such matrix, which `op` says is `what`.
  template <typename F>
  Status ForMatrices(const KernelArguments& arguments, const char* op, const char* what,
                     const F& run) const {
    std::atomic<int64_t> first_bad{batch_.count};
    ForRanges(arguments.threads, batch_.count, 1, Cost(),
              [&](int64_t begin, int64_t end, int thread) {
                void* const scratch = WorkspaceOf(thread, arguments.workspace, BytesOfThread());
                for (int64_t matrix = begin; matrix < end; ++matrix) {
                  if (run(matrix, static_cast<float*>(scratch))) continue;
                  int64_t first = first_bad;
                  while (matrix < first && !first_bad.compare_exchange_weak(first, matrix)) {
                  }
                  return;
                }
              });
    if (first_bad == batch_.count) return Status::Ok();
    return InvalidArgument("{}", BadMatrixText(op, what, first_bad, batch_.count));
  }

  const MatrixBatch& batch() const { return batch_; }

 private:
  int64_t Cost() const { return batch_.n * batch_.n * batch_.n / 2; }
  int64_t BytesOfThread() const { return batch_.elements() * static_cast<int64_t>(sizeof(float)); }

  const MatrixBatch batch_;
  const int threads_;
};

class Solve : public OfMatrices {
 public:
  explicit Solve(const KernelSpec& spec)
      : OfMatrices(spec),
        columns_(spec.outputs[0].shape.dim(-1)),
        transposed_(spec.call.attributes.Bool("transposed")) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t n = batch().n;
    const float* const b = arguments.input<float>(1);
    return ForMatrices(arguments, "solve", kSingular, [&](int64_t matrix, float* scratch) {
      const int64_t at = matrix * n * columns_;
      float* const x = arguments.output<float>(0) + at;
      if (x != b + at) std::copy_n(b + at, n * columns_, x);
      const float* const a = arguments.input<float>(0) + matrix * batch().elements();
      return SolveOne(a, transposed_, n, columns_, scratch, x);
    });
  }

 private:
  const int64_t columns_;
  const bool transposed_;
};

class Inverse : public OfMatrices {
 public:
  explicit Inverse(const KernelSpec& spec) : OfMatrices(spec) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t n = batch().n;
    return ForMatrices(arguments, "inverse", kSingular, [&](int64_t matrix, float* scratch) {
      float* const x = arguments.output<float>(0) + matrix * batch().elements();
      std::fill_n(x, batch().elements(), 0.0f);
      for (int64_t i = 0; i < n; ++i) x[i * (n + 1)] = 1.0f;
      const float* const a = arguments.input<float>(0) + matrix * batch().elements();
      return SolveOne(a, false, n, n, scratch, x);
    });
  }
};

class Slogdet : public OfMatrices {
 public:
  explicit Slogdet(const KernelSpec& spec) : OfMatrices(spec) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t n = batch().n;
    float* const logarithms = arguments.output<float>(0);
    float* const signs = arguments.output<float>(1);
    return ForMatrices(arguments, "slogdet", kSingular, [&](int64_t matrix, float* scratch) {
      std::copy_n(arguments.input<float>(0) + matrix * batch().elements(), batch().elements(),
                  scratch);
      const Eliminated found =
          Multiversion([=]() ZG_VERSION { return Eliminate(n, 0, scratch, scratch); });
      float sign = found.sign;
      float sum = found.is_singular ? -__builtin_inff() : 0.0f;
      for (int64_t i = 0; i < n && !found.is_singular; ++i) {
        const float pivot = scratch[i * (n + 1)];
        sum += elementwise::FullLog(elementwise::Abs(pivot));
        sign *= elementwise::Sign(pivot);
      }
      logarithms[matrix] = sum;
      signs[matrix] = sign;
      return true;
    });
  }
};

class Cholesky : public OfMatrices {
 public:
  explicit Cholesky(const KernelSpec& spec) : OfMatrices(spec) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t n = batch().n;
    return ForMatrices(arguments, "cholesky", kNotDefinite, [&](int64_t matrix, float* scratch) {
      CopyTransposed(arguments.input<float>(0) + matrix * batch().elements(), n, scratch);
      if (!Factor(n, scratch)) return false;
      float* const l = arguments.output<float>(0) + matrix * batch().elements();
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n; ++c) l[r * n + c] = c <= r ? scratch[c * n + r] : 0.0f;
      }
      return true;
    });
  }

 private:
  // The upper triangle of u: u' u, from the first row on.
  static bool Factor(int64_t n, float* u) {
    return Multiversion([=]() ZG_VERSION {
      for (int64_t c = 0; c < n; ++c) {
        float* const row = u + c * n;
        if (!(row[c] > 0.0f)) return false;
        const float pivot = elementwise::Sqrt(row[c]);
        row[c] = pivot;
        ZG_INDEPENDENT
        for (int64_t j = c + 1; j < n; ++j) row[j] /= pivot;
        for (int64_t r = c + 1; r < n; ++r) SubtractMultiple(row + r, row[r], n - r, u + r * n + r);
      }
      return true;
    });
  }
};

class SolveTriangular : public Kernel {
 public:
  explicit SolveTriangular(const KernelSpec& spec)
      : batch_(spec.call.inputs[0].shape),
        columns_(spec.outputs[0].shape.dim(-1)),
        upper_(spec.call.attributes.Bool("upper")),
        transposed_(spec.call.attributes.Bool("transposed")),
        unit_(spec.call.attributes.Bool("unit")) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t n = batch_.n, k = columns_;
    const float* const b = arguments.input<float>(1);
    ForRanges(
        arguments.threads, batch_.count, 1, n * n * k / 2, [&](int64_t begin, int64_t end, int) {
          for (int64_t matrix = begin; matrix < end; ++matrix) {
            float* const x = arguments.output<float>(0) + matrix * n * k;
            if (x != b + matrix * n * k) std::copy_n(b + matrix * n * k, n * k, x);
            const Triangular triangular = {arguments.input<float>(0) + matrix * batch_.elements(),
                                           n,
                                           transposed_ ? 1 : n,
                                           transposed_ ? n : 1,
                                           upper_ != transposed_,
                                           !unit_};
            Multiversion([=]() ZG_VERSION { triangular.Solve(k, x); });
          }
        });
    return Status::Ok();
  }

 private:
  const MatrixBatch batch_;
  const int64_t columns_;
  const bool upper_;
  const bool transposed_;
  const bool unit_;
};

}  // namespace

void RegisterLinearAlgebraKernels(KernelRegistry& registry) {
  registry.Register("solve", MakeKernel<Solve>);
  registry.Register("inverse", MakeKernel<Inverse>);
  registry.Register("slogdet", MakeKernel<Slogdet>);
  registry.Register("cholesky", MakeKernel<Cholesky>);
  registry.Register("solve_triangular", MakeKernel<SolveTriangular>);
}

}  // namespace zg
