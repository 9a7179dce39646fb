#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/parted_dim.h"

namespace zg::cuda {
namespace {

std::string IdOutOfRange(const char* op, const DeviceFault& fault) {
  return fmt::format("{}: an id is {}, the table has rows 0 to {}", op, fault.got, fault.limit - 1);
}

// y[i, :] = table[ids[i], :], or 0 for an id in another part, a warp for each position. Rows are moved
// as words.
template <typename Word>
__global__ void EmbeddingKernel(const Word* table, const int64_t* ids, PartedDim rows,
                                int64_t row_words, int64_t num_ids, FaultSink faults, Word* y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (i >= num_ids) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t id = ids[i];
  if (id < 0 || id >= rows.Total()) {
    if (lane == 0) faults.Record(id, rows.Total());
    return;
  }
  const int64_t row = rows.Find(id);
  for (int64_t word = lane; word < row_words; word += kWarp) {
    y[i * row_words + word] = row < 0 ? Word{} : table[row * row_words + word];
  }
}

class Embedding : public Kernel {
 public:
  explicit Embedding(const KernelSpec& spec)
      : rows_(PartedDim::Of(spec.call, 2, spec.call.inputs[0].shape.dim(0))),
        element_bytes_(SizeOf(spec.call.inputs[0].dtype)),
        row_bytes_(spec.call.inputs[0].shape.dim(1) * element_bytes_),
        num_ids_(spec.call.inputs[1].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    const bool is_aligned =
        row_bytes_ % 16 == 0 && AreAligned(16, arguments.input<char>(0), arguments.output<char>(0));
    if (is_aligned) return RunWords<uint4>(arguments);
    return element_bytes_ == 4 ? RunWords<uint32_t>(arguments) : RunWords<uint16_t>(arguments);
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return IdOutOfRange("embedding", fault);
  }

 private:
  template <typename Word>
  Status RunWords(const KernelArguments& arguments) const {
    return Launch(EmbeddingKernel<Word>, Threads(num_ids_ * kWarp), arguments.stream,
                  arguments.input<Word>(0), arguments.input<int64_t>(1), rows_.At(arguments, 2),
                  row_bytes_ / static_cast<int64_t>(sizeof(Word)), num_ids_, FaultSinkOf(arguments),
                  arguments.output<Word>(0));
  }

  const PartedDim rows_;
  const int64_t element_bytes_;
  const int64_t row_bytes_;
  const int64_t num_ids_;
};

// The positions of each row of the table in ascending order: those of row v are
// positions[begins[v]], ..., positions[begins[v + 1] - 1].
struct PositionLists {
  int32_t* begins;     // rows + 1
  int32_t* cursors;    // rows
  int32_t* unordered;  // num_ids: the same lists, each in any order
  int32_t* positions;  // num_ids
  int32_t* num_long;   // number of lists with more than kSegment positions
  int32_t* long_rows;  // their rows, in any order: at most num_ids / kSegment
};

// A warp adds at most this many positions one after the other: frequent tokens have thousands.
constexpr int32_t kSegment = 256;

struct EmbeddingGradShape {
  int64_t rows;
  int64_t columns;
  int64_t num_ids;
};

// The row of position i; -1: it is in another part, or does not exist.
__device__ inline int64_t RowAt(const int64_t* ids, int64_t i, const PartedDim& rows) {
  const int64_t id = ids[i];
  return id < 0 || id >= rows.Total() ? -1 : rows.Find(id);
}

// cursors[v] = number of positions of row v. They are sums of integers, so their order does not
// matter.
__global__ void CountKernel(const int64_t* ids, EmbeddingGradShape shape, PartedDim rows,
                            FaultSink faults, PositionLists lists) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.num_ids) return;
  const int64_t row = RowAt(ids, i, rows);
  if (row >= 0) {
    atomicAdd(&lists.cursors[row], 1);
  } else if (ids[i] < 0 || ids[i] >= rows.Total()) {
    faults.Record(ids[i], rows.Total());
  }
}

constexpr int kScanThreads = 1024;

// Computes the begin of each list from the counts, in `begins` and `cursors`. One block.
__global__ void BeginKernel(EmbeddingGradShape shape, PositionLists lists) {
  __shared__ int32_t sums[kScanThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t part = (shape.rows + kScanThreads - 1) / kScanThreads;
  const int64_t first = thread * part;
  const int64_t end = first + part < shape.rows ? first + part : shape.rows;
  int32_t sum = 0;
  for (int64_t row = first; row < end; ++row) sum += lists.cursors[row];
  sums[thread] = sum;
  __syncthreads();
  for (int distance = 1; distance < kScanThreads; distance *= 2) {
    const int32_t before = thread >= distance ? sums[thread - distance] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  int32_t begin = sums[thread] - sum;
  for (int64_t row = first; row < end; ++row) {
    const int32_t count = lists.cursors[row];
    lists.begins[row] = begin;
    lists.cursors[row] = begin;
    begin += count;
  }
  if (thread == kScanThreads - 1) lists.begins[shape.rows] = sums[thread];
}

// Every position takes a slot in its list.
__global__ void PlaceKernel(const int64_t* ids, EmbeddingGradShape shape, PartedDim rows,
                            PositionLists lists) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.num_ids) return;
  const int64_t row = RowAt(ids, i, rows);
  if (row < 0) return;
  lists.unordered[atomicAdd(&lists.cursors[row], 1)] = static_cast<int32_t>(i);
}

// A position's index in the ordered list is the number of smaller ones.
__global__ void OrderKernel(const int64_t* ids, EmbeddingGradShape shape, PartedDim rows,
                            PositionLists lists) {
  const int64_t slot = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= lists.begins[shape.rows]) return;
  const int32_t position = lists.unordered[slot];
  const int64_t row = RowAt(ids, position, rows);
  const int32_t begin = lists.begins[row];
  int32_t place = begin;
  for (int32_t other = begin; other < lists.begins[row + 1]; ++other) {
    place += lists.unordered[other] < position;
  }
  lists.positions[place] = position;
}

// The sum of dy's rows positions[begin], ..., positions[end - 1], in columns [column, column + kPack).
template <int kPack, typename T>
__device__ inline void AddPositions(const T* dy, const EmbeddingGradShape& shape,
                                    const PositionLists& lists, int32_t begin, int32_t end,
                                    int64_t column, Floats<kPack>* sum) {
  for (int32_t at = begin; at < end; ++at) {
    const Floats<kPack> terms =
        LoadFloats<kPack>(dy + lists.positions[at] * shape.columns + column);
#pragma unroll
    for (int i = 0; i < kPack; ++i) (*sum)[i] += terms[i];
  }
}

// A warp for each row of the table and 32 packs of columns. Rows with long lists are left to
// SumLongRowsKernel.
template <int kPack, typename T>
__global__ void SumRowsKernel(const T* dy, EmbeddingGradShape shape, PositionLists lists,
                              T* dtable) {
  const int64_t tiles = (shape.columns + kWarp * kPack - 1) / (kWarp * kPack);
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  const int64_t row = warp / tiles;
  const int64_t column = (warp % tiles * kWarp + threadIdx.x % kWarp) * kPack;
  if (row >= shape.rows || column >= shape.columns) return;
  const int32_t begin = lists.begins[row];
  const int32_t end = lists.begins[row + 1];
  if (end - begin > kSegment) {
    if (column == 0) lists.long_rows[atomicAdd(lists.num_long, 1)] = static_cast<int32_t>(row);
    return;
  }
  Floats<kPack> sum = {};
  AddPositions(dy, shape, lists, begin, end, column, &sum);
  StoreFloats(sum, dtable + row * shape.columns + column);
}

constexpr int kLongRowWarps = 32;

// One block for each such row and 32 packs of columns: its warps take segments of the list in turn,
// and their sums are added in the warps' order, which depends only on the list's length.
template <int kPack, typename T>
__global__ void __launch_bounds__(kLongRowWarps* kWarp)
    SumLongRowsKernel(const T* dy, EmbeddingGradShape shape, PositionLists lists, T* dtable) {
  __shared__ float of_warps[kLongRowWarps][kWarp * kPack];
  const int64_t tiles = (shape.columns + kWarp * kPack - 1) / (kWarp * kPack);
  const int64_t index = blockIdx.x / tiles;
  if (index >= *lists.num_long) return;
  const int64_t row = lists.long_rows[index];
  const int64_t first = blockIdx.x % tiles * kWarp * kPack;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int own = static_cast<int>(threadIdx.x) % kWarp * kPack;
  const int32_t end = lists.begins[row + 1];
  Floats<kPack> sum = {};
  if (first + own < shape.columns) {
    for (int32_t begin = lists.begins[row] + warp * kSegment; begin < end;
         begin += kLongRowWarps * kSegment) {
      const int32_t segment_end = begin + kSegment < end ? begin + kSegment : end;
      AddPositions(dy, shape, lists, begin, segment_end, first + own, &sum);
    }
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) of_warps[warp][own + i] = sum[i];
  __syncthreads();
  const int64_t column = first + threadIdx.x;
  if (threadIdx.x >= kWarp * kPack || column >= shape.columns) return;
  float total = of_warps[0][threadIdx.x];
  for (int other = 1; other < kLongRowWarps; ++other) total += of_warps[other][threadIdx.x];
  dtable[row * shape.columns + column] = Round<T>(total);
}

// dtable[v, :] = sum of dy[i, :] over the positions i with ids[i] = v, in f32 and in an order that
// depends only on their number.
class EmbeddingGrad : public Kernel {
 public:
  explicit EmbeddingGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        rows_(PartedDim::Of(spec.call, 2, spec.outputs[0].shape.dim(0))),
        shape_{spec.outputs[0].shape.dim(0), spec.outputs[0].shape.dim(1),
               spec.call.inputs[1].shape.num_elements()} {}

  int64_t workspace_bytes() const override {
    return (2 * shape_.rows + 2 + 2 * shape_.num_ids + MaxLongRows()) *
           static_cast<int64_t>(sizeof(int32_t));
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const ids = arguments.input<int64_t>(1);
    PositionLists lists;
    lists.begins = static_cast<int32_t*>(arguments.workspace);
    lists.cursors = lists.begins + shape_.rows + 1;
    lists.num_long = lists.cursors + shape_.rows;
    lists.long_rows = lists.num_long + 1;
    lists.unordered = lists.long_rows + MaxLongRows();
    lists.positions = lists.unordered + shape_.num_ids;
    const size_t counter_bytes = (shape_.rows + 1) * sizeof(int32_t);  // followed by num_long
    ZG_RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(lists.cursors, 0, counter_bytes,
                                                  static_cast<cudaStream_t>(arguments.stream)),
                                  "the counters of embedding_grad could not be cleared"));
    const LaunchShape by_position = Threads(shape_.num_ids);
    const PartedDim rows = rows_.At(arguments, 2);
    ZG_RETURN_IF_ERROR(Launch(CountKernel, by_position, arguments.stream, ids, shape_, rows,
                              FaultSinkOf(arguments), lists));
    ZG_RETURN_IF_ERROR(Launch(BeginKernel, {1, kScanThreads}, arguments.stream, shape_, lists));
    ZG_RETURN_IF_ERROR(
        Launch(PlaceKernel, by_position, arguments.stream, ids, shape_, rows, lists));
    ZG_RETURN_IF_ERROR(
        Launch(OrderKernel, by_position, arguments.stream, ids, shape_, rows, lists));
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const T* const dy = arguments.input<T>(0);
      T* const dtable = arguments.output<T>(0);
      const bool is_aligned = shape_.columns % kPack == 0 && AreAligned(16, dy, dtable);
      const int64_t tiles = CeilDivide(shape_.columns, kWarp * (is_aligned ? kPack : 1));
      ZG_RETURN_IF_ERROR(Launch(is_aligned ? SumRowsKernel<kPack, T> : SumRowsKernel<1, T>,
                                Threads(shape_.rows * tiles * kWarp), arguments.stream, dy, shape_,
                                lists, dtable));
      if (MaxLongRows() == 0) return Status::Ok();
      LaunchShape long_rows;
      long_rows.grid = dim3(static_cast<unsigned>(MaxLongRows() * tiles));
      long_rows.block = dim3(kLongRowWarps * kWarp);
      return Launch(is_aligned ? SumLongRowsKernel<kPack, T> : SumLongRowsKernel<1, T>, long_rows,
                    arguments.stream, dy, shape_, lists, dtable);
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return IdOutOfRange("embedding_grad", fault);
  }

 private:
  int64_t MaxLongRows() const { return shape_.num_ids / (kSegment + 1); }

  const DType dtype_;
  const PartedDim rows_;
  const EmbeddingGradShape shape_;
};

StatusOr<std::unique_ptr<Kernel>> MakeEmbeddingGrad(const KernelSpec& spec) {
  const int64_t num_ids = spec.call.inputs[1].shape.num_elements();
  if (num_ids > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("embedding_grad: {} ids, the CUDA kernel takes fewer than 2^31",
                           num_ids);
  }
  return MakeKernel<EmbeddingGrad>(spec);
}

}  // namespace

void RegisterEmbeddingKernels(KernelRegistry& registry) {
  registry.Register("embedding", MakeKernel<Embedding>);
  registry.Register("embedding_grad", MakeEmbeddingGrad);
}

}  // namespace zg::cuda
