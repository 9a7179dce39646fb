#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/vector_math.h"

// One head at a time, a block of queries at a time, as in FlashAttention (Dao et al., arXiv
// 2205.14135), but with all keys of a block of queries at once: their scores need keys x 48 floats.
// Scores are kept transposed, a row per key and a lane per query, so that a softmax runs down the
// rows without sums across lanes. What causality masks is skipped, in tiles of 8 keys x 16 queries.

namespace zg {
namespace {

constexpr int64_t kQueries = kMaxPanelWidth;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

struct AttentionShape {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t channels = 0;
  int64_t heads = 0;
  int64_t head_size = 0;
  bool causal = false;
  float scale = 0.0f;
  DType dtype = DType::kF32;

  AttentionShape(const TensorType& qkv, const Attributes& attributes)
      : batch(qkv.shape.dim(0)),
        time(qkv.shape.dim(1)),
        channels(qkv.shape.dim(2) / 3),
        heads(attributes.Int("heads")),
        head_size(channels / heads),
        causal(attributes.Bool("causal")),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)))),
        dtype(qkv.dtype) {}

  bool is_half() const { return dtype != DType::kF32; }
  // How one head lies where the arithmetic finds it: in 16 bits it is widened into the workspace,
  // alone. Rows of q, of which k and v lie `part` and 2 `part` elements further, and of the output.
  int64_t qkv_stride() const { return is_half() ? 3 * head_size : 3 * channels; }
  int64_t part() const { return is_half() ? head_size : channels; }
  int64_t out_stride() const { return is_half() ? head_size : channels; }
  // Elements of a widened head.
  int64_t wide_qkv_size() const { return is_half() ? 3 * time * head_size : 0; }
  int64_t wide_out_size() const { return is_half() ? time * head_size : 0; }
  // Elements of the packed layouts of gemm_pack.h.
  int64_t pieces_size() const { return RoundUp(time, kTileRows) * head_size; }  // (time, head_size)
  int64_t panels_size() const { return time * RoundUp(head_size, kPanelUnit); }
  int64_t scores_size() const { return RoundUp(time, kTileRows) * kQueries; }
};

// Hands out parts of the workspace, each aligned to a cache line.
class Carver {
 public:
  explicit Carver(void* workspace) : next_(static_cast<float*>(workspace)) {}
  float* Take(int64_t elements) {
    float* const part = next_;
    next_ += RoundUp(elements, kLanes);
    return part;
  }

 private:
  float* next_;
};

// One head of `parts` tensors side by side (3 for qkv, 1 for an output) that lie in rows of
// parts * channels 16-bit elements, from or to rows of parts * head_size in f32.
struct HeadCopy {
  int64_t parts;
  int64_t batch;
  int64_t head;

  // Calls copy(offset of a run in the tensor, offset of the run in the widened head).
  template <typename Copy>
  void ForEachRun(const AttentionShape& shape, const Copy& copy) const {
    for (int64_t t = 0; t < shape.time; ++t) {
      const int64_t row = (batch * shape.time + t) * parts * shape.channels;
      for (int64_t part = 0; part < parts; ++part) {
        copy(row + part * shape.channels + head * shape.head_size,
             (t * parts + part) * shape.head_size);
      }
    }
  }
  void Widen(const AttentionShape& shape, const void* tensor, float* wide) const {
    ForEachRun(shape, [&](int64_t from, int64_t to) {
      ConvertFloats(shape.dtype, static_cast<const char*>(tensor) + from * SizeOf(shape.dtype),
                    DType::kF32, wide + to, shape.head_size);
    });
  }
  void Round(const AttentionShape& shape, const float* wide, void* tensor) const {
    ForEachRun(shape, [&](int64_t to, int64_t from) {
      ConvertFloats(DType::kF32, wide + from, shape.dtype,
                    static_cast<char*>(tensor) + to * SizeOf(shape.dtype), shape.head_size);
    });
  }
};

// A block of queries [begin, begin + count) and the keys [0, keys) that they see.
struct QueryBlock {
  int64_t begin;
  int64_t count;
  int64_t keys;
  bool causal;

  QueryBlock(const AttentionShape& shape, int64_t first)
      : begin(first),
        count(std::min(kQueries, shape.time - first)),
        keys(shape.causal ? first + count : shape.time),
        causal(shape.causal) {}
};

// products[key][query] = sum over the head's channels of keys x queries, for the tiles of which
// causality leaves something. `keys` are packed pieces, `queries` one packed panel.
void MultiplyKeysByQueries(const AttentionShape& shape, const QueryBlock& block, const float* keys,
                           const float* queries, float* products) {
  const int64_t width = PanelWidth(block.count);
  GemmTile tile;
  tile.a_stride = kTileRows;
  tile.b_stride = width;
  tile.c_stride = kQueries;
  tile.depth = shape.head_size;
  for (int64_t key = 0; key < block.keys; key += kTileRows) {
    // The queries before the first of these keys do not see any of them.
    const int64_t first =
        shape.causal ? std::max<int64_t>(0, key - block.begin) / kPanelUnit * kPanelUnit : 0;
    tile.a = keys + key * shape.head_size;
    tile.b = queries + first;
    tile.c = products + key * kQueries + first;
    tile.columns = width - first;
    ComputeTile(ALayout::kColumns, tile, std::min(kTileRows, block.keys - key), tile.columns);
  }
}

// out (rows x head_size) = weights x values: row i is a query or key, k runs over keys or queries.
struct WeightedSum {
  ALayout layout;        // of the weights
  const float* weights;  // stride kQueries
  const float* values;   // packed panels of `values_depth` rows
  int64_t values_depth;
  int64_t values_begin;  // the first of their rows that counts
  int64_t depth;         // number of rows that count
  float* out;
  int64_t out_stride;
  bool continues;
};

void ComputeWeightedSum(const WeightedSum& sum, int64_t rows, int64_t head_size) {
  GemmTile tile;
  tile.a = sum.weights;
  tile.a_stride = kQueries;
  tile.c_stride = sum.out_stride;
  tile.depth = sum.depth;
  tile.continues = sum.continues;
  for (int64_t j = 0, width; j < head_size; j += width) {
    width = PanelWidth(head_size - j);
    tile.b = sum.values + j * sum.values_depth + sum.values_begin * width;
    tile.b_stride = width;
    tile.c = sum.out + j;
    tile.columns = std::min(width, head_size - j);
    ComputeTile(sum.layout, tile, rows, width);
  }
}

// Writes `value` wherever a query does not see a key.
void MaskHidden(const QueryBlock& block, float value, float* scores) {
  if (!block.causal) return;
  for (int64_t key = block.begin; key < block.keys; ++key) {
    std::fill_n(scores + key * kQueries, key - block.begin, value);
  }
}

// From products to weights e^(scale * product - maximum); writes the sum of each query's weights,
// and the logarithm of the sum before the maximum was taken out.
ZG_MULTIVERSION void SoftmaxDown(float* scores, int64_t keys, int64_t queries, float scale,
                                 float* sums, float* log_sum_exp) {
  float maxima[kQueries];
  std::fill_n(maxima, kQueries, -std::numeric_limits<float>::infinity());
  for (int64_t key = 0; key < keys; ++key) {
    const float* const row = scores + key * kQueries;
    ZG_INDEPENDENT
    for (int64_t query = 0; query < kQueries; ++query) {
      const float score = row[query] * scale;
      const float maximum = maxima[query];
      maxima[query] = maximum > score ? maximum : score;
    }
  }
  std::fill_n(sums, kQueries, 0.0f);
  for (int64_t key = 0; key < keys; ++key) {
    float* const row = scores + key * kQueries;
    ZG_INDEPENDENT
    for (int64_t query = 0; query < kQueries; ++query) {
      const float weight = Exp(row[query] * scale - maxima[query]);
      sums[query] += weight;
      row[query] = weight;
    }
  }
  ZG_INDEPENDENT
  for (int64_t query = 0; query < queries; ++query) {
    log_sum_exp[query] = maxima[query] + Log(sums[query]);
  }
}

ZG_MULTIVERSION void DivideRow(float* row, int64_t count, float divisor) {
  const float factor = 1.0f / divisor;
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) row[i] *= factor;
}

class Attention : public Kernel {
 public:
  explicit Attention(const KernelSpec& spec) : shape_(spec.call.inputs[0], spec.call.attributes) {}

  int64_t workspace_bytes() const override {
    const int64_t elements =
        RoundUp(shape_.pieces_size(), kLanes) + RoundUp(shape_.panels_size(), kLanes) +
        RoundUp(shape_.head_size * kQueries, kLanes) + shape_.scores_size() + kQueries +
        RoundUp(shape_.wide_qkv_size(), kLanes) + RoundUp(shape_.wide_out_size(), kLanes);
    return elements * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    float* const log_sum_exp = arguments.output<float>(1);
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t h = 0; h < shape_.heads; ++h) {
        Carver carver(arguments.workspace);
        float* const head_log_sum_exp = log_sum_exp + (b * shape_.heads + h) * shape_.time;
        if (shape_.is_half()) {
          float* const qkv = carver.Take(shape_.wide_qkv_size());
          float* const out = carver.Take(shape_.wide_out_size());
          HeadCopy{3, b, h}.Widen(shape_, arguments.inputs[0], qkv);
          RunHead(qkv, carver, out, head_log_sum_exp);
          HeadCopy{1, b, h}.Round(shape_, out, arguments.outputs[0]);
        } else {
          const int64_t row = b * shape_.time;
          const int64_t channel = h * shape_.head_size;
          RunHead(arguments.input<float>(0) + row * shape_.qkv_stride() + channel, carver,
                  arguments.output<float>(0) + row * shape_.out_stride() + channel,
                  head_log_sum_exp);
        }
      }
    }
    return Status::Ok();
  }

 private:
  void RunHead(const float* q, Carver carver, float* out, float* log_sum_exp) const {
    const int64_t stride = shape_.qkv_stride();
    const int64_t out_stride = shape_.out_stride();
    const int64_t size = shape_.head_size;
    float* const keys = carver.Take(shape_.pieces_size());
    float* const values = carver.Take(shape_.panels_size());
    float* const queries = carver.Take(size * kQueries);
    float* const scores = carver.Take(shape_.scores_size());
    float* const sums = carver.Take(kQueries);
    PackPieces(q + shape_.part(), stride, size, shape_.time, keys);
    PackPanels(q + 2 * shape_.part(), stride, shape_.time, size, values);
    for (int64_t begin = 0; begin < shape_.time; begin += kQueries) {
      const QueryBlock block(shape_, begin);
      PackTransposedPanels(q + begin * stride, stride, size, block.count, queries);
      MultiplyKeysByQueries(shape_, block, keys, queries, scores);
      MaskHidden(block, -std::numeric_limits<float>::infinity(), scores);
      SoftmaxDown(scores, block.keys, block.count, shape_.scale, sums, log_sum_exp + begin);
      for (int64_t i = 0; i < block.count; i += kTileRows) {
        const int64_t rows = std::min(kTileRows, block.count - i);
        const int64_t keys_seen = shape_.causal ? begin + i + rows : shape_.time;
        float* const rows_out = out + (begin + i) * out_stride;
        ComputeWeightedSum({ALayout::kColumns, scores + i, values, shape_.time, 0, keys_seen,
                            rows_out, out_stride, false},
                           rows, size);
        for (int64_t row = 0; row < rows; ++row) {
          DivideRow(rows_out + row * out_stride, size, sums[i + row]);
        }
      }
    }
  }

  const AttentionShape shape_;
};

// From products to weights and their gradients. With s = scale q k, w = e^(s - log_sum_exp):
// dproduct = w (dweight - sum over keys of w dweight) scale; that sum is dout . out.
ZG_MULTIVERSION void SoftmaxGradDown(float* scores, float* dscores, int64_t keys, float scale,
                                     const float* log_sum_exp, const float* dot) {
  for (int64_t key = 0; key < keys; ++key) {
    float* const score = scores + key * kQueries;
    float* const dscore = dscores + key * kQueries;
    ZG_INDEPENDENT
    for (int64_t query = 0; query < kQueries; ++query) {
      const float weight = Exp(score[query] * scale - log_sum_exp[query]);
      score[query] = weight;
      dscore[query] = weight * (dscore[query] - dot[query]) * scale;
    }
  }
}

ZG_MULTIVERSION float Dot(const float* a, const float* b, int64_t count) {
  return SumTerms(
      count, [=](const auto& load)
                 __attribute__((always_inline)) { return load(a, 0.0f) * load(b, 0.0f); });
}

class AttentionGrad : public Kernel {
 public:
  explicit AttentionGrad(const KernelSpec& spec)
      : shape_(spec.call.inputs[1], spec.call.attributes) {}

  int64_t workspace_bytes() const override {
    const int64_t per_block = RoundUp(shape_.head_size * kQueries, kLanes);
    const int64_t per_block_panels =
        RoundUp(kQueries * RoundUp(shape_.head_size, kPanelUnit), kLanes);
    const int64_t elements =
        2 * RoundUp(shape_.pieces_size(), kLanes) + RoundUp(shape_.panels_size(), kLanes) +
        2 * per_block + 2 * per_block_panels + 2 * shape_.scores_size() + 2 * kQueries +
        2 * RoundUp(shape_.wide_qkv_size(), kLanes) + 2 * RoundUp(shape_.wide_out_size(), kLanes);
    return elements * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t h = 0; h < shape_.heads; ++h) {
        Carver carver(arguments.workspace);
        const float* const log_sum_exp =
            arguments.input<float>(3) + (b * shape_.heads + h) * shape_.time;
        if (shape_.is_half()) {
          float* const dout = carver.Take(shape_.wide_out_size());
          float* const qkv = carver.Take(shape_.wide_qkv_size());
          float* const out = carver.Take(shape_.wide_out_size());
          float* const dqkv = carver.Take(shape_.wide_qkv_size());
          HeadCopy{1, b, h}.Widen(shape_, arguments.inputs[0], dout);
          HeadCopy{3, b, h}.Widen(shape_, arguments.inputs[1], qkv);
          HeadCopy{1, b, h}.Widen(shape_, arguments.inputs[2], out);
          RunHead({dout, qkv, out, log_sum_exp, dqkv}, carver);
          HeadCopy{3, b, h}.Round(shape_, dqkv, arguments.outputs[0]);
        } else {
          const int64_t channel = h * shape_.head_size;
          const int64_t row = b * shape_.time;
          RunHead({arguments.input<float>(0) + row * shape_.out_stride() + channel,
                   arguments.input<float>(1) + row * shape_.qkv_stride() + channel,
                   arguments.input<float>(2) + row * shape_.out_stride() + channel, log_sum_exp,
                   arguments.output<float>(0) + row * shape_.qkv_stride() + channel},
                  carver);
        }
      }
    }
    return Status::Ok();
  }

 private:
  struct Head {
    const float* dout;
    const float* q;  // k and v lie `part` and 2 * `part` further
    const float* out;
    const float* log_sum_exp;
    float* dq;  // likewise
  };

  void RunHead(const Head& head, Carver carver) const {
    const int64_t stride = shape_.qkv_stride();
    const int64_t part = shape_.part();
    const int64_t out_stride = shape_.out_stride();
    const int64_t size = shape_.head_size;
    float* const keys = carver.Take(shape_.pieces_size());
    float* const values = carver.Take(shape_.pieces_size());
    float* const key_panels = carver.Take(shape_.panels_size());
    float* const queries = carver.Take(size * kQueries);
    float* const dout = carver.Take(size * kQueries);
    float* const query_panels = carver.Take(kQueries * RoundUp(size, kPanelUnit));
    float* const dout_panels = carver.Take(kQueries * RoundUp(size, kPanelUnit));
    float* const weights = carver.Take(shape_.scores_size());
    float* const dscores = carver.Take(shape_.scores_size());
    float* const dot = carver.Take(kQueries);
    float* const log_sum_exp = carver.Take(kQueries);
    PackPieces(head.q + part, stride, size, shape_.time, keys);
    PackPieces(head.q + 2 * part, stride, size, shape_.time, values);
    PackPanels(head.q + part, stride, shape_.time, size, key_panels);
    for (int64_t begin = 0; begin < shape_.time; begin += kQueries) {
      const QueryBlock block(shape_, begin);
      const float* const block_dout = head.dout + begin * out_stride;
      PackTransposedPanels(head.q + begin * stride, stride, size, block.count, queries);
      PackTransposedPanels(block_dout, out_stride, size, block.count, dout);
      PackPanels(head.q + begin * stride, stride, block.count, size, query_panels);
      PackPanels(block_dout, out_stride, block.count, size, dout_panels);
      std::fill_n(dot, kQueries, 0.0f);
      std::fill_n(log_sum_exp, kQueries, 0.0f);
      std::copy_n(head.log_sum_exp + begin, block.count, log_sum_exp);
      for (int64_t i = 0; i < block.count; ++i) {
        dot[i] = Dot(block_dout + i * out_stride, head.out + (begin + i) * out_stride, size);
      }
      MultiplyKeysByQueries(shape_, block, keys, queries, weights);
      MultiplyKeysByQueries(shape_, block, values, dout, dscores);
      MaskHidden(block, -std::numeric_limits<float>::infinity(), weights);
      MaskHidden(block, 0.0f, dscores);
      SoftmaxGradDown(weights, dscores, block.keys, shape_.scale, log_sum_exp, dot);

      for (int64_t i = 0; i < block.count; i += kTileRows) {
        const int64_t rows = std::min(kTileRows, block.count - i);
        const int64_t keys_seen = shape_.causal ? begin + i + rows : shape_.time;
        ComputeWeightedSum({ALayout::kColumns, dscores + i, key_panels, shape_.time, 0, keys_seen,
                            head.dq + (begin + i) * stride, stride, false},
                           rows, size);
      }
      for (int64_t key = 0; key < block.keys; key += kTileRows) {
        const int64_t rows = std::min(kTileRows, block.keys - key);
        // The first queries of the block that see any of these keys, and the first block at all.
        const int64_t first = shape_.causal ? std::max<int64_t>(0, key - begin) : 0;
        const bool continues = shape_.causal ? key < begin : begin > 0;
        const int64_t depth = block.count - first;
        float* const dk = head.dq + key * stride + part;
        ComputeWeightedSum({ALayout::kRows, dscores + key * kQueries + first, query_panels,
                            block.count, first, depth, dk, stride, continues},
                           rows, size);
        ComputeWeightedSum({ALayout::kRows, weights + key * kQueries + first, dout_panels,
                            block.count, first, depth, dk + part, stride, continues},
                           rows, size);
      }
    }
  }

  const AttentionShape shape_;
};

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Register("attention", MakeKernel<Attention>);
  registry.Register("attention_grad", MakeKernel<AttentionGrad>);
}

}  // namespace zg
