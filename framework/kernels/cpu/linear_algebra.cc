#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/row_products.h"
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

// The first of the largest elements of a column, from `begin` on.
ZG_INLINE int64_t FindPivot(const float* column, int64_t begin, int64_t end) {
  constexpr int64_t kLanes = 16;
  float largest[kLanes];
  for (float& lane : largest) lane = elementwise::Abs(column[begin]);
  int64_t r = begin;
  for (; r + kLanes <= end; r += kLanes) {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < kLanes; ++i) {
      const float magnitude = elementwise::Abs(column[r + i]);
      largest[i] = magnitude > largest[i] ? magnitude : largest[i];
    }
  }
  for (; r < end; ++r) largest[0] = std::max(largest[0], elementwise::Abs(column[r]));
  const float most = *std::max_element(largest, largest + kLanes);
  for (r = begin; r < end; ++r) {
    if (elementwise::Abs(column[r]) == most) return r;
  }
  return begin;  // NaN
}

// Some columns of a, from their first row on, one after the other.
struct Panel {
  float* data;
  int64_t rows;
  int64_t columns;

  ZG_INLINE float* Column(int64_t c) const { return data + c * rows; }
  ZG_INLINE void Load(const Rows& a) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) Column(c)[r] = a.Row(r)[c];
    }
  }
  ZG_INLINE void Store(const Rows& a) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) a.Row(r)[c] = Column(c)[r];
    }
  }
  ZG_INLINE void SwapRows(int64_t r, int64_t other) const {
    for (int64_t c = 0; c < columns; ++c) std::swap(Column(c)[r], Column(c)[other]);
  }
  // Below its diagonal element column c becomes factors, and later columns lose so many of its row.
  ZG_INLINE void Eliminate(int64_t c) const {
    float* const factors = Column(c);
    const float pivot = factors[c];
    ZG_INDEPENDENT
    for (int64_t r = c + 1; r < rows; ++r) factors[r] /= pivot;
    for (int64_t other = c + 1; other < columns; ++other) {
      SubtractMultiple(factors + c + 1, Column(other)[c], rows - c - 1, Column(other) + c + 1);
    }
  }
};

// Makes a (n, n) upper triangular, with the largest element of each column as its pivot, and does the
// same with the rows of x (n, k). Below the diagonal a keeps the factors. Some columns are eliminated
// at once: first among themselves, in `scratch`, then all of their rows from what is right of them, and
// from x.
ZG_INLINE Eliminated Eliminate(int64_t n, int64_t k, const Rows& a, const Rows& x, float* scratch) {
  float sign = 1.0f;
  for (int64_t begin = 0; begin < n; begin += kRowsAtOnce) {
    const int64_t width = std::min(kRowsAtOnce, n - begin), end = begin + width;
    const Rows own = {a.Row(begin) + begin, a.stride};
    const Panel panel = {scratch, n - begin, width};
    panel.Load(own);
    for (int64_t c = 0; c < width; ++c) {
      const int64_t pivot = FindPivot(panel.Column(c), c, panel.rows);
      if (panel.Column(c)[pivot] == 0.0f) return {true, 0.0f};
      if (pivot != c) {
        panel.SwapRows(pivot, c);
        Swap(a.Row(begin + pivot) + end, a.Row(begin + c) + end, n - end);
        Swap(x.Row(begin + pivot), x.Row(begin + c), k);
        sign = -sign;
      }
      panel.Eliminate(c);
    }
    panel.Store(own);
    const Rows right = {own.data + width, a.stride};
    const RowFactors factors = {own.data, a.stride, 1};
    for (int64_t i = 1; i < width; ++i) {
      SubtractProducts(right, i, factors.From(i, 0), n - end, right.From(i), 1);
      SubtractProducts(x.From(begin), i, factors.From(i, 0), k, x.From(begin + i), 1);
    }
    const RowFactors below = factors.From(width, 0);
    SubtractProducts(right, width, below, n - end, right.From(width), n - end);
    SubtractProducts(x.From(begin), width, below, k, x.From(end), n - end);
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
    const int64_t last = n - 1;
    const RowFactors factors = from_end ? RowFactors{a + last * (row + column), -row, -column}
                                        : RowFactors{a, row, column};
    const Rows rows = from_end ? Rows{x + last * k, -k} : Rows{x, k};
    for (int64_t begin = 0; begin < n; begin += kRowsAtOnce) {
      const int64_t end = std::min(begin + kRowsAtOnce, n);
      for (int64_t r = begin; r < end; ++r) {
        float* const own = rows.Row(r);
        SubtractProducts(rows.From(begin), r - begin, factors.From(r, begin), k, rows.From(r), 1);
        if (!has_diagonal) continue;
        const float diagonal = factors.At(r, r);
        ZG_INDEPENDENT
        for (int64_t i = 0; i < k; ++i) own[i] /= diagonal;
      }
      SubtractProducts(rows.From(begin), end - begin, factors.From(end, begin), k, rows.From(end),
                       n - end);
    }
  }
};

// a' (n, n), in blocks that stay in the nearest cache.
ZG_INLINE void CopyTransposed(const float* a, int64_t n, float* to) {
  constexpr int64_t kBlock = 16;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t end = std::min(first + kBlock, n);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = first; c < end; ++c) to[c * n + r] = a[r * n + c];
    }
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
    if (Eliminate(n, k, {scratch, n}, {x, k}, scratch + n * n).is_singular) return false;
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
  // A matrix, and some of its columns.
  int64_t BytesOfThread() const {
    return (batch_.n + kRowsAtOnce) * batch_.n * static_cast<int64_t>(sizeof(float));
  }

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
      const Eliminated found = Multiversion([=]() ZG_VERSION {
        return Eliminate(n, 0, {scratch, n}, {scratch, 0}, scratch + n * n);
      });
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
      CopyTransposed(scratch, n, l);
      for (int64_t r = 0; r < n; ++r) std::fill(l + r * n + r + 1, l + (r + 1) * n, 0.0f);
      return true;
    });
  }

 private:
  // Rows r, r + 1, ... of u, from column r on, lose what `num_from` finished rows from `begin` on have
  // in common with them.
  ZG_INLINE static void Subtract(const Rows& u, int64_t n, int64_t begin, int64_t num_from,
                                 int64_t r, int64_t num_to) {
    float* const finished = u.Row(begin) + r;
    SubtractProducts({finished, n}, num_from, {finished, 1, n}, n - r, {u.Row(r) + r, n}, num_to);
  }

  // The upper triangle of u: u' u, from the first row on. What is below it is undefined.
  static bool Factor(int64_t n, float* data) {
    return Multiversion([=]() ZG_VERSION {
      const Rows u = {data, n};
      for (int64_t begin = 0; begin < n; begin += kRowsAtOnce) {
        const int64_t end = std::min(begin + kRowsAtOnce, n);
        for (int64_t c = begin; c < end; ++c) {
          Subtract(u, n, begin, c - begin, c, 1);
          float* const row = u.Row(c);
          if (!(row[c] > 0.0f)) return false;
          const float pivot = elementwise::Sqrt(row[c]);
          row[c] = pivot;
          ZG_INDEPENDENT
          for (int64_t j = c + 1; j < n; ++j) row[j] /= pivot;
        }
        for (int64_t r = end; r < n; r += kRowsAtOnce) {
          Subtract(u, n, begin, end - begin, r, std::min(kRowsAtOnce, n - r));
        }
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
