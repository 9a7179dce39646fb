#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/kernels/cpu/attention.h"
#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/attention_options.h"
#include "framework/kernels/cpu/attention_rows.h"
#include "framework/kernels/cpu/attention_scratch.h"
#include "framework/kernels/cpu/convert.h"

namespace zg {
namespace {

// The inputs of the gradients for a head of queries.
struct GradientHead {
  HeadInput dout, q, out;
  const float* log_sum_exp;
  HeadOptions options;

  GradientHead(const AttentionShape& shape, const KernelArguments& arguments, int64_t batch,
               int64_t head)
      : dout(shape, arguments.inputs[0], shape.out, batch, head),
        q(shape, arguments.inputs[1], shape.q, batch, head),
        out(shape, arguments.inputs[OutInput(shape)], shape.out, batch, head),
        log_sum_exp(arguments.input<float>(OutInput(shape) + 1) +
                    (batch * shape.heads + head) * shape.queries),
        options(shape, arguments, batch, head) {}

  static int OutInput(const AttentionShape& shape) { return 2 + 2 * shape.part_step; }
};

// Scores and gradients of weights for a block of queries; both gradient kernels begin with them.
struct GradientScratch {
  float* keys;  // of all blocks; likewise values
  float* values;
  float* queries;
  float* douts;
  float* scores;
  float* dscores;
  float* slopes;
  float* dot;  // of queries; likewise log_sum_exp
  float* log_sum_exp;
  float* bits;

  GradientScratch(const AttentionShape& shape, Carver& carver)
      : keys(carver.Take(shape.num_key_blocks() * shape.rows_size())),
        values(carver.Take(shape.num_key_blocks() * shape.rows_size())),
        queries(carver.Take(shape.columns_size())),
        douts(carver.Take(shape.columns_size())),
        scores(carver.Take(shape.scores_size())),
        dscores(carver.Take(shape.scores_size())),
        slopes(carver.Take(shape.soft_cap > 0.0f ? shape.scores_size() : 0)),
        dot(carver.Take(shape.block)),
        log_sum_exp(carver.Take(shape.block)),
        bits(carver.Take(DropoutBitsSize(shape))) {}

  void PackKeys(const AttentionShape& shape, const HeadInput& k, const HeadInput& v) const {
    for (int64_t i = 0; i < shape.num_key_blocks(); ++i) {
      PackRows(shape, k, i * shape.block, keys + i * shape.rows_size());
      PackRows(shape, v, i * shape.block, values + i * shape.rows_size());
    }
  }

  void FindGradients(const AttentionShape& shape, const GradientHead& head, int64_t begin) const {
    PackColumns(shape, head.q, begin, queries);
    PackColumns(shape, head.dout, begin, douts);
    ReduceQueries(shape, head, begin);
    MultiplyKeys(shape, begin, keys, queries, scores);
    MultiplyKeys(shape, begin, values, douts, dscores);
    if (!shape.is_plain()) FindScores(shape, head.options, begin, scores, slopes);
    if (shape.dropout > 0.0) Drop(shape, head, begin, DType::kF32, dscores);
  }

  void Drop(const AttentionShape& shape, const GradientHead& head, int64_t begin, DType dtype,
            void* numbers) const {
    DropScores(shape, head.options, begin, dtype, numbers, reinterpret_cast<uint32_t*>(bits));
  }

 private:
  // dout . out for the queries of a block, and their log_sum_exp; zeros in the lanes after them.
  void ReduceQueries(const AttentionShape& shape, const GradientHead& head, int64_t begin) const {
    std::fill_n(dot, shape.block, 0.0f);
    std::fill_n(log_sum_exp, shape.block, 0.0f);
    std::copy_n(head.log_sum_exp + begin, shape.num_queries(begin), log_sum_exp);
    DotRows(shape, head.dout, head.out, begin, dot);
  }
};

class AttentionGrad : public Kernel {
 public:
  AttentionGrad(const KernelSpec& spec, const GemmMethod& method)
      : shape_(spec.call, /*is_gradient=*/true, method),
        num_sharing_(NumSharingHeads(shape_, spec.threads)) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_sharing_, ScratchBytes<Scratch>(shape_));
  }

  Status Run(const KernelArguments& arguments) override {
    const int step = shape_.part_step;
    const auto run = [&](int64_t b, int64_t g, const Scratch& scratch) {
      const KeyHead keys = {{shape_, arguments.inputs[1 + step], shape_.k, b, g},
                            {shape_, arguments.inputs[1 + 2 * step], shape_.v, b, g},
                            {shape_, arguments.outputs[step], shape_.k, b, g},
                            {shape_, arguments.outputs[2 * step], shape_.v, b, g}};
      BeginKeys(keys, scratch);
      for (int64_t h = g * shape_.group(); h < (g + 1) * shape_.group(); ++h) {
        RunHead(GradientHead(shape_, arguments, b, h), keys, h > g * shape_.group(), scratch,
                {shape_, arguments.outputs[0], shape_.q, b, h});
      }
      for (int64_t key = 0; key < shape_.keys; key += shape_.block) {
        WriteRows(shape_, KeySums(keys, key, scratch), nullptr, key, keys.dk);
        WriteRows(shape_, ValueSums(keys, key, scratch), nullptr, key, keys.dv);
      }
    };
    ForKeyHeads<Scratch>(shape_, arguments, num_sharing_, run);
    return Status::Ok();
  }

 private:
  struct KeyHead {
    HeadInput k, v;
    HeadOutput dk, dv;
  };

  struct Scratch : GradientScratch {
    float* key_terms;  // of all blocks; likewise dk and dv
    float* query_terms;
    float* dout_terms;
    float* weights;  // rounded in 16 bits, else in the place of the scores; likewise dproducts
    float* dproducts;
    float* packed_weights;
    float* dq;
    float* dk;
    float* dv;

    Scratch(const AttentionShape& shape, Carver& carver)
        : GradientScratch(shape, carver),
          key_terms(carver.Take(shape.num_key_blocks() * shape.terms_size())),
          query_terms(carver.Take(shape.terms_size())),
          dout_terms(carver.Take(shape.terms_size())),
          weights(carver.TakeRounded(shape, scores)),
          dproducts(carver.TakeRounded(shape, dscores)),
          packed_weights(carver.Take(shape.weights_size())),
          dq(carver.Take(shape.sums_size())),
          dk(carver.Take(shape.num_key_blocks() * shape.sums_size())),
          dv(carver.Take(shape.num_key_blocks() * shape.sums_size())) {}
  };

  HeadSums KeySums(const KeyHead& head, int64_t begin, const Scratch& scratch) const {
    return {shape_, head.dk, begin, scratch.dk + begin * shape_.sum_stride()};
  }
  HeadSums ValueSums(const KeyHead& head, int64_t begin, const Scratch& scratch) const {
    return {shape_, head.dv, begin, scratch.dv + begin * shape_.sum_stride()};
  }

  // With options, or without queries, a key may be seen by no query; its gradient is then 0.
  void BeginKeys(const KeyHead& head, const Scratch& scratch) const {
    scratch.PackKeys(shape_, head.k, head.v);
    for (int64_t key = 0; key < shape_.keys; key += shape_.block) {
      PackTerms(shape_, head.k, key, scratch.key_terms + key / shape_.block * shape_.terms_size());
      if (shape_.is_plain() && shape_.queries > 0) continue;
      ClearSums(shape_, shape_.num_keys(key), KeySums(head, key, scratch));
      ClearSums(shape_, shape_.num_keys(key), ValueSums(head, key, scratch));
    }
  }

  // Whether sums of keys were started before the queries from `begin` on add to them.
  bool HaveBegun(int64_t key, int64_t begin, bool is_later_head) const {
    if (is_later_head || !shape_.is_plain()) return true;
    return begin > 0 && key < shape_.end_key(begin - shape_.block);
  }

  void RunHead(const GradientHead& head, const KeyHead& keys, bool is_later_head,
               const Scratch& scratch, const HeadOutput& dq_out) const {
    for (int64_t begin = 0; begin < shape_.queries; begin += shape_.block) {
      PackTerms(shape_, head.q, begin, scratch.query_terms);
      PackTerms(shape_, head.dout, begin, scratch.dout_terms);
      scratch.FindGradients(shape_, head, begin);
      SoftmaxGradDown(shape_, begin, {scratch.log_sum_exp, scratch.dot}, scratch.scores,
                      scratch.dscores, scratch.weights, scratch.dproducts);
      if (shape_.soft_cap > 0.0f) ScaleBySlopes(shape_, begin, scratch.slopes, scratch.dproducts);
      if (shape_.dropout > 0.0) scratch.Drop(shape_, head, begin, shape_.dtype, scratch.weights);

      const ScoreOperand weights(shape_, begin, scratch.weights, scratch.packed_weights);
      const ScoreOperand dproducts(shape_, begin, scratch.dproducts, scratch.packed_weights);
      const HeadSums dq(shape_, dq_out, begin, scratch.dq);
      const int64_t first = shape_.first_key(begin);
      for (int64_t key = first; key < shape_.end_key(begin); key += shape_.block) {
        const float* const terms = scratch.key_terms + key / shape_.block * shape_.terms_size();
        const bool continues = HaveBegun(key, begin, is_later_head);
        dproducts.SumOverKeys(key, terms, key > first, dq);
        dproducts.SumOverQueries(key, scratch.query_terms, continues, KeySums(keys, key, scratch));
        weights.SumOverQueries(key, scratch.dout_terms, continues, ValueSums(keys, key, scratch));
      }
      WriteRows(shape_, dq, nullptr, begin, dq_out);
    }
  }

  const AttentionShape shape_;
  const int num_sharing_;
};

// Sums over sequences and heads in f32, in order. Threads share the queries, and each of them goes
// through all heads.
class AttentionBiasGrad : public Kernel {
 public:
  AttentionBiasGrad(const KernelSpec& spec, const GemmMethod& method)
      : shape_(spec.call, /*is_gradient=*/true, method),
        num_elements_(spec.outputs[0].shape.num_elements()),
        num_sharing_(NumSharing(spec.threads, shape_.queries, shape_.block,
                                shape_.batch * shape_.heads * shape_.keys * shape_.head_size / 8)) {
  }

  int64_t workspace_bytes() const override {
    const int64_t scratch = WorkspaceBytes(num_sharing_, ScratchBytes<GradientScratch>(shape_));
    if (shape_.dtype == DType::kF32) return scratch;
    return WholeLines(scratch) + num_elements_ * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const bool is_wide = shape_.dtype != DType::kF32;
    float* sums = arguments.output<float>(0);
    if (is_wide) {  // after the scratch
      sums = static_cast<float*>(
          WorkspaceOf(num_sharing_, arguments.workspace, ScratchBytes<GradientScratch>(shape_)));
    }
    std::fill_n(sums, num_elements_, 0.0f);
    ForEqualRanges(arguments.threads, num_sharing_, shape_.queries, shape_.block,
                   [&](int64_t begin, int64_t end, int thread) {
                     AddQueries(arguments, begin, end, thread, sums);
                   });
    if (is_wide) {
      ConvertFloats(DType::kF32, sums, shape_.dtype, arguments.outputs[0], num_elements_);
    }
    return Status::Ok();
  }

 private:
  // For the queries [first, end).
  void AddQueries(const KernelArguments& arguments, int64_t first, int64_t end, int thread,
                  float* sums) const {
    const GemmScope scope(*shape_.method);
    Carver carver(WorkspaceOf(thread, arguments.workspace, ScratchBytes<GradientScratch>(shape_)));
    const GradientScratch scratch(shape_, carver);
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t h = 0; h < shape_.heads; ++h) {
        const int64_t g = h / shape_.group();
        scratch.PackKeys(shape_, {shape_, arguments.inputs[2], shape_.k, b, g},
                         {shape_, arguments.inputs[3], shape_.v, b, g});
        const GradientHead head(shape_, arguments, b, h);
        for (int64_t begin = first; begin < end; begin += shape_.block) {
          scratch.FindGradients(shape_, head, begin);
          AddBiasGradient(shape_, begin, scratch.log_sum_exp, scratch.dot, scratch.scores,
                          scratch.dscores,
                          sums + b * shape_.bias_batch_stride + h * shape_.bias_head_stride);
        }
      }
    }
  }

  const AttentionShape shape_;
  const int64_t num_elements_;
  const int num_sharing_;
};

}  // namespace

std::unique_ptr<Kernel> MakeAttentionGrad(const KernelSpec& spec, const GemmMethod& method) {
  return std::make_unique<AttentionGrad>(spec, method);
}

std::unique_ptr<Kernel> MakeAttentionBiasGrad(const KernelSpec& spec, const GemmMethod& method) {
  return std::make_unique<AttentionBiasGrad>(spec, method);
}

}  // namespace zg
