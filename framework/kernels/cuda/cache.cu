#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "framework/kernels/attention_call.h"
#include "framework/kernels/cache_call.h"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/math/elementary_math.h"
#include "framework/kernels/math/vector_math.h"

namespace zg::cuda {
namespace {

struct CacheShape {
  int64_t size, new_rows, row_words;
  int64_t start_stride;
  int64_t rows_to_write;  // per text: the new ones, or all of a new cache
  int64_t num_words;      // in all texts
};

// One thread for each written word.
template <typename Word>
__global__ void WriteRowsKernel(const Word* rows, const int64_t* starts, CacheShape shape,
                                FaultSink faults, Word* cache) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= shape.num_words) return;
  const int64_t word = index % shape.row_words;
  const int64_t text = index / shape.row_words / shape.rows_to_write;
  const int64_t start = starts[text * shape.start_stride];
  if (start < 0 || start > shape.size - shape.new_rows) {
    faults.Record(start, shape.size);
    return;
  }
  const bool writes_all = shape.rows_to_write != shape.new_rows;
  const int64_t row = index / shape.row_words % shape.rows_to_write + (writes_all ? 0 : start);
  const int64_t from = row - start;
  Word value = {};
  if (from >= 0 && from < shape.new_rows) {
    value = rows[(text * shape.new_rows + from) * shape.row_words + word];
  }
  cache[(text * shape.size + row) * shape.row_words + word] = value;
}

template <bool kHasCache>
class WriteRows : public Kernel {
 public:
  explicit WriteRows(const KernelSpec& spec)
      : op_(spec.call.op->name),
        call_(spec, kHasCache),
        element_bytes_(SizeOf(spec.outputs[0].dtype)) {}

  Status Run(const KernelArguments& arguments) override {
    const bool is_aligned =
        call_.row_bytes % 16 == 0 &&
        AreAligned(16, arguments.input<char>(call_.rows_input), arguments.output<char>(0));
    if (is_aligned) return RunWords<uint4>(arguments);
    return element_bytes_ == 4 ? RunWords<uint32_t>(arguments) : RunWords<uint16_t>(arguments);
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return StartOutsideCache(op_.c_str(), fault.got, call_.new_rows, call_.size);
  }

 private:
  template <typename Word>
  Status RunWords(const KernelArguments& arguments) const {
    CacheShape shape;
    shape.size = call_.size;
    shape.new_rows = call_.new_rows;
    shape.row_words = call_.row_bytes / static_cast<int64_t>(sizeof(Word));
    shape.start_stride = call_.start_stride;
    shape.rows_to_write = kHasCache ? call_.new_rows : call_.size;
    shape.num_words = call_.batch * shape.rows_to_write * shape.row_words;
    return Launch(WriteRowsKernel<Word>, Threads(shape.num_words), arguments.stream,
                  arguments.input<Word>(call_.rows_input),
                  arguments.input<int64_t>(call_.start_input), shape, FaultSinkOf(arguments),
                  arguments.output<Word>(0));
  }

  const std::string op_;
  const CacheCall call_;
  const int64_t element_bytes_;
};

// One thread for each word of a row, in all texts.
template <typename Word>
__global__ void MoveTextsKernel(const int64_t* parents, const int64_t* starts, MoveTextsCall call,
                                int64_t row_words, FaultSink faults, Word* moved, Word* cache) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t text_words = call.size * row_words;
  if (index >= text_words) return;
  const int64_t row = index / row_words;
  const auto moves = [&](int64_t b) {
    return parents[b] != b && row < starts[b * call.start_stride];
  };
  for (int64_t b = 0; b < call.texts; ++b) {
    if (parents[b] < 0 || parents[b] >= call.texts) {
      faults.Record(parents[b], call.texts);
      return;
    }
    if (moves(b)) moved[b * text_words + index] = cache[parents[b] * text_words + index];
  }
  for (int64_t b = 0; b < call.texts; ++b) {
    if (moves(b)) cache[b * text_words + index] = moved[b * text_words + index];
  }
}

class MoveTexts : public Kernel {
 public:
  explicit MoveTexts(const KernelSpec& spec)
      : call_(spec), element_bytes_(SizeOf(spec.outputs[0].dtype)) {}

  int64_t workspace_bytes() const override { return call_.texts * call_.size * call_.row_bytes; }

  Status Run(const KernelArguments& arguments) override {
    const bool is_aligned = call_.row_bytes % 16 == 0 && AreAligned(16, arguments.output<char>(0));
    if (is_aligned) return RunWords<uint4>(arguments);
    return element_bytes_ == 4 ? RunWords<uint32_t>(arguments) : RunWords<uint16_t>(arguments);
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return NoSuchParent(fault.got, call_.texts);
  }

 private:
  template <typename Word>
  Status RunWords(const KernelArguments& arguments) const {
    const int64_t row_words = call_.row_bytes / static_cast<int64_t>(sizeof(Word));
    return Launch(MoveTextsKernel<Word>, Threads(call_.size * row_words), arguments.stream,
                  arguments.input<int64_t>(1), arguments.input<int64_t>(2), call_, row_words,
                  FaultSinkOf(arguments), static_cast<Word*>(arguments.workspace),
                  arguments.output<Word>(0));
  }

  const MoveTextsCall call_;
  const int64_t element_bytes_;
};

template <bool kHasCache, typename T>
__global__ void ReadRowsKernel(const T* cache, const int64_t* starts, int64_t channels,
                               int64_t start_stride, int64_t num_elements, T* rows) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= num_elements) return;
  const bool is_left = kHasCache && starts[index / channels * start_stride] != 0;
  rows[index] = is_left ? cache[index] : T{};
}

// read_rows, and left_rows, which has no cache.
template <bool kHasCache>
class ReadRows : public Kernel {
 public:
  explicit ReadRows(const KernelSpec& spec)
      : type_(spec.outputs[0]), start_stride_(CacheCall::StartStride(spec.call.inputs[1])) {}

  Status Run(const KernelArguments& arguments) override {
    return SizeOf(type_.dtype) == 4 ? RunWords<uint32_t>(arguments) : RunWords<uint16_t>(arguments);
  }

 private:
  template <typename Word>
  Status RunWords(const KernelArguments& arguments) const {
    const int64_t num_elements = type_.shape.num_elements();
    return Launch(ReadRowsKernel<kHasCache, Word>, Threads(num_elements), arguments.stream,
                  arguments.input<Word>(0), arguments.input<int64_t>(1), type_.shape.dim(2),
                  start_stride_, num_elements, arguments.output<Word>(0));
  }

  const TensorType type_;
  const int64_t start_stride_;
};

__global__ void PositionIdsKernel(const int64_t* start, int64_t size, int64_t num_ids,
                                  int64_t* ids) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index < num_ids) ids[index] = start[index / size] + index % size;
}

class PositionIds : public Kernel {
 public:
  explicit PositionIds(const KernelSpec& spec)
      : size_(spec.outputs[0].shape.dim(1)), num_ids_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    return Launch(PositionIdsKernel, Threads(num_ids_), arguments.stream,
                  arguments.input<int64_t>(0), size_, num_ids_, arguments.output<int64_t>(0));
  }

 private:
  const int64_t size_;
  const int64_t num_ids_;
};

constexpr int kWarps = kThreads / kWarp;
constexpr int kMaxHeadSize = 256;

struct DecodeShape {
  int64_t queries, keys, heads, group, head_size;
  int64_t query_stride, key_stride;  // from one position to the next
  int64_t window;
  int64_t start_stride;
  int64_t bias_batch_stride, bias_head_stride;
  float scale;
  float soft_cap;  // 0: none
};

template <typename T>
struct DecodeArrays {
  const T* q;
  const T* keys;
  const T* values;
  const T* bias;   // null: none
  const T* sinks;  // null: none
  const int64_t* starts;
  T* out;
};

// A block processes a query of a head. Its warps take every kWarps-th key that the query sees, a
// lane the channels lane, lane + 32, ..., and sum weights relative to the largest score so far;
// then the block combines the warps' sums, in order.
template <int kPerLane, typename T>
__global__ void CachedAttentionKernel(DecodeArrays<T> arrays, DecodeShape shape, FaultSink faults) {
  __shared__ float largest_of[kWarps];
  __shared__ float sum_of[kWarps];
  __shared__ float values_of[kWarps][kPerLane * kWarp];
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int64_t head = blockIdx.x % shape.heads;
  const int64_t query = blockIdx.x / shape.heads;  // over all texts
  const int64_t text = query / shape.queries;
  const int64_t start = arrays.starts[text * shape.start_stride];
  if (start < 0 || start > shape.keys - shape.queries) {
    if (threadIdx.x == 0) faults.Record(start, shape.keys);
    return;
  }
  const int64_t position = start + query % shape.queries;
  const int64_t first =
      shape.window > 0 && position >= shape.window ? position - shape.window + 1 : 0;
  const int64_t of_query = query * shape.query_stride + head * shape.head_size;
  const int64_t of_keys =
      text * shape.keys * shape.key_stride + head / shape.group * shape.head_size;
  const T* const bias = arrays.bias == nullptr ? nullptr
                                               : arrays.bias + text * shape.bias_batch_stride +
                                                     head * shape.bias_head_stride +
                                                     query % shape.queries * shape.keys;
  float q[kPerLane];
  float sums[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int channel = i * kWarp + lane;
    q[i] = channel < shape.head_size ? Widen(arrays.q[of_query + channel]) : 0.0f;
    sums[i] = 0.0f;
  }
  const bool has_sink = arrays.sinks != nullptr && warp == 0;
  float largest = has_sink ? Widen(arrays.sinks[head]) : kHiddenScore;
  float sum = has_sink ? 1.0f : 0.0f;
  for (int64_t key = first + warp; key <= position; key += kWarps) {
    const int64_t at = of_keys + key * shape.key_stride;
    float product = 0.0f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int channel = i * kWarp + lane;
      if (channel < shape.head_size)
        product = fmaf(q[i], Widen(arrays.keys[at + channel]), product);
    }
    float score = WarpSum(product) * shape.scale;
    if (shape.soft_cap > 0.0f) score = shape.soft_cap * elementwise::Tanh(score / shape.soft_cap);
    if (bias != nullptr) {
      score += Widen(bias[key]);
      if (score <= kHiddenScore) continue;
    }
    const float larger = score > largest ? score : largest;
    const float factor = largest == kHiddenScore ? 0.0f : Exp(largest - larger);
    const float weight = Exp(score - larger);
    largest = larger;
    sum = fmaf(sum, factor, weight);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int channel = i * kWarp + lane;
      if (channel >= shape.head_size) continue;
      sums[i] = fmaf(weight, Widen(arrays.values[at + channel]), sums[i] * factor);
    }
  }
  if (lane == 0) {
    largest_of[warp] = largest;
    sum_of[warp] = sum;
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) values_of[warp][i * kWarp + lane] = sums[i];
  __syncthreads();
  if (threadIdx.x >= shape.head_size) return;
  float most = largest_of[0];
  for (int other = 1; other < kWarps; ++other) {
    most = largest_of[other] > most ? largest_of[other] : most;
  }
  float whole_sum = 0.0f;
  float whole = 0.0f;
  for (int other = 0; other < kWarps; ++other) {
    if (largest_of[other] == kHiddenScore) continue;  // it had no key
    const float factor = Exp(largest_of[other] - most);
    whole_sum = fmaf(sum_of[other], factor, whole_sum);
    whole = fmaf(values_of[other][threadIdx.x], factor, whole);
  }
  arrays.out[of_query + threadIdx.x] = Round<T>(whole_sum == 0.0f ? 0.0f : whole / whole_sum);
}

class CachedAttention : public Kernel {
 public:
  explicit CachedAttention(const KernelSpec& spec)
      : call_(LikeAttention(spec.call), /*is_gradient=*/false),
        start_input_(static_cast<int>(spec.call.inputs.size()) - 1),
        start_stride_(CacheCall::StartStride(spec.call.inputs.back())) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      if (call_.head_size <= 32) return RunHeads<1, T>(arguments);
      if (call_.head_size <= 64) return RunHeads<2, T>(arguments);
      if (call_.head_size <= 128) return RunHeads<4, T>(arguments);
      return RunHeads<8, T>(arguments);
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return StartOutsideCache("cached_attention", fault.got, call_.queries, call_.keys);
  }

 private:
  template <int kPerLane, typename T>
  Status RunHeads(const KernelArguments& arguments) const {
    const DecodeShape shape = {call_.queries,
                               call_.keys,
                               call_.heads,
                               call_.group(),
                               call_.head_size,
                               call_.q.stride,
                               call_.k.stride,
                               call_.window,
                               start_stride_,
                               call_.bias_batch_stride,
                               call_.bias_head_stride,
                               call_.scale,
                               call_.soft_cap};
    const DecodeArrays<T> arrays = {
        arguments.input<T>(0),
        arguments.input<T>(1),
        arguments.input<T>(2),
        call_.bias_input < 0 ? nullptr : arguments.input<T>(call_.bias_input),
        call_.sinks_input < 0 ? nullptr : arguments.input<T>(call_.sinks_input),
        arguments.input<int64_t>(start_input_),
        arguments.output<T>(0)};
    const int64_t blocks = call_.batch * call_.queries * call_.heads;
    return Launch(CachedAttentionKernel<kPerLane, T>, {dim3(static_cast<unsigned>(blocks))},
                  arguments.stream, arrays, shape, FaultSinkOf(arguments));
  }

  const AttentionCall call_;
  const int start_input_;
  const int64_t start_stride_;
};

StatusOr<std::unique_ptr<Kernel>> MakeCachedAttention(const KernelSpec& spec) {
  const AttentionCall call(LikeAttention(spec.call), /*is_gradient=*/false);
  if (call.head_size > kMaxHeadSize) {
    return InvalidArgument(
        "cached_attention: heads have {} channels, the CUDA kernel takes up to {}", call.head_size,
        kMaxHeadSize);
  }
  return MakeKernel<CachedAttention>(spec);
}

}  // namespace

void RegisterCacheKernels(KernelRegistry& registry) {
  registry.Register("cached_rows", MakeKernel<WriteRows</*kHasCache=*/false>>);
  registry.Register("keep_rows", MakeKernel<WriteRows</*kHasCache=*/false>>);
  registry.Register("write_rows", MakeKernel<WriteRows</*kHasCache=*/true>>);
  registry.Register("move_texts", MakeKernel<MoveTexts>);
  registry.Register("left_rows", MakeKernel<ReadRows</*kHasCache=*/false>>);
  registry.Register("read_rows", MakeKernel<ReadRows</*kHasCache=*/true>>);
  registry.Register("position_ids", MakeKernel<PositionIds>);
  registry.Register("cached_attention", MakeCachedAttention);
}

}  // namespace zg::cuda
