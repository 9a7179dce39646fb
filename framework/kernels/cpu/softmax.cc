#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/softmax_rows.h"
#include "framework/kernels/cpu/turned_rows.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {
namespace {

// Processes RowsAtOnce() rows in f32, or fewer; the result may be an operand.
using RowsFunction = void (*)(const float* first, const float* second, int64_t rows,
                              int64_t columns, float* out);

struct FusedExp {
  ZG_INLINE float operator()(float x) const { return ExpOfNotHigh(x); }
};

// A long row, with the next one prefetched.
ZG_INLINE void ExpOfLongRow(const float* x, int64_t columns, float largest, float* y) {
  for (int64_t run = 0; run < columns; run += kPrefetchRun) {
    const int64_t end = std::min(run + kPrefetchRun, columns);
    PrefetchRow<0>(x + columns + run, end - run);
    PrefetchRow<1>(y + run + kPrefetchAhead, end - run);
    ZG_INDEPENDENT
    for (int64_t i = run; i < end; ++i) y[i] = ExpOfNotHigh(x[i] - largest);
  }
}

ZG_INLINE void SoftmaxOfTurned(const float* x, int64_t rows, int64_t columns, float* y) {
  ForTurned(
      rows, [=](int64_t begin, int64_t count) __attribute__((always_inline)) {
        TurnedRows turned;
        float maxima[kTurnedRows], factors[kTurnedRows];
        Turn(x + begin * columns, count, columns, &turned);
        ExponentialsOfTurned(turned, columns, FusedExp(), maxima, &turned, factors);
        for (int64_t r = 0; r < kTurnedRows; ++r) factors[r] = 1.0f / factors[r];
        SetTurned(
            columns,
            [&](int64_t i, int64_t r)
                __attribute__((always_inline)) { return turned.element(i)[r] * factors[r]; },
            &turned);
        TurnBack(turned, count, columns, y + begin * columns);
      });
}

void SoftmaxRows(const float* x, const float*, int64_t rows, int64_t columns, float* y) {
  Multiversion([=]() ZG_VERSION {
    if (AreTurned(rows, columns)) return SoftmaxOfTurned(x, rows, columns, y);
    float maxima[kMostRowsAtOnce];
    MaximaOf(x, rows, columns, maxima);
    if (rows == 1) {
      ExpOfLongRow(x, columns, maxima[0], y);
    } else {
      ExpBelow(x, rows, columns, maxima, FusedExp(), y);
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* const row = y + r * columns;
      const float factor = 1.0f / SumOfRow(row, columns);
      ZG_INDEPENDENT
      for (int64_t i = 0; i < columns; ++i) row[i] *= factor;
    }
  });
}

ZG_INLINE void SoftmaxGradOfTurned(const float* dy, const float* y, int64_t rows, int64_t columns,
                                   float* dx) {
  ForTurned(
      rows, [=](int64_t begin, int64_t count) __attribute__((always_inline)) {
        TurnedRows slopes, values, products;
        float dots[kTurnedRows];
        Turn(dy + begin * columns, count, columns, &slopes);
        Turn(y + begin * columns, count, columns, &values);
        SetTurned(
            columns,
            [&](int64_t i, int64_t r) __attribute__((always_inline)) {
              return slopes.element(i)[r] * values.element(i)[r];
            },
            &products);
        SumsOfTurned(products, columns, dots);
        SetTurned(
            columns,
            [&](int64_t i, int64_t r) __attribute__((always_inline)) {
              return values.element(i)[r] * (slopes.element(i)[r] - dots[r]);
            },
            &products);
        TurnBack(products, count, columns, dx + begin * columns);
      });
}

void SoftmaxGradRows(const float* dy, const float* y, int64_t rows, int64_t columns, float* dx) {
  Multiversion([=]() ZG_VERSION {
    if (AreTurned(rows, columns)) return SoftmaxGradOfTurned(dy, y, rows, columns, dx);
    for (int64_t begin = 0; begin < rows * columns; begin += columns) {
      const float* const own_dy = dy + begin;
      const float* const own_y = y + begin;
      float* const own_dx = dx + begin;
      const float dot = SumTerms(
          columns, [=](const auto& load) __attribute__((always_inline)) {
            return load(own_dy, 0.0f) * load(own_y, 0.0f);
          });
      ZG_INDEPENDENT
      for (int64_t i = 0; i < columns; ++i) own_dx[i] = own_y[i] * (own_dy[i] - dot);
    }
  });
}

// Exponentials are computed in blocks, so that operands are not overwritten.
constexpr int64_t kBlock = 1024;

ZG_INLINE float SumOfExponentials(const float* x, int64_t columns, float largest, float* y) {
  float block[kBlock];
  float sum = 0.0f;
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t size = std::min(kBlock, columns - begin);
    for (int64_t run = 0; run < size; run += kPrefetchRun) {
      const int64_t end = std::min(run + kPrefetchRun, size);
      PrefetchRow<0>(x + columns + begin + run, end - run);  // the next row
      PrefetchRow<1>(y + begin + run, end - run);
      ZG_INDEPENDENT
      for (int64_t i = run; i < end; ++i) block[i] = ExpOfNotHigh(x[begin + i] - largest);
    }
    sum += SumOfRow(block, size);
  }
  return sum;
}

// (x - maximum) - ln(sum): the maximum and the logarithm are not added first, which would round the sum
// to the bits that large elements leave.
ZG_INLINE void LogSoftmaxOfTurned(const float* x, int64_t rows, int64_t columns, float* y) {
  ForTurned(
      rows, [=](int64_t begin, int64_t count) __attribute__((always_inline)) {
        TurnedRows turned, terms;
        float maxima[kTurnedRows], logs[kTurnedRows];
        Turn(x + begin * columns, count, columns, &turned);
        ExponentialsOfTurned(turned, columns, FusedExp(), maxima, &terms, logs);
        ZG_INDEPENDENT
        for (int64_t r = 0; r < kTurnedRows; ++r) logs[r] = Log<Fused>(logs[r]);
        SetTurned(
            columns,
            [&](int64_t i, int64_t r) __attribute__((always_inline)) {
              return (turned.element(i)[r] - maxima[r]) - logs[r];
            },
            &turned);
        TurnBack(turned, count, columns, y + begin * columns);
      });
}

void LogSoftmaxRows(const float* x, const float*, int64_t rows, int64_t columns, float* y) {
  Multiversion([=]() ZG_VERSION {
    if (AreTurned(rows, columns)) return LogSoftmaxOfTurned(x, rows, columns, y);
    float maxima[kMostRowsAtOnce], logs[kMostRowsAtOnce];
    MaximaOf(x, rows, columns, maxima);
    if (rows == 1) {
      logs[0] = Log<Fused>(SumOfExponentials(x, columns, maxima[0], y));
    } else {
      float block[kMostElementsAtOnce];
      ExpBelow(x, rows, columns, maxima, FusedExp(), block);
      for (int64_t r = 0; r < rows; ++r) {
        logs[r] = Log<Fused>(SumOfRow(block + r * columns, columns));
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      const float maximum = maxima[r], log = logs[r];
      ZG_INDEPENDENT
      for (int64_t i = r * columns; i < (r + 1) * columns; ++i) y[i] = (x[i] - maximum) - log;
    }
  });
}

ZG_INLINE void LogSoftmaxGradOfTurned(const float* dy, const float* y, int64_t rows,
                                      int64_t columns, float* dx) {
  ForTurned(
      rows, [=](int64_t begin, int64_t count) __attribute__((always_inline)) {
        TurnedRows slopes, values;
        float sums[kTurnedRows];
        Turn(dy + begin * columns, count, columns, &slopes);
        Turn(y + begin * columns, count, columns, &values);
        SumsOfTurned(slopes, columns, sums);
        SetTurned(
            columns,
            [&](int64_t i, int64_t r) __attribute__((always_inline)) {
              return slopes.element(i)[r] - ExpOfNotHigh(values.element(i)[r]) * sums[r];
            },
            &values);
        TurnBack(values, count, columns, dx + begin * columns);
      });
}

void LogSoftmaxGradRows(const float* dy, const float* y, int64_t rows, int64_t columns, float* dx) {
  Multiversion([=]() ZG_VERSION {
    if (AreTurned(rows, columns)) return LogSoftmaxGradOfTurned(dy, y, rows, columns, dx);
    if (rows == 1) {
      const float sum = SumOfRow(dy, columns);
      ZG_INDEPENDENT
      for (int64_t i = 0; i < columns; ++i) dx[i] = dy[i] - ExpOfNotHigh(y[i]) * sum;
      return;
    }
    float block[kMostElementsAtOnce];
    ZG_INDEPENDENT
    for (int64_t i = 0; i < rows * columns; ++i) block[i] = ExpOfNotHigh(y[i]);
    for (int64_t r = 0; r < rows; ++r) {
      const float sum = SumOfRow(dy + r * columns, columns);
      ZG_INDEPENDENT
      for (int64_t i = r * columns; i < (r + 1) * columns; ++i) dx[i] = dy[i] - block[i] * sum;
    }
  });
}

// Rows of 16 bits are widened, and their results rounded.
class RowKernel : public Kernel {
 public:
  RowKernel(const KernelSpec& spec, RowsFunction run)
      : dtype_(spec.outputs[0].dtype),
        shape_(AsMatrix(spec.outputs[0].shape)),
        num_inputs_(static_cast<int>(spec.call.inputs.size())),
        run_(run),
        rows_at_once_(RowsAtOnce(shape_.columns)),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return WorkspaceBytes(NumSharing(threads_, shape_.rows, 1, Cost()), 2 * BlockBytes());
  }

  Status Run(const KernelArguments& arguments) override {
    if (shape_.columns == 0) return Status::Ok();
    ForRanges(arguments.threads, shape_.rows, 1, Cost(),
              [&](int64_t begin, int64_t end, int thread) {
                RunRows(arguments, begin, end,
                        WorkspaceOf(thread, arguments.workspace, 2 * BlockBytes()));
              });
    return Status::Ok();
  }

 private:
  int64_t Cost() const { return 4 * shape_.columns; }  // exponentials

  void RunRows(const KernelArguments& arguments, int64_t begin, int64_t end,
               void* workspace) const {
    const int64_t bytes = shape_.columns * SizeOf(dtype_);
    float* const wide[] = {static_cast<float*>(workspace),
                           reinterpret_cast<float*>(static_cast<char*>(workspace) + BlockBytes())};
    for (int64_t row = begin; row < end; row += rows_at_once_) {
      const int64_t rows = std::min(rows_at_once_, end - row);
      const int64_t elements = rows * shape_.columns;
      const void* const first = arguments.input<char>(0) + row * bytes;
      const void* const second = arguments.input<char>(num_inputs_ - 1) + row * bytes;
      void* const out = arguments.output<char>(0) + row * bytes;
      if (dtype_ == DType::kF32) {
        run_(static_cast<const float*>(first), static_cast<const float*>(second), rows,
             shape_.columns, static_cast<float*>(out));
        continue;
      }
      ConvertFloats(dtype_, first, DType::kF32, wide[0], elements);
      if (num_inputs_ == 2) ConvertFloats(dtype_, second, DType::kF32, wide[1], elements);
      run_(wide[0], wide[1], rows, shape_.columns, wide[0]);
      ConvertFloats(DType::kF32, wide[0], dtype_, out, elements);
    }
  }

  int64_t BlockBytes() const {
    return WholeLines(rows_at_once_ * shape_.columns * static_cast<int64_t>(sizeof(float)));
  }

  const DType dtype_;
  const MatrixShape shape_;
  const int num_inputs_;
  const RowsFunction run_;
  const int64_t rows_at_once_;
  const int threads_;
};

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  registry.Register("softmax", MakeKernel<RowKernel, SoftmaxRows>);
  registry.Register("softmax_grad", MakeKernel<RowKernel, SoftmaxGradRows>);
  registry.Register("log_softmax", MakeKernel<RowKernel, LogSoftmaxRows>);
  registry.Register("log_softmax_grad", MakeKernel<RowKernel, LogSoftmaxGradRows>);
}

}  // namespace zg
