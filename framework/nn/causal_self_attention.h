// CausalSelfAttention: every position of x (B, T, C) attends to itself and earlier positions, with
// `heads` heads of C / heads channels. Modules: qkv, Linear(C, 3C) = [q | k | v], and projection,
// Linear(C, C).
#pragma once

#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/linear.h"

namespace zg::nn {

struct CausalSelfAttentionOptions {
  LinearOptions qkv = {};
  LinearOptions projection = {};
};

class CausalSelfAttention : public Module {
 public:
  CausalSelfAttention(const Module* parent, const std::string& name, int64_t channels,
                      int64_t heads, const CausalSelfAttentionOptions& options = {})
      : Module(parent, name),
        qkv(this, "qkv", channels, 3 * channels, options.qkv),
        projection(this, "projection", channels, channels, options.projection),
        heads_(heads) {}

  Var forward(Var x) override { return projection(attention(qkv(x), heads_)); }

  Linear qkv;
  Linear projection;

 private:
  int64_t heads_;
};

}  // namespace zg::nn
