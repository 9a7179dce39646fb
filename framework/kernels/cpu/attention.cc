#include "framework/kernels/cpu/attention.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/attention_rows.h"
#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/vector_math.h"

// One head at a time, a block of queries at a time, as in FlashAttention (Dao et al., arXiv
// 2205.14135), but with all keys that the block sees at once.

namespace zg {
namespace {

// Takes parts of the workspace, each aligned to a cache line; of none, finds how large it must be.
class Carver {
 public:
  explicit Carver(void* workspace) : workspace_(static_cast<float*>(workspace)) {}
  float* Take(int64_t floats) {
    float* const part = workspace_ == nullptr ? nullptr : workspace_ + used_;
    used_ += RoundUp(floats, kLineFloats);
    return part;
  }
  // Where scores go in the operands' dtype: in f32 they stay.
  float* TakeRounded(const AttentionShape& shape, float* scores) {
    return shape.dtype == DType::kF32 ? scores : Take(shape.scores_size() / 2);
  }
  int64_t bytes() const { return used_ * static_cast<int64_t>(sizeof(float)); }

 private:
  float* workspace_;
  int64_t used_ = 0;
};

// The logarithm of the sum before the maximum was taken out.
void LogSumExp(const float* maxima, const float* sums, int64_t count, float* out) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) out[i] = maxima[i] + Log(sums[i]);
  });
}

class Attention : public Kernel {
 public:
  Attention(const KernelSpec& spec, const GemmMethod& method)
      : shape_(spec.call.inputs[0], spec.call.attributes, method) {}

  int64_t workspace_bytes() const override {
    Carver carver(nullptr);
    const Scratch scratch(shape_, carver);
    return carver.bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    const GemmScope scope(*shape_.method);
    Carver carver(arguments.workspace);
    const Scratch scratch(shape_, carver);
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t h = 0; h < shape_.heads; ++h) {
        const void* const qkv = arguments.inputs[0];
        RunHead({shape_, qkv, 3, 0, b, h}, {shape_, qkv, 3, 1, b, h}, {shape_, qkv, 3, 2, b, h},
                scratch, {shape_, arguments.outputs[0], 1, 0, b, h},
                arguments.output<float>(1) + (b * shape_.heads + h) * shape_.time);
      }
    }
    return Status::Ok();
  }

 private:
  struct Scratch {
    float* keys;  // of all blocks, as values
    float* values;
    float* queries;
    float* scores;
    float* weights;  // in 16 bits rounded, else in the scores' place
    float* packed_weights;
    float* sums;
    float* maxima;  // of queries, as weight_sums
    float* weight_sums;

    Scratch(const AttentionShape& shape, Carver& carver)
        : keys(carver.Take(shape.num_blocks() * shape.rows_size())),
          values(carver.Take(shape.num_blocks() * shape.terms_size())),
          queries(carver.Take(shape.columns_size())),
          scores(carver.Take(shape.scores_size())),
          weights(carver.TakeRounded(shape, scores)),
          packed_weights(carver.Take(shape.weights_size())),
          sums(carver.Take(shape.sums_size())),
          maxima(carver.Take(shape.block)),
          weight_sums(carver.Take(shape.block)) {}
  };

  void RunHead(const HeadInput& q, const HeadInput& k, const HeadInput& v, const Scratch& scratch,
               const HeadOutput& out, float* log_sum_exp) const {
    for (int64_t i = 0; i < shape_.num_blocks(); ++i) {
      PackRows(shape_, k, i * shape_.block, scratch.keys + i * shape_.rows_size());
      PackTerms(shape_, v, i * shape_.block, scratch.values + i * shape_.terms_size());
    }
    for (int64_t begin = 0; begin < shape_.time; begin += shape_.block) {
      const int64_t keys = shape_.keys_seen(begin);
      const int64_t queries = shape_.block_size(begin);
      PackColumns(shape_, q, begin, scratch.queries);
      MultiplyKeys(shape_, begin, scratch.keys, scratch.queries, scratch.scores);
      SoftmaxDown(shape_, begin, scratch.scores, scratch.weights, scratch.maxima,
                  scratch.weight_sums);
      LogSumExp(scratch.maxima, scratch.weight_sums, queries, log_sum_exp + begin);
      const ScoreOperand weights(shape_, begin, scratch.weights, scratch.packed_weights);
      const HeadSums sums(shape_, out, begin, scratch.sums);
      for (int64_t i = 0; i * shape_.block < keys; ++i) {
        weights.SumOverKeys(i * shape_.block, scratch.values + i * shape_.terms_size(), i > 0,
                            sums);
      }
      WriteRows(shape_, sums, scratch.weight_sums, begin, out);
    }
  }

  const AttentionShape shape_;
};

class AttentionGrad : public Kernel {
 public:
  AttentionGrad(const KernelSpec& spec, const GemmMethod& method)
      : shape_(spec.call.inputs[1], spec.call.attributes, method) {}

  int64_t workspace_bytes() const override {
    Carver carver(nullptr);
    const Scratch scratch(shape_, carver);
    return carver.bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    const GemmScope scope(*shape_.method);
    Carver carver(arguments.workspace);
    const Scratch scratch(shape_, carver);
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t h = 0; h < shape_.heads; ++h) {
        const void* const qkv = arguments.inputs[1];
        void* const dqkv = arguments.outputs[0];
        RunHead({{shape_, arguments.inputs[0], 1, 0, b, h},
                 {shape_, qkv, 3, 0, b, h},
                 {shape_, qkv, 3, 1, b, h},
                 {shape_, qkv, 3, 2, b, h},
                 {shape_, arguments.inputs[2], 1, 0, b, h},
                 arguments.input<float>(3) + (b * shape_.heads + h) * shape_.time,
                 {shape_, dqkv, 3, 0, b, h},
                 {shape_, dqkv, 3, 1, b, h},
                 {shape_, dqkv, 3, 2, b, h}},
                scratch);
      }
    }
    return Status::Ok();
  }

 private:
  struct Head {
    HeadInput dout, q, k, v, out;
    const float* log_sum_exp;
    HeadOutput dq, dk, dv;
  };

  struct Scratch {
    float* keys;  // of all blocks, as values, key_terms and the gradients' sums
    float* values;
    float* key_terms;
    float* queries;
    float* douts;
    float* query_terms;
    float* dout_terms;
    float* scores;
    float* dscores;
    float* weights;  // in 16 bits rounded, else in the scores' place; so are dproducts
    float* dproducts;
    float* packed_weights;
    float* dq;
    float* dk;
    float* dv;
    float* dot;  // of queries, as log_sum_exp
    float* log_sum_exp;

    Scratch(const AttentionShape& shape, Carver& carver)
        : keys(carver.Take(shape.num_blocks() * shape.rows_size())),
          values(carver.Take(shape.num_blocks() * shape.rows_size())),
          key_terms(carver.Take(shape.num_blocks() * shape.terms_size())),
          queries(carver.Take(shape.columns_size())),
          douts(carver.Take(shape.columns_size())),
          query_terms(carver.Take(shape.terms_size())),
          dout_terms(carver.Take(shape.terms_size())),
          scores(carver.Take(shape.scores_size())),
          dscores(carver.Take(shape.scores_size())),
          weights(carver.TakeRounded(shape, scores)),
          dproducts(carver.TakeRounded(shape, dscores)),
          packed_weights(carver.Take(shape.weights_size())),
          dq(carver.Take(shape.sums_size())),
          dk(carver.Take(shape.num_blocks() * shape.sums_size())),
          dv(carver.Take(shape.num_blocks() * shape.sums_size())),
          dot(carver.Take(shape.block)),
          log_sum_exp(carver.Take(shape.block)) {}
  };

  HeadSums KeySums(const Head& head, int64_t begin, const Scratch& scratch) const {
    return {shape_, head.dk, begin, scratch.dk + begin * shape_.sum_stride()};
  }
  HeadSums ValueSums(const Head& head, int64_t begin, const Scratch& scratch) const {
    return {shape_, head.dv, begin, scratch.dv + begin * shape_.sum_stride()};
  }

  // dout . out of the queries of a block, and their log_sum_exp; zeros in the lanes behind them.
  void ReduceQueries(const Head& head, int64_t begin, const Scratch& scratch) const {
    std::fill_n(scratch.dot, shape_.block, 0.0f);
    std::fill_n(scratch.log_sum_exp, shape_.block, 0.0f);
    const int64_t queries = shape_.block_size(begin);
    std::copy_n(head.log_sum_exp + begin, queries, scratch.log_sum_exp);
    DotRows(shape_, head.dout, head.out, begin, scratch.dot);
  }

  void RunHead(const Head& head, const Scratch& scratch) const {
    const int64_t block = shape_.block;
    for (int64_t i = 0; i < shape_.num_blocks(); ++i) {
      PackRows(shape_, head.k, i * block, scratch.keys + i * shape_.rows_size());
      PackRows(shape_, head.v, i * block, scratch.values + i * shape_.rows_size());
      PackTerms(shape_, head.k, i * block, scratch.key_terms + i * shape_.terms_size());
    }
    for (int64_t begin = 0; begin < shape_.time; begin += block) {
      const int64_t keys = shape_.keys_seen(begin);
      PackColumns(shape_, head.q, begin, scratch.queries);
      PackColumns(shape_, head.dout, begin, scratch.douts);
      PackTerms(shape_, head.q, begin, scratch.query_terms);
      PackTerms(shape_, head.dout, begin, scratch.dout_terms);
      ReduceQueries(head, begin, scratch);
      MultiplyKeys(shape_, begin, scratch.keys, scratch.queries, scratch.scores);
      MultiplyKeys(shape_, begin, scratch.values, scratch.douts, scratch.dscores);
      SoftmaxGradDown(shape_, begin, {scratch.log_sum_exp, scratch.dot}, scratch.scores,
                      scratch.dscores, scratch.weights, scratch.dproducts);

      const ScoreOperand weights(shape_, begin, scratch.weights, scratch.packed_weights);
      const ScoreOperand dproducts(shape_, begin, scratch.dproducts, scratch.packed_weights);
      const HeadSums dq(shape_, head.dq, begin, scratch.dq);
      for (int64_t key = 0, i = 0; key < keys; key += block, ++i) {
        // The first block of queries that sees these keys starts their sums.
        const bool continues = shape_.causal ? key < begin : begin > 0;
        dproducts.SumOverKeys(key, scratch.key_terms + i * shape_.terms_size(), key > 0, dq);
        dproducts.SumOverQueries(key, scratch.query_terms, continues, KeySums(head, key, scratch));
        weights.SumOverQueries(key, scratch.dout_terms, continues, ValueSums(head, key, scratch));
      }
      WriteRows(shape_, dq, nullptr, begin, head.dq);
    }
    for (int64_t key = 0; key < shape_.time; key += block) {
      WriteRows(shape_, KeySums(head, key, scratch), nullptr, key, head.dk);
      WriteRows(shape_, ValueSums(head, key, scratch), nullptr, key, head.dv);
    }
  }

  const AttentionShape shape_;
};

template <typename KernelType>
StatusOr<std::unique_ptr<Kernel>> MakeByFastestMethod(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  const GemmMethod& method = FastestGemmMethod(spec.outputs[0].dtype);
  return std::unique_ptr<Kernel>(std::make_unique<KernelType>(spec, method));
}

}  // namespace

std::unique_ptr<Kernel> MakeAttention(const KernelSpec& spec, const GemmMethod& method) {
  return std::make_unique<Attention>(spec, method);
}

std::unique_ptr<Kernel> MakeAttentionGrad(const KernelSpec& spec, const GemmMethod& method) {
  return std::make_unique<AttentionGrad>(spec, method);
}

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Register("attention", MakeByFastestMethod<Attention>);
  registry.Register("attention_grad", MakeByFastestMethod<AttentionGrad>);
}

}  // namespace zg
