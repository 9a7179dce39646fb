#include "framework/kernels/cpu/attention_options.h"

#include <algorithm>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Lanes [begin, end) of a block of queries.
struct LaneRange {
  int64_t begin;
  int64_t end;
};

// The queries of the block from `begin` on that see a key, ignoring the mask.
LaneRange QueriesThatSee(const AttentionShape& shape, int64_t begin, int64_t key) {
  const int64_t same = key - shape.offset() - begin;  // the lane at the key's position
  LaneRange lanes = {0, shape.block};
  if (shape.causal) lanes.begin = same;
  if (shape.window > 0) {
    lanes.begin = std::max(lanes.begin, same - shape.window + 1);
    lanes.end = std::min(lanes.end, same + shape.window);
  }
  lanes.begin = std::clamp<int64_t>(lanes.begin, 0, shape.block);
  lanes.end = std::clamp<int64_t>(lanes.end, lanes.begin, shape.block);
  return lanes;
}

bool Shows(const AttentionShape& shape, const int64_t* mask, int64_t key) {
  if (mask == nullptr) return true;
  return shape.mask_counts ? key < *mask : mask[key] != 0;
}

// Caps scores, and finds the slopes unless they are null.
void CapRow(float cap, const LaneRange& lanes, float* row, float* slopes) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = lanes.begin; i < lanes.end; ++i) row[i] = CappedScore(row[i], cap);
    if (slopes == nullptr) return;
    ZG_INDEPENDENT
    for (int64_t i = lanes.begin; i < lanes.end; ++i) {
      const float share = row[i] / cap;
      slopes[i] = 1.0f - share * share;
    }
  });
}

template <typename T>
void ScaleRow(const AttentionShape& shape, const T* bias, int64_t begin, const LaneRange& lanes,
              float* row, float* slopes) {
  const float scale = shape.scale;
  const int64_t known = bias == nullptr ? 0 : std::min(lanes.end, shape.num_queries(begin));
  for (int64_t i = 0; i < lanes.begin; ++i) row[i] = kHiddenScore;
  for (int64_t i = lanes.begin; i < lanes.end; ++i) row[i] *= scale;
  if (shape.soft_cap > 0.0f) CapRow(shape.soft_cap, lanes, row, slopes);
  for (int64_t i = lanes.begin; i < known; ++i) {
    row[i] = BiasedScore(row[i], ToF32(bias[(begin + i) * shape.bias_row_stride]));
  }
  for (int64_t i = lanes.end; i < shape.block; ++i) row[i] = kHiddenScore;
}

}  // namespace

float SinkOf(const AttentionShape& shape, const KernelArguments& arguments, int64_t head) {
  if (shape.sinks_input < 0) return kNoSink;
  return WithFloatType(shape.dtype, [&](auto zero) {
    return ToF32(arguments.input<decltype(zero)>(shape.sinks_input)[head]);
  });
}

HeadOptions::HeadOptions(const AttentionShape& shape, const KernelArguments& arguments,
                         int64_t batch, int64_t head) {
  if (shape.mask_input >= 0) {
    mask =
        arguments.input<int64_t>(shape.mask_input) + batch * (shape.mask_counts ? 1 : shape.keys);
  }
  if (shape.bias_input >= 0) {
    const int64_t offset = batch * shape.bias_batch_stride + head * shape.bias_head_stride;
    bias = arguments.input<char>(shape.bias_input) + offset * SizeOf(shape.dtype);
  }
  sink = SinkOf(shape, arguments, head);
  if (shape.dropout > 0.0) {
    const StepContext& step = *arguments.step;
    key = FoldIn(RandomKey{step.seed}, static_cast<uint64_t>(step.step));
    key = FoldIn(key, static_cast<uint64_t>(step.micro_batch));
    key = FoldIn(key, shape.stream);
    const PartedDim heads = shape.parted_heads.At(arguments, shape.part_input);
    first_element = (batch * heads.Total() + heads.IndexOf(head)) * shape.queries * shape.keys;
  }
}

void FindScores(const AttentionShape& shape, const HeadOptions& options, int64_t begin,
                float* products, float* slopes) {
  const int64_t end = shape.end_key(begin);
  const int64_t first = shape.first_key(begin);
  if (shape.soft_cap == 0.0f) slopes = nullptr;
  if (slopes != nullptr) std::fill(slopes + first * shape.block, slopes + end * shape.block, 0.0f);
  for (int64_t key = first; key < end; ++key) {
    LaneRange lanes = QueriesThatSee(shape, begin, key);
    if (!Shows(shape, options.mask, key)) lanes = {0, 0};
    float* const row = products + key * shape.block;
    WithFloatType(shape.dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* const bias = static_cast<const T*>(options.bias);
      ScaleRow(shape, bias == nullptr ? bias : bias + key, begin, lanes, row,
               slopes == nullptr ? nullptr : slopes + key * shape.block);
    });
  }
}

void ScaleBySlopes(const AttentionShape& shape, int64_t begin, const float* slopes,
                   void* dproducts) {
  const int64_t first = shape.first_key(begin) * shape.block;
  const int64_t end = shape.end_key(begin) * shape.block;
  WithFloatType(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* const numbers = static_cast<T*>(dproducts);
    for (int64_t i = first; i < end; ++i) numbers[i] = FromF32<T>(ToF32(numbers[i]) * slopes[i]);
  });
}

void CloseRowsWithoutKeys(const AttentionShape& shape, float* maxima, float* sums) {
  for (int64_t i = 0; i < shape.block; ++i) {
    if (maxima[i] != kHiddenScore) continue;
    maxima[i] = kNoKeysLogSumExp;
    sums[i] = std::numeric_limits<float>::infinity();
  }
}

void DropScores(const AttentionShape& shape, const HeadOptions& options, int64_t begin, DType dtype,
                void* scores, uint32_t* bits) {
  const auto threshold = static_cast<uint32_t>(shape.dropout * 0x1p24);
  const auto scale = static_cast<float>(1.0 / (1.0 - shape.dropout));
  const int64_t first = shape.first_key(begin);
  const int64_t end = shape.end_key(begin);
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < shape.num_queries(begin); ++i) {
      const uint64_t row = options.first_element + (begin + i) * shape.keys;
      FillBits(options.key, row + first, row + end, bits);
      T* const column = static_cast<T*>(scores) + i;
      for (int64_t key = first; key < end; ++key) {
        T& score = column[key * shape.block];
        const bool stays = (bits[key - first] >> 8) >= threshold;
        score = stays ? FromF32<T>(ToF32(score) * scale) : T{};
      }
    }
  });
}

void AddBiasGradient(const AttentionShape& shape, int64_t begin, const float* log_sum_exp,
                     const float* dot, const float* scores, const float* dweights, float* dbias) {
  const int64_t end = shape.end_key(begin);
  for (int64_t i = 0; i < shape.num_queries(begin); ++i) {
    float* const row = dbias + (begin + i) * shape.keys;
    for (int64_t key = shape.first_key(begin); key < end; ++key) {
      const int64_t at = key * shape.block + i;
      row[key] += Exp(scores[at] - log_sum_exp[i]) * (dweights[at] - dot[i]);
    }
  }
}

}  // namespace zg
