// Attention by blocks of queries: one block's scores against all the keys that it may see fit in
// cache, so no (T, T) matrix reaches memory, and key blocks that the causal mask hides are skipped.
// The backward computes the weights again from log_sum_exp.
// Source: the recomputation of FlashAttention (arXiv 2205.14135), without its tiling of the keys.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/vector_math.h"

namespace zg {
namespace {

constexpr int64_t kBlockQueries = 64;
constexpr int64_t kAlignment = 64;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Calls body(i, count) for every lane block [i, i + count) of `total` elements.
template <typename Body>
ZG_INLINE void ForLanes(int64_t total, Body body) {
  for (int64_t i = 0; i < total; i += kLanes) body(i, std::min<int64_t>(kLanes, total - i));
}

ZG_INLINE Lanes Load(const float* data, int64_t count, float padding) {
  return count == kLanes ? LoadLanes(data) : LoadLanes(data, count, padding);
}

ZG_INLINE void Store(Lanes lanes, float* data, int64_t count) {
  if (count == kLanes) {
    StoreLanes(lanes, data);
  } else {
    StoreLanes(lanes, data, count);
  }
}

// Turns the first `visible` of `keys` scores into softmax weights of scale * score, the others into
// zeros; returns the log of the denominator.
ZG_MULTIVERSION float SoftmaxRow(float* scores, int64_t visible, int64_t keys, float scale) {
  constexpr float kLowest = -3.4e38f;
  Lanes maxima = Lanes{} + kLowest;
  ForLanes(visible, [&](int64_t i, int64_t count) {
    maxima = Maximum(maxima, Load(scores + i, count, kLowest));
  });
  const float maximum = MaximumOfLanes(maxima) * scale;
  Lanes sums{};
  ForLanes(visible, [&](int64_t i, int64_t count) {
    const Lanes weight = Exp(Load(scores + i, count, kLowest) * scale - maximum);
    sums += weight;
    Store(weight, scores + i, count);
  });
  const float sum = SumOfLanes(sums);
  const float inverse = 1.0f / sum;
  ForLanes(visible, [&](int64_t i, int64_t count) {
    Store(Load(scores + i, count, 0.0f) * inverse, scores + i, count);
  });
  std::fill(scores + visible, scores + keys, 0.0f);
  return maximum + std::log(sum);
}

// weights = exp(scale score - log_sum_exp) over the scores, and, over the gradients of the weights,
// those of the scores: weights (dweights - delta) scale. Zeros behind `visible`.
ZG_MULTIVERSION void SoftmaxGradRow(float* scores, float* dweights, int64_t visible, int64_t keys,
                                    float scale, float log_sum_exp, float delta) {
  ForLanes(visible, [&](int64_t i, int64_t count) {
    const Lanes weight = Exp(Load(scores + i, count, 0.0f) * scale - log_sum_exp);
    Store(weight, scores + i, count);
    Store(weight * (Load(dweights + i, count, 0.0f) - delta) * scale, dweights + i, count);
  });
  std::fill(scores + visible, scores + keys, 0.0f);
  std::fill(dweights + visible, dweights + keys, 0.0f);
}

ZG_MULTIVERSION float DotRow(const float* a, const float* b, int64_t total) {
  Lanes sums{};
  ForLanes(total, [&](int64_t i, int64_t count) {
    sums += Load(a + i, count, 0.0f) * Load(b + i, count, 0.0f);
  });
  return SumOfLanes(sums);
}

// target (rows, columns) += source, rows `target_stride` and `columns` apart.
ZG_MULTIVERSION void AddRows(const float* source, int64_t rows, int64_t columns, float* target,
                             int64_t target_stride) {
  for (int64_t row = 0; row < rows; ++row) {
    float* out = target + row * target_stride;
    const float* in = source + row * columns;
    ZG_INDEPENDENT
    for (int64_t i = 0; i < columns; ++i) out[i] += in[i];
  }
}

// B batch, T time, C channels, D channels of one head.
struct AttentionSizes {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t channels = 0;
  int64_t heads = 0;
  int64_t head_channels = 0;
  bool causal = true;

  AttentionSizes(const Shape& qkv, const Attributes& attributes)
      : batch(qkv.dim(0)),
        time(qkv.dim(1)),
        channels(qkv.dim(2) / 3),
        heads(attributes.Int("heads")),
        head_channels(channels / heads),
        causal(attributes.Bool("causal")) {}

  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_channels)); }
  int64_t qkv_stride() const { return 3 * channels; }
};

// Queries [begin, begin + count) and the number of keys that the last of them sees.
struct QueryBlock {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t keys = 0;
};

std::vector<QueryBlock> CutQueries(const AttentionSizes& sizes) {
  std::vector<QueryBlock> blocks;
  for (int64_t begin = 0; begin < sizes.time; begin += kBlockQueries) {
    const int64_t count = std::min(kBlockQueries, sizes.time - begin);
    blocks.push_back({begin, count, sizes.causal ? begin + count : sizes.time});
  }
  return blocks;
}

int64_t LargestWorkspace(const std::vector<Gemm>& gemms) {
  int64_t bytes = 0;
  for (const Gemm& gemm : gemms) bytes = std::max(bytes, gemm.workspace_bytes());
  return RoundUp(bytes, kAlignment);
}

int64_t MatrixBytes(int64_t rows, int64_t columns) {
  return RoundUp(rows * columns * static_cast<int64_t>(sizeof(float)), kAlignment);
}

class Attention : public Kernel {
 public:
  explicit Attention(const KernelSpec& spec)
      : sizes_(spec.call.inputs[0].shape, spec.call.attributes), blocks_(CutQueries(sizes_)) {
    for (const QueryBlock& block : blocks_) {
      scores_.push_back(Gemm({block.count, block.keys, sizes_.head_channels, false, true}));
      mix_.push_back(Gemm({block.count, sizes_.head_channels, block.keys, false, false}));
    }
    gemm_bytes_ = std::max(LargestWorkspace(scores_), LargestWorkspace(mix_));
  }

  // Weights of one block (queries, keys), then the products' scratch.
  int64_t workspace_bytes() const override {
    return MatrixBytes(kBlockQueries, sizes_.time) + gemm_bytes_;
  }

  Status Run(const KernelArguments& arguments) override {
    char* workspace = static_cast<char*>(arguments.workspace);
    float* const weights = reinterpret_cast<float*>(workspace);
    void* const gemm_workspace = workspace + MatrixBytes(kBlockQueries, sizes_.time);
    const int64_t stride = sizes_.qkv_stride();
    for (int64_t b = 0; b < sizes_.batch; ++b) {
      for (int64_t h = 0; h < sizes_.heads; ++h) {
        const int64_t head = h * sizes_.head_channels;
        const float* q = arguments.input<float>(0) + b * sizes_.time * stride + head;
        const float* k = q + sizes_.channels;
        const float* v = k + sizes_.channels;
        float* out = arguments.output<float>(0) + b * sizes_.time * sizes_.channels + head;
        float* log_sum_exp = arguments.output<float>(1) + (b * sizes_.heads + h) * sizes_.time;
        for (size_t i = 0; i < blocks_.size(); ++i) {
          const QueryBlock& block = blocks_[i];
          scores_[i].Run({q + block.begin * stride, stride}, {k, stride}, nullptr, weights,
                         block.keys, gemm_workspace);
          for (int64_t row = 0; row < block.count; ++row) {
            const int64_t visible = sizes_.causal ? block.begin + row + 1 : block.keys;
            log_sum_exp[block.begin + row] =
                SoftmaxRow(weights + row * block.keys, visible, block.keys, sizes_.scale());
          }
          mix_[i].Run({weights, block.keys}, {v, stride}, nullptr,
                      out + block.begin * sizes_.channels, sizes_.channels, gemm_workspace);
        }
      }
    }
    return Status::Ok();
  }

 private:
  const AttentionSizes sizes_;
  const std::vector<QueryBlock> blocks_;
  std::vector<Gemm> scores_;  // q k^T of each block
  std::vector<Gemm> mix_;     // weights v
  int64_t gemm_bytes_ = 0;
};

class AttentionGrad : public Kernel {
 public:
  explicit AttentionGrad(const KernelSpec& spec)
      : sizes_(spec.call.inputs[1].shape, spec.call.attributes), blocks_(CutQueries(sizes_)) {
    const int64_t channels = sizes_.head_channels;
    for (const QueryBlock& block : blocks_) {
      scores_.push_back(Gemm({block.count, block.keys, channels, false, true}));
      dq_.push_back(Gemm({block.count, channels, block.keys, false, false}));
      dkv_.push_back(Gemm({block.keys, channels, block.count, true, false}));
    }
    gemm_bytes_ =
        std::max({LargestWorkspace(scores_), LargestWorkspace(dq_), LargestWorkspace(dkv_)});
  }

  // Weights and their gradients of one block (queries, keys), one block's part of dk or dv
  // (keys, D), then the products' scratch.
  int64_t workspace_bytes() const override {
    return 2 * MatrixBytes(kBlockQueries, sizes_.time) +
           MatrixBytes(sizes_.time, sizes_.head_channels) + gemm_bytes_;
  }

  Status Run(const KernelArguments& arguments) override {
    char* workspace = static_cast<char*>(arguments.workspace);
    const int64_t scores_bytes = MatrixBytes(kBlockQueries, sizes_.time);
    float* const weights = reinterpret_cast<float*>(workspace);
    float* const dweights = reinterpret_cast<float*>(workspace + scores_bytes);
    float* const part = reinterpret_cast<float*>(workspace + 2 * scores_bytes);
    void* const gemm_workspace =
        workspace + 2 * scores_bytes + MatrixBytes(sizes_.time, sizes_.head_channels);
    const int64_t stride = sizes_.qkv_stride();
    const int64_t channels = sizes_.channels;
    const int64_t width = sizes_.head_channels;
    for (int64_t b = 0; b < sizes_.batch; ++b) {
      for (int64_t h = 0; h < sizes_.heads; ++h) {
        const int64_t in_qkv = b * sizes_.time * stride + h * width;
        const int64_t in_out = b * sizes_.time * channels + h * width;
        const float* dout = arguments.input<float>(0) + in_out;
        const float* q = arguments.input<float>(1) + in_qkv;
        const float* k = q + channels;
        const float* v = k + channels;
        const float* out = arguments.input<float>(2) + in_out;
        const float* log_sum_exp = arguments.input<float>(3) + (b * sizes_.heads + h) * sizes_.time;
        float* dq = arguments.output<float>(0) + in_qkv;
        float* dk = dq + channels;
        float* dv = dk + channels;
        for (int64_t t = 0; t < sizes_.time; ++t) {
          std::fill_n(dk + t * stride, width, 0.0f);
          std::fill_n(dv + t * stride, width, 0.0f);
        }
        for (size_t i = 0; i < blocks_.size(); ++i) {
          const QueryBlock& block = blocks_[i];
          const int64_t first = block.begin;
          scores_[i].Run({q + first * stride, stride}, {k, stride}, nullptr, weights, block.keys,
                         gemm_workspace);
          scores_[i].Run({dout + first * channels, channels}, {v, stride}, nullptr, dweights,
                         block.keys, gemm_workspace);
          for (int64_t row = 0; row < block.count; ++row) {
            const int64_t t = first + row;
            SoftmaxGradRow(weights + row * block.keys, dweights + row * block.keys,
                           sizes_.causal ? t + 1 : block.keys, block.keys, sizes_.scale(),
                           log_sum_exp[t], DotRow(dout + t * channels, out + t * channels, width));
          }
          dq_[i].Run({dweights, block.keys}, {k, stride}, nullptr, dq + first * stride, stride,
                     gemm_workspace);
          dkv_[i].Run({dweights, block.keys}, {q + first * stride, stride}, nullptr, part, width,
                      gemm_workspace);
          AddRows(part, block.keys, width, dk, stride);
          dkv_[i].Run({weights, block.keys}, {dout + first * channels, channels}, nullptr, part,
                      width, gemm_workspace);
          AddRows(part, block.keys, width, dv, stride);
        }
      }
    }
    return Status::Ok();
  }

 private:
  const AttentionSizes sizes_;
  const std::vector<QueryBlock> blocks_;
  std::vector<Gemm> scores_;  // q k^T, and dout v^T, of each block
  std::vector<Gemm> dq_;      // dscores k
  std::vector<Gemm> dkv_;     // dscores^T q, and weights^T dout
  int64_t gemm_bytes_ = 0;
};

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Register("attention", MakeKernel<Attention>);
  registry.Register("attention_grad", MakeKernel<AttentionGrad>);
}

}  // namespace zg
