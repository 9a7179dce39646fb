#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/parted_dim.h"

namespace zg::cuda {
namespace {

// The rows of each group, in ascending order: those of group g are rows[begins[g]], ...,
// rows[begins[g + 1] - 1].
struct RowLists {
  int32_t* begins;  // groups + 1
  int32_t* rows;

  static int64_t Bytes(int64_t groups, int64_t rows) {
    return (groups + 1 + rows) * static_cast<int64_t>(sizeof(int32_t));
  }
};

// The group of a row; -1: it is in another part, or there is none.
__device__ inline int64_t GroupOf(int64_t id, const PartedDim& groups) {
  return id < 0 || id >= groups.Total() ? -1 : groups.Find(id);
}

// The sum of the values of this thread and those before it in the block, whose number is kThreads.
__device__ inline int32_t ScanBlock(int32_t value, int32_t* sums) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  sums[thread] = value;
  __syncthreads();
  for (int distance = 1; distance < kThreads; distance *= 2) {
    const int32_t before = thread >= distance ? sums[thread - distance] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  return sums[thread];
}

// A block lists the rows of one group: behind the rows of all groups before it.
__global__ void ListKernel(const int64_t* ids, int64_t num_rows, PartedDim groups, FaultSink faults,
                           RowLists lists) {
  __shared__ int32_t sums[kThreads];
  const int64_t group = blockIdx.x;
  int32_t before = 0;
  for (int64_t i = threadIdx.x; i < num_rows; i += kThreads) {
    const int64_t other = GroupOf(ids[i], groups);
    before += other >= 0 && other < group;
    if (group == 0 && (ids[i] < 0 || ids[i] >= groups.Total())) {
      faults.Record(ids[i], groups.Total());
    }
  }
  ScanBlock(before, sums);
  int32_t end = sums[kThreads - 1];
  if (threadIdx.x == 0) lists.begins[group] = end;
  for (int64_t first = 0; first < num_rows; first += kThreads) {
    const int64_t i = first + threadIdx.x;
    const bool is_own = i < num_rows && GroupOf(ids[i], groups) == group;
    const int32_t place = ScanBlock(is_own, sums) - 1;
    if (is_own) lists.rows[end + place] = static_cast<int32_t>(i);
    end += sums[kThreads - 1];
  }
  if (group == groups.size - 1 && threadIdx.x == 0) lists.begins[group + 1] = end;
}

Status ListRows(const KernelArguments& arguments, int64_t num_rows, const PartedDim& groups,
                const RowLists& lists) {
  LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(groups.size));
  return Launch(ListKernel, shape, arguments.stream, arguments.input<int64_t>(2), num_rows, groups,
                FaultSinkOf(arguments), lists);
}

RowLists ListsIn(void* workspace, int64_t groups) {
  int32_t* const begins = static_cast<int32_t*>(workspace);
  return {begins, begins + groups + 1};
}

// A block computes a tile of kTile x kTile sums, kDepth terms at a time; a thread has 4 x 4 of them,
// kTile / 4 apart.
constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kApart = kTile / 4;
static_assert(kApart * kApart == kThreads);

struct Tile {
  float a[kDepth][kTile + 1];  // no two threads of a warp in one bank
  float b[kDepth][kTile + 1];
};

struct Sums {
  float values[4][4] = {};

  __device__ void Add(const Tile& tile) {
    const int row = static_cast<int>(threadIdx.x) / kApart;
    const int column = static_cast<int>(threadIdx.x) % kApart;
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          values[i][j] += tile.a[k][row + i * kApart] * tile.b[k][column + j * kApart];
        }
      }
    }
  }
  // run(row, column, sum) for the thread's sums.
  template <typename Run>
  __device__ void ForEach(const Run& run) const {
    const int row = static_cast<int>(threadIdx.x) / kApart;
    const int column = static_cast<int>(threadIdx.x) % kApart;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) run(row + i * kApart, column + j * kApart, values[i][j]);
    }
  }
};

// Fills one operand of a tile: to[k][i] = value(k, i). Neighbouring threads have neighbouring k, or i.
template <bool kAlongDepth, typename Value>
__device__ void FillTile(const Value& value, float (&to)[kDepth][kTile + 1]) {
#pragma unroll
  for (int n = 0; n < kTile * kDepth / kThreads; ++n) {
    const int at = static_cast<int>(threadIdx.x) + n * kThreads;
    const int k = kAlongDepth ? at % kDepth : at / kTile;
    const int i = kAlongDepth ? at / kDepth : at % kTile;
    to[k][i] = value(k, i);
  }
}

struct ProductShape {
  int64_t groups;
  int64_t depth;
  int64_t columns;
};

// The block's rows of one group: lists.rows[begin], ..., lists.rows[end - 1]. None: group is -1.
struct RowTile {
  int64_t group;
  int32_t begin;
  int32_t end;
};

__device__ inline RowTile FindRowTile(const RowLists& lists, int64_t groups, int64_t tile) {
  for (int64_t group = 0; group < groups; ++group) {
    const int32_t begin = lists.begins[group], end = lists.begins[group + 1];
    const int32_t tiles = (end - begin + kTile - 1) / kTile;
    if (tile < tiles) {
      const int32_t first = begin + static_cast<int32_t>(tile) * kTile;
      return {group, first, first + kTile < end ? first + kTile : end};
    }
    tile -= tiles;
  }
  return {-1, 0, 0};
}

// Tiles of rows along x, of columns along y of the grid.
template <bool kTransposed, typename T>
__global__ void ProductKernel(const T* x, const T* matrices, ProductShape shape, RowLists lists,
                              T* y) {
  __shared__ Tile tile;
  __shared__ RowTile own;
  if (threadIdx.x == 0) own = FindRowTile(lists, shape.groups, blockIdx.x);
  __syncthreads();
  if (own.group < 0) return;
  const T* const matrix = matrices + own.group * shape.depth * shape.columns;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kTile;
  Sums sums;
  for (int64_t first = 0; first < shape.depth; first += kDepth) {
    FillTile<true>(
        [&](int k, int i) {
          if (own.begin + i >= own.end || first + k >= shape.depth) return 0.0f;
          return Widen(x[lists.rows[own.begin + i] * shape.depth + first + k]);
        },
        tile.a);
    FillTile<kTransposed>(
        [&](int k, int i) {
          if (column + i >= shape.columns || first + k >= shape.depth) return 0.0f;
          return Widen(kTransposed ? matrix[(column + i) * shape.depth + first + k]
                                   : matrix[(first + k) * shape.columns + column + i]);
        },
        tile.b);
    __syncthreads();
    sums.Add(tile);
    __syncthreads();
  }
  sums.ForEach([&](int i, int j, float sum) {
    if (own.begin + i >= own.end || column + j >= shape.columns) return;
    y[lists.rows[own.begin + i] * shape.columns + column + j] = Round<T>(sum);
  });
}

// A group along z, tiles of a's columns along y, of b's along x of the grid.
template <typename T>
__global__ void SumKernel(const T* a, const T* b, int64_t a_columns, int64_t b_columns,
                          RowLists lists, T* y) {
  __shared__ Tile tile;
  const int64_t group = blockIdx.z;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int32_t end = lists.begins[group + 1];
  const auto fill = [&](const T* from, int64_t columns, int64_t begin, int32_t first, auto& to) {
    FillTile<false>(
        [&](int k, int i) {
          if (begin + i >= columns || first + k >= end) return 0.0f;
          return Widen(from[lists.rows[first + k] * columns + begin + i]);
        },
        to);
  };
  Sums sums;
  for (int32_t first = lists.begins[group]; first < end; first += kDepth) {
    fill(a, a_columns, row, first, tile.a);
    fill(b, b_columns, column, first, tile.b);
    __syncthreads();
    sums.Add(tile);
    __syncthreads();
  }
  sums.ForEach([&](int i, int j, float sum) {
    if (row + i >= a_columns || column + j >= b_columns) return;
    y[(group * a_columns + row + i) * b_columns + column + j] = Round<T>(sum);
  });
}

unsigned Tiles(int64_t size) { return static_cast<unsigned>(CeilDivide(size, kTile)); }

std::string NoMatrix(const char* op, const DeviceFault& fault) {
  return fmt::format("{}: an id is {}, there are matrices 0 to {}", op, fault.got, fault.limit - 1);
}

class GroupedMatmul : public Kernel {
 public:
  explicit GroupedMatmul(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        groups_(PartedDim::Of(spec.call, 3, spec.call.inputs[1].shape.dim(0))),
        rows_(spec.call.inputs[0].shape.dim(0)),
        shape_{groups_.size, spec.call.inputs[0].shape.dim(1), spec.outputs[0].shape.dim(1)},
        transposed_(spec.call.attributes.Bool("transposed")) {}

  int64_t workspace_bytes() const override { return RowLists::Bytes(groups_.size, rows_); }

  Status Run(const KernelArguments& arguments) override {
    const RowLists lists = ListsIn(arguments.workspace, groups_.size);
    ZG_RETURN_IF_ERROR(ListRows(arguments, rows_, groups_.At(arguments, 3), lists));
    if (groups_.num_parts > 1) {
      ZG_RETURN_IF_ERROR(CudaStatus(
          cudaMemsetAsync(arguments.outputs[0], 0, rows_ * shape_.columns * SizeOf(dtype_),
                          static_cast<cudaStream_t>(arguments.stream)),
          "the result of grouped_matmul could not be cleared"));
    }
    LaunchShape shape;  // each group may have a tile that is not full
    shape.grid = dim3(static_cast<unsigned>(rows_ / kTile + std::min(groups_.size, rows_)),
                      Tiles(shape_.columns));
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return Launch(transposed_ ? ProductKernel<true, T> : ProductKernel<false, T>, shape,
                    arguments.stream, arguments.input<T>(0), arguments.input<T>(1), shape_, lists,
                    arguments.output<T>(0));
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return NoMatrix("grouped_matmul", fault);
  }

 private:
  const DType dtype_;
  const PartedDim groups_;
  const int64_t rows_;
  const ProductShape shape_;
  const bool transposed_;
};

class GroupedMatmulGrad : public Kernel {
 public:
  explicit GroupedMatmulGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        groups_(PartedDim::Of(spec.call, 3, spec.outputs[0].shape.dim(0))),
        rows_(spec.call.inputs[0].shape.dim(0)),
        a_columns_(spec.call.inputs[0].shape.dim(1)),
        b_columns_(spec.call.inputs[1].shape.dim(1)) {}

  int64_t workspace_bytes() const override { return RowLists::Bytes(groups_.size, rows_); }

  Status Run(const KernelArguments& arguments) override {
    const RowLists lists = ListsIn(arguments.workspace, groups_.size);
    ZG_RETURN_IF_ERROR(ListRows(arguments, rows_, groups_.At(arguments, 3), lists));
    LaunchShape shape;
    shape.grid = dim3(Tiles(b_columns_), Tiles(a_columns_), static_cast<unsigned>(groups_.size));
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return Launch(SumKernel<T>, shape, arguments.stream, arguments.input<T>(0),
                    arguments.input<T>(1), a_columns_, b_columns_, lists, arguments.output<T>(0));
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return NoMatrix("grouped_matmul_grad", fault);
  }

 private:
  const DType dtype_;
  const PartedDim groups_;
  const int64_t rows_;
  const int64_t a_columns_;
  const int64_t b_columns_;
};

template <typename K>
StatusOr<std::unique_ptr<Kernel>> MakeGrouped(const KernelSpec& spec) {
  const int64_t rows = spec.call.inputs[0].shape.dim(0);
  if (rows > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("grouped_matmul: {} rows, the CUDA kernels take fewer than 2^31", rows);
  }
  return MakeKernel<K>(spec);
}

}  // namespace

void RegisterGroupedMatmulKernels(KernelRegistry& registry) {
  registry.Register("grouped_matmul", MakeGrouped<GroupedMatmul>);
  registry.Register("grouped_matmul_grad", MakeGrouped<GroupedMatmulGrad>);
}

}  // namespace zg::cuda
