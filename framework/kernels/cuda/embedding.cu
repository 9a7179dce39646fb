#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"

namespace zg::cuda {
namespace {

std::string IdOutOfRange(const char* op, const DeviceFault& fault) {
  return fmt::format("{}: an id is {}, the table has rows 0 to {}", op, fault.got, fault.limit - 1);
}

// y[i, :] = table[ids[i], :], a warp for each position. Rows are moved as words.
template <typename Word>
__global__ void EmbeddingKernel(const Word* table, const int64_t* ids, int64_t rows,
                                int64_t row_words, int64_t num_ids, FaultSink faults, Word* y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (i >= num_ids) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t id = ids[i];
  if (id < 0 || id >= rows) {
    if (lane == 0) faults.Record(id, rows);
    return;
  }
  for (int64_t word = lane; word < row_words; word += kWarp) {
    y[i * row_words + word] = table[id * row_words + word];
  }
}

class Embedding : public Kernel {
 public:
  explicit Embedding(const KernelSpec& spec)
      : rows_(spec.call.inputs[0].shape.dim(0)),
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
                  arguments.input<Word>(0), arguments.input<int64_t>(1), rows_,
                  row_bytes_ / static_cast<int64_t>(sizeof(Word)), num_ids_, FaultSinkOf(arguments),
                  arguments.output<Word>(0));
  }

  const int64_t rows_;
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
};

struct EmbeddingGradShape {
  int64_t rows;
  int64_t columns;
  int64_t num_ids;
};

// cursors[v] = number of positions of row v. Sums of integers: their order does not matter.
__global__ void CountKernel(const int64_t* ids, EmbeddingGradShape shape, FaultSink faults,
                            PositionLists lists) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.num_ids) return;
  const int64_t id = ids[i];
  if (id < 0 || id >= shape.rows) {
    faults.Record(id, shape.rows);
  } else {
    atomicAdd(&lists.cursors[id], 1);
  }
}

constexpr int kScanThreads = 1024;

// From counts to the begin of each list, in `begins` and `cursors`. One block.
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

// Every position takes a place in its list.
__global__ void PlaceKernel(const int64_t* ids, EmbeddingGradShape shape, PositionLists lists) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= shape.num_ids) return;
  const int64_t id = ids[i];
  if (id < 0 || id >= shape.rows) return;
  lists.unordered[atomicAdd(&lists.cursors[id], 1)] = static_cast<int32_t>(i);
}

// A position's place in the ordered list is the number of smaller ones.
__global__ void OrderKernel(const int64_t* ids, EmbeddingGradShape shape, PositionLists lists) {
  const int64_t slot = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (slot >= lists.begins[shape.rows]) return;
  const int32_t position = lists.unordered[slot];
  const int64_t id = ids[position];
  const int32_t begin = lists.begins[id];
  int32_t place = begin;
  for (int32_t other = begin; other < lists.begins[id + 1]; ++other) {
    place += lists.unordered[other] < position;
  }
  lists.positions[place] = position;
}

// A warp for each row of the table and 32 packs of columns.
template <int kPack, typename T>
__global__ void SumRowsKernel(const T* dy, EmbeddingGradShape shape, PositionLists lists,
                              T* dtable) {
  const int64_t tiles = (shape.columns + kWarp * kPack - 1) / (kWarp * kPack);
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  const int64_t row = warp / tiles;
  const int64_t column = (warp % tiles * kWarp + threadIdx.x % kWarp) * kPack;
  if (row >= shape.rows || column >= shape.columns) return;
  Floats<kPack> sum;
#pragma unroll
  for (int i = 0; i < kPack; ++i) sum[i] = 0.0f;
  const int32_t end = lists.begins[row + 1];
  for (int32_t at = lists.begins[row]; at < end; ++at) {
    const Floats<kPack> terms =
        LoadFloats<kPack>(dy + lists.positions[at] * shape.columns + column);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum[i] += terms[i];
  }
  StoreFloats(sum, dtable + row * shape.columns + column);
}

// dtable[v, :] = sum of dy[i, :] over the positions i with ids[i] = v, in ascending order and f32.
class EmbeddingGrad : public Kernel {
 public:
  explicit EmbeddingGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_{spec.outputs[0].shape.dim(0), spec.outputs[0].shape.dim(1),
               spec.call.inputs[1].shape.num_elements()} {}

  int64_t workspace_bytes() const override {
    return (2 * shape_.rows + 1 + 2 * shape_.num_ids) * static_cast<int64_t>(sizeof(int32_t));
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const ids = arguments.input<int64_t>(1);
    PositionLists lists;
    lists.begins = static_cast<int32_t*>(arguments.workspace);
    lists.cursors = lists.begins + shape_.rows + 1;
    lists.unordered = lists.cursors + shape_.rows;
    lists.positions = lists.unordered + shape_.num_ids;
    ZG_RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(lists.cursors, 0, shape_.rows * sizeof(int32_t),
                                                  static_cast<cudaStream_t>(arguments.stream)),
                                  "the counters of embedding_grad could not be cleared"));
    const LaunchShape by_position = Threads(shape_.num_ids);
    ZG_RETURN_IF_ERROR(Launch(CountKernel, by_position, arguments.stream, ids, shape_,
                              FaultSinkOf(arguments), lists));
    ZG_RETURN_IF_ERROR(Launch(BeginKernel, {1, kScanThreads}, arguments.stream, shape_, lists));
    ZG_RETURN_IF_ERROR(Launch(PlaceKernel, by_position, arguments.stream, ids, shape_, lists));
    ZG_RETURN_IF_ERROR(Launch(OrderKernel, by_position, arguments.stream, ids, shape_, lists));
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      constexpr int kPack = kPackOf<T>;
      const T* const dy = arguments.input<T>(0);
      T* const dtable = arguments.output<T>(0);
      const bool is_aligned = shape_.columns % kPack == 0 && AreAligned(16, dy, dtable);
      const int64_t tiles = CeilDivide(shape_.columns, kWarp * (is_aligned ? kPack : 1));
      return Launch(is_aligned ? SumRowsKernel<kPack, T> : SumRowsKernel<1, T>,
                    Threads(shape_.rows * tiles * kWarp), arguments.stream, dy, shape_, lists,
                    dtable);
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return IdOutOfRange("embedding_grad", fault);
  }

 private:
  const DType dtype_;
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
