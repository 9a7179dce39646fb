// The kernels of factored_update and of its sums (framework/ops/factored_update.cc). blockIdx.y is
// the tensor in the list.
#pragma once

#include <cmath>

#include "framework/kernels/cuda/exact_blocks.cuh"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/math/factored_math.h"
#include "framework/ops/bucket_parts.h"
#include "framework/ops/factored_shapes.h"

namespace zg::cuda {

inline constexpr int kMaxFactored = 32;                            // tensors in one launch
inline constexpr int64_t kFactoredNormWords = 2 * kExactSumWords;  // for p and g of each tensor
inline constexpr int kFactoredRows = 16;                           // per thread in a tile

struct FactoredList {
  int first;  // index of the first one in the bucket
  int count;
  FactoredTensor tensors[kMaxFactored];
};

// A row of the local part of the bucket, and the numbers of the step.
struct FactoredPart {
  BucketRows rows;
  int64_t row;
  int64_t num_rows;  // in all matrices of the bucket; likewise the next
  int64_t num_columns;
  const int64_t* begins;  // of the rows; null: the bucket is not cut
  const StepContext* context;
  const float* control;  // null: no control
  FactoredOptions options;

  __device__ float Factor() const { return control == nullptr ? 1.0f : control[0]; }
  __device__ FactoredStep Step() const {
    const double number = control == nullptr ? static_cast<double>(context->step) : control[1];
    return FactoredStepOf(options, context->lr_factor, number);
  }
};

// The local elements of a tensor: [begin, end) of those in the bucket's part.
struct OwnElements {
  int64_t begin;
  int64_t end;
  int64_t shift;  // from these to indices in the local part
  int64_t part;

  __device__ OwnElements(const FactoredPart& own, const FactoredTensor& tensor) {
    const BucketRows::Place at = own.rows.PlaceOf(own.begins, own.row);
    const int64_t in_row = tensor.begin - at.first;
    begin = in_row < 0 ? -in_row : 0;
    const int64_t rest = own.rows.elements - in_row;
    end = rest < tensor.part_size() ? rest : tensor.part_size();
    shift = own.row * own.rows.elements + in_row;
    part = at.part;
  }
};

// The row and the column of a tensor's element in the states.
struct FactorPlace {
  int64_t row;
  int64_t column;

  __device__ FactorPlace(const FactoredTensor& tensor, int64_t element) {
    row = element / tensor.columns;
    column = tensor.first_column + row / tensor.rows * tensor.columns + element % tensor.columns;
    row += tensor.first_row;
  }
};

__device__ inline SquareUnit UnitOfTensor(const FactoredTensor& tensor, const int64_t* norms,
                                          int64_t index) {
  ExactSum of_gradient;
  of_gradient.AddWords(norms + index * kFactoredNormWords + kExactSumWords);
  return SquareUnitOf(of_gradient.Value(),
                      tensor.rows > tensor.columns ? tensor.rows : tensor.columns);
}

// sums (2, rows + columns) begin as zeros. Tiles are `width` threads wide, a power of two, and each
// thread has a column in every kThreads / width-th row. The numbers are integers, so their order
// does not matter.
template <typename T>
__global__ void FactorSumsKernel(const T* g, FactoredPart part, FactoredList list,
                                 const int64_t* norms, int width, int64_t* sums) {
  const FactoredTensor& tensor = list.tensors[blockIdx.y];
  const OwnElements own(part, tensor);
  const int64_t tiles_in_row = (tensor.columns + width - 1) / width;
  const int lanes = kThreads / width;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) / tiles_in_row * lanes * kFactoredRows;
  const int64_t end_row = first_row + lanes * kFactoredRows;
  if (first_row >= tensor.num_rows()) return;
  const bool is_elsewhere =
      first_row * tensor.columns >= own.end || end_row * tensor.columns <= own.begin;
  if (tensor.parts == 1 && is_elsewhere) return;
  __shared__ SquareUnit unit;
  if (threadIdx.x == 0) unit = UnitOfTensor(tensor, norms, list.first + blockIdx.y);
  __syncthreads();
  const float factor = part.Factor();
  const double per_square = unit.per_square, per_rest = unit.per_rest;
  const int64_t column =
      static_cast<int64_t>(blockIdx.x) % tiles_in_row * width + threadIdx.x % width;
  int64_t* const high = sums;
  int64_t* const low = sums + part.num_rows + part.num_columns;
  SquareDigits of_column = {0, 0};
  int64_t matrix = -1;
  const auto flush = [&] {
    if (matrix < 0 || column >= tensor.columns) return;
    const int64_t at = part.num_rows + tensor.first_column + matrix * tensor.columns + column;
    AtomicAdd(high + at, of_column.high);
    AtomicAdd(low + at, of_column.low);
    of_column = {0, 0};
  };
  for (int64_t row = first_row + threadIdx.x / width; row < end_row; row += lanes) {
    SquareDigits digits = {0, 0};
    const int64_t element = tensor.OwnElement(row * tensor.columns + column, own.part);
    const bool is_here = row < tensor.num_rows() && column < tensor.columns &&
                         element >= own.begin && element < own.end;
    if (is_here) {
      if (row / tensor.rows != matrix) {
        flush();
        matrix = row / tensor.rows;
      }
      digits = DigitsOfSquare(factor * Widen(g[element + own.shift]), per_square, per_rest);
      of_column.high += digits.high;
      of_column.low += digits.low;
    }
    bool adds = is_here;
    if (width >= kWarp) {  // a warp has a single row
      digits.high = WarpSum(digits.high);
      digits.low = WarpSum(digits.low);
      adds = threadIdx.x % kWarp == 0 && row < tensor.num_rows();
    }
    if (!adds) continue;
    AtomicAdd(high + tensor.first_row + row, digits.high);
    AtomicAdd(low + tensor.first_row + row, digits.low);
  }
  flush();
}

struct FactorStates {
  const float* old_rows;
  const float* old_columns;
  float* rows;  // may be the old ones; likewise the next
  float* columns;
  bool may_keep;  // they stay if the update is skipped
};

// One thread for each row and each column.
static __global__ void NextFactorsKernel(FactoredPart part, FactoredList list, const int64_t* norms,
                                         const int64_t* sums, FactorStates states) {
  const FactoredTensor& tensor = list.tensors[blockIdx.y];
  const int64_t num_rows = tensor.num_rows(), num_columns = tensor.num_columns();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads;
  if (first >= num_rows + num_columns) return;
  __shared__ SquareUnit unit;
  if (threadIdx.x == 0) unit = UnitOfTensor(tensor, norms, list.first + blockIdx.y);
  __syncthreads();
  if (states.may_keep && part.Factor() == 0.0f) return;
  const double share = part.Step().share;
  const int64_t* const low = sums + part.num_rows + part.num_columns;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = first + threadIdx.x; i < num_rows + num_columns; i += stride) {
    if (i < num_rows) {
      const int64_t at = tensor.first_row + i;
      states.rows[at] =
          NextFactor(states.old_rows[at], unit, sums[at], low[at], tensor.columns, share);
    } else {
      const int64_t at = tensor.first_column + i - num_rows;
      const int64_t sum = part.num_rows + at;
      states.columns[at] =
          NextFactor(states.old_columns[at], unit, sums[sum], low[sum], tensor.rows, share);
    }
  }
}

// ratios = rows divided by the divisor of their matrix. One block for each matrix.
static __global__ void FactorRatiosKernel(FactoredPart part, FactoredList list, const float* rows,
                                          float* ratios) {
  const FactoredTensor& tensor = list.tensors[blockIdx.y];
  for (int64_t matrix = blockIdx.x; matrix < tensor.count; matrix += gridDim.x) {
    const int64_t first = tensor.first_row + matrix * tensor.rows;
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < tensor.rows; i += kThreads) sum += rows[first + i];
    const double mean = BlockSum(sum) / static_cast<double>(tensor.rows);
    const double divisor = FactorDivisor(mean, part.options.epsilon1);
    for (int64_t i = threadIdx.x; i < tensor.rows; i += kThreads) {
      ratios[first + i] = static_cast<float>(rows[first + i] / divisor);
    }
  }
}

// The elements of a tensor whose squares are summed: those of p, of the gradient, or of the step.
template <typename T>
struct PlainElements {
  const T* x;
  bool counts;  // scaled by the control's factor

  __device__ float At(const FactoredTensor&, int64_t, int64_t place, float factor) const {
    return counts ? factor * Widen(x[place]) : Widen(x[place]);
  }
};

template <typename T>
struct Directions {
  const T* g;
  const float* ratios;
  const float* columns;
  float floor;

  __device__ float At(const FactoredTensor& tensor, int64_t element, int64_t place,
                      float factor) const {
    const FactorPlace at(tensor, element);
    return FactoredDirection(factor * Widen(g[place]), ratios[at.row], columns[at.column], floor);
  }
};

// words + (tensor * stride) begin as zeros.
template <typename Elements>
__global__ void FactoredTermsKernel(Elements elements, FactoredPart part, FactoredList list,
                                    int64_t stride, int64_t* words) {
  const FactoredTensor& tensor = list.tensors[blockIdx.y];
  const OwnElements own(part, tensor);
  constexpr int64_t kTerm = kSquareSumTermElements;
  const int64_t first = own.begin + static_cast<int64_t>(blockIdx.x) * kThreads * kTerm;
  if (first >= own.end) return;
  const float factor = part.Factor();
  ExactSum sum;
  for (int64_t term = first + threadIdx.x * kTerm; term < own.end;
       term += static_cast<int64_t>(gridDim.x) * kThreads * kTerm) {
    Floats<kTerm> x;
    for (int i = 0; i < kTerm; ++i) {
      const int64_t at = term + i;
      x[i] = at < own.end
                 ? elements.At(tensor, tensor.WholeElement(at, own.part), at + own.shift, factor)
                 : 0.0f;
    }
    sum.Add(SumOfSquares(x));
  }
  int64_t* const of_tensor = words + (list.first + blockIdx.y) * stride;
  WriteBlockSum(sum, [&](int word, int64_t total) { AtomicAdd(of_tensor + word, total); });
}

// One thread for each tensor.
static __global__ void FactoredStepSizesKernel(FactoredPart part, FactoredList list,
                                               const int64_t* norms, const int64_t* step_sums,
                                               float* step_sizes) {
  const int listed = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (listed >= list.count) return;
  const int64_t t = list.first + listed;
  ExactSum of_p, of_u;
  of_p.AddWords(norms + t * kFactoredNormWords);
  of_u.AddWords(step_sums + t * kExactSumWords);
  step_sizes[t] = FactoredStepSize(part.options, part.Step(), std::sqrt(of_p.Value()),
                                   std::sqrt(of_u.Value()), list.tensors[listed].size());
}

template <typename T>
__global__ void FactoredUpdateKernel(Directions<T> directions, FactoredPart part, FactoredList list,
                                     const float* step_sizes, float* p, FaultSink faults) {
  const FactoredTensor& tensor = list.tensors[blockIdx.y];
  const OwnElements own(part, tensor);
  const float factor = part.Factor();
  if (factor == 0.0f) return;
  const float decay =
      static_cast<float>(part.options.lr * part.context->lr_factor * part.options.weight_decay);
  const float step_size = step_sizes[list.first + blockIdx.y];
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  bool is_finite = true;
  for (int64_t at = own.begin + static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       at < own.end; at += stride) {
    const int64_t place = at + own.shift;
    const float u = directions.At(tensor, tensor.WholeElement(at, own.part), place, factor);
    const float next = FactoredNext(p[place], u, decay, step_size);
    is_finite = is_finite && std::isfinite(next);
    p[place] = next;
  }
  if (!is_finite && part.context->stop_on_non_finite) faults.Record(0, 0);
}

}  // namespace zg::cuda
