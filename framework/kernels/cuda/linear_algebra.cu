#include <string>

#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/matrix_batch.h"

namespace zg::cuda {
namespace {

// A block processes a matrix, and its threads share the elements of a step. Each element goes through
// the operations of the kernels on the CPU, in their order.

// The largest element of a column from the diagonal on, the first of equal ones; the same in every
// thread.
struct Pivot {
  float magnitude;
  int64_t row;

  __device__ static Pivot Of(const float* a, int64_t n, int64_t c) {
    __shared__ float magnitudes[kThreads];
    __shared__ int64_t rows[kThreads];
    Pivot own = {elementwise::Abs(a[c * n + c]), c};
    for (int64_t r = c + threadIdx.x; r < n; r += kThreads)
      own.Take(elementwise::Abs(a[r * n + c]), r);
    magnitudes[threadIdx.x] = own.magnitude;
    rows[threadIdx.x] = own.row;
    __syncthreads();
    for (int distance = kThreads / 2; distance > 0; distance /= 2) {
      if (static_cast<int>(threadIdx.x) < distance) {
        own.Take(magnitudes[threadIdx.x + distance], rows[threadIdx.x + distance]);
        magnitudes[threadIdx.x] = own.magnitude;
        rows[threadIdx.x] = own.row;
      }
      __syncthreads();
    }
    const Pivot found = {magnitudes[0], rows[0]};
    __syncthreads();
    return found;
  }

  __device__ void Take(float other, int64_t other_row) {
    if (other > magnitude || (other == magnitude && other_row < row)) {
      magnitude = other;
      row = other_row;
    }
  }
};

__device__ void Swap(float* a, float* b, int64_t count) {
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const float own = a[i];
    a[i] = b[i];
    b[i] = own;
  }
}

// Makes a (n, n) upper triangular, and does the same with the rows of x (n, k). Returns the sign of the
// exchanges of rows; 0 if a is singular.
__device__ float Eliminate(int64_t n, int64_t k, float* a, float* x) {
  float sign = 1.0f;
  for (int64_t c = 0; c < n; ++c) {
    const Pivot pivot = Pivot::Of(a, n, c);
    if (pivot.magnitude == 0.0f) return 0.0f;
    if (pivot.row != c) {
      Swap(a + pivot.row * n + c, a + c * n + c, n - c);
      Swap(x + pivot.row * k, x + c * k, k);
      sign = -sign;
      __syncthreads();
    }
    const int64_t rows = n - c - 1, width = rows + k;
    for (int64_t i = threadIdx.x; i < rows * width; i += kThreads) {
      const int64_t r = c + 1 + i / width, j = i % width;
      const float factor = a[r * n + c] / a[c * n + c];
      if (j < rows) {
        a[r * n + c + 1 + j] -= factor * a[c * n + c + 1 + j];
      } else {
        x[r * k + j - rows] -= factor * x[c * k + j - rows];
      }
    }
    __syncthreads();
  }
  return sign;
}

// x = t^-1 x for a triangular t (n, n), whose element (r, c) is a[r row + c column].
struct Triangular {
  const float* a;
  int64_t n, row, column;
  bool from_end;
  bool has_diagonal;  // else it is ones

  __device__ void Solve(int64_t k, float* x) const {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t c = from_end ? n - 1 - i : i;
      if (has_diagonal) {
        const float diagonal = a[c * (row + column)];
        for (int64_t j = threadIdx.x; j < k; j += kThreads) x[c * k + j] /= diagonal;
        __syncthreads();
      }
      for (int64_t j = threadIdx.x; j < (n - 1 - i) * k; j += kThreads) {
        const int64_t r = from_end ? j / k : c + 1 + j / k;
        x[r * k + j % k] -= a[r * row + c * column] * x[c * k + j % k];
      }
      __syncthreads();
    }
  }
};

__device__ void Copy(const float* from, int64_t count, float* to) {
  for (int64_t i = threadIdx.x; i < count; i += kThreads) to[i] = from[i];
}
__device__ void CopyTransposed(const float* a, int64_t n, float* to) {
  for (int64_t i = threadIdx.x; i < n * n; i += kThreads) to[i] = a[i % n * n + i / n];
}

// x = a^-1 b, or a'^-1 b; b is the identity if it is null, and may be x.
__global__ void SolveKernel(const float* a, bool transposed, const float* b, int64_t n, int64_t k,
                            float* scratch, float* x, FaultSink faults) {
  a += blockIdx.x * n * n;
  scratch += blockIdx.x * n * n;
  x += blockIdx.x * n * k;
  if (transposed) {
    CopyTransposed(a, n, scratch);
  } else {
    Copy(a, n * n, scratch);
  }
  if (b == nullptr) {
    for (int64_t i = threadIdx.x; i < n * k; i += kThreads) x[i] = i / k == i % k ? 1.0f : 0.0f;
  } else {
    Copy(b + blockIdx.x * n * k, n * k, x);
  }
  __syncthreads();
  if (Eliminate(n, k, scratch, x) == 0.0f) {
    if (threadIdx.x == 0) faults.Record(blockIdx.x, gridDim.x);
    return;
  }
  Triangular{scratch, n, n, 1, true, true}.Solve(k, x);
}

__global__ void SlogdetKernel(const float* a, int64_t n, float* scratch, float* logarithms,
                              float* signs) {
  scratch += blockIdx.x * n * n;
  Copy(a + blockIdx.x * n * n, n * n, scratch);
  __syncthreads();
  float sign = Eliminate(n, 0, scratch, scratch);
  if (threadIdx.x != 0) return;
  float sum = sign == 0.0f ? -__builtin_inff() : 0.0f;
  for (int64_t i = 0; i < n && sign != 0.0f; ++i) {
    const float pivot = scratch[i * (n + 1)];
    sum += elementwise::FullLog(elementwise::Abs(pivot));
    sign *= elementwise::Sign(pivot);
  }
  logarithms[blockIdx.x] = sum;
  signs[blockIdx.x] = sign;
}

// The upper triangle of u becomes that of u: u' u, from the first row on.
__global__ void CholeskyKernel(const float* a, int64_t n, float* u, float* l, FaultSink faults) {
  u += blockIdx.x * n * n;
  l += blockIdx.x * n * n;
  CopyTransposed(a + blockIdx.x * n * n, n, u);
  __syncthreads();
  for (int64_t c = 0; c < n; ++c) {
    float* const row = u + c * n;
    const float square = row[c];
    if (!(square > 0.0f)) {
      if (threadIdx.x == 0) faults.Record(blockIdx.x, gridDim.x);
      return;
    }
    const float pivot = elementwise::Sqrt(square);
    __syncthreads();
    for (int64_t j = c + threadIdx.x; j < n; j += kThreads)
      row[j] = j == c ? pivot : row[j] / pivot;
    __syncthreads();
    const int64_t rows = n - c - 1;
    for (int64_t i = threadIdx.x; i < rows * rows; i += kThreads) {
      const int64_t r = c + 1 + i / rows, j = c + 1 + i % rows;
      if (j >= r) u[r * n + j] -= row[r] * row[j];
    }
    __syncthreads();
  }
  for (int64_t i = threadIdx.x; i < n * n; i += kThreads) {
    const int64_t r = i / n, c = i % n;
    l[i] = c <= r ? u[c * n + r] : 0.0f;
  }
}

__global__ void SolveTriangularKernel(Triangular triangular, int64_t k, const float* b, float* x) {
  const int64_t n = triangular.n;
  triangular.a += blockIdx.x * n * n;
  x += blockIdx.x * n * k;
  Copy(b + blockIdx.x * n * k, n * k, x);
  __syncthreads();
  triangular.Solve(k, x);
}

// A kernel with a block for each matrix, and a copy of each in the workspace.
class OfMatrices : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return batch_.count * batch_.elements() * static_cast<int64_t>(sizeof(float));
  }

 protected:
  explicit OfMatrices(const KernelSpec& spec) : batch_(spec.call.inputs[0].shape) {}

  const MatrixBatch& batch() const { return batch_; }
  LaunchShape Blocks() const { return {dim3(static_cast<unsigned>(batch_.count))}; }

 private:
  const MatrixBatch batch_;
};

class Solve : public OfMatrices {
 public:
  explicit Solve(const KernelSpec& spec)
      : OfMatrices(spec),
        columns_(spec.outputs[0].shape.dim(-1)),
        transposed_(spec.call.attributes.Bool("transposed")) {}

  Status Run(const KernelArguments& arguments) override {
    return Launch(SolveKernel, Blocks(), arguments.stream, arguments.input<float>(0), transposed_,
                  arguments.input<float>(1), batch().n, columns_,
                  static_cast<float*>(arguments.workspace), arguments.output<float>(0),
                  FaultSinkOf(arguments));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return BadMatrixText("solve", kSingular, fault.got, fault.limit);
  }

 private:
  const int64_t columns_;
  const bool transposed_;
};

class Inverse : public OfMatrices {
 public:
  explicit Inverse(const KernelSpec& spec) : OfMatrices(spec) {}

  Status Run(const KernelArguments& arguments) override {
    const float* const identity = nullptr;
    return Launch(SolveKernel, Blocks(), arguments.stream, arguments.input<float>(0), false,
                  identity, batch().n, batch().n, static_cast<float*>(arguments.workspace),
                  arguments.output<float>(0), FaultSinkOf(arguments));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return BadMatrixText("inverse", kSingular, fault.got, fault.limit);
  }
};

class Slogdet : public OfMatrices {
 public:
  explicit Slogdet(const KernelSpec& spec) : OfMatrices(spec) {}

  Status Run(const KernelArguments& arguments) override {
    return Launch(SlogdetKernel, Blocks(), arguments.stream, arguments.input<float>(0), batch().n,
                  static_cast<float*>(arguments.workspace), arguments.output<float>(0),
                  arguments.output<float>(1));
  }
};

class Cholesky : public OfMatrices {
 public:
  explicit Cholesky(const KernelSpec& spec) : OfMatrices(spec) {}

  Status Run(const KernelArguments& arguments) override {
    return Launch(CholeskyKernel, Blocks(), arguments.stream, arguments.input<float>(0), batch().n,
                  static_cast<float*>(arguments.workspace), arguments.output<float>(0),
                  FaultSinkOf(arguments));
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return BadMatrixText("cholesky", kNotDefinite, fault.got, fault.limit);
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
    const int64_t n = batch_.n;
    const Triangular triangular = {arguments.input<float>(0), n,
                                   transposed_ ? 1 : n,       transposed_ ? n : 1,
                                   upper_ != transposed_,     !unit_};
    return Launch(SolveTriangularKernel, {dim3(static_cast<unsigned>(batch_.count))},
                  arguments.stream, triangular, columns_, arguments.input<float>(1),
                  arguments.output<float>(0));
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

}  // namespace zg::cuda
