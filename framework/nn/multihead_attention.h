// MultiheadAttention: attention of x (B, Tq, C) to a memory (B, Tk, C) with the projections of
// torch.nn.MultiheadAttention (batch_first). The parameters have PyTorch's names: in_proj_weight
// (3C, C) and in_proj_bias (3C) of [q | k | v], out_proj.
#pragma once

#include <optional>
#include <string>

#include "framework/nn/attention.h"
#include "framework/nn/linear.h"
#include "framework/nn/module.h"

namespace zg::nn {

// The options that may differ between calls; see AttentionOptions.
struct AttentionMasks {
  bool causal = false;
  Var mask = {};
  Var bias = {};
};

class MultiheadAttention : public Module {
 public:
  MultiheadAttention(const Module* parent, const std::string& name, int64_t channels, int64_t heads,
                     double dropout = 0.0, bool has_bias = true);

  Var operator()(Var query, Var key, Var value, const AttentionMasks& masks = {});
  // Attention of x to itself, with one product for q, k and v.
  Var operator()(Var x, const AttentionMasks& masks = {});

  Parameter in_proj_weight;
  std::optional<Parameter> in_proj_bias;
  Linear out_proj;

 protected:
  Var forward(Var x) override { return (*this)(x, AttentionMasks{}); }

 private:
  Var Project(Var x, int64_t part, int64_t num_parts);
  Var Attend(Var q, Var k, Var v, const AttentionMasks& masks);

  int64_t channels_;
  int64_t heads_;
  double dropout_;
};

}  // namespace zg::nn
