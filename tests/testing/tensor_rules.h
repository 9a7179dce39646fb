// Rules that split our GPT and Llama along the mesh axis tensor: heads of the attention, columns of
// the first products of each MLP and rows of the products that follow.
#pragma once

#include <vector>

#include "framework/passes/placement_rule.h"

namespace zg::testing {

inline std::vector<PlacementRule> GptTensorRules() {
  return {{"blocks.*.attention.qkv", "tensor", Sbp::S(0, 3)},
          {"blocks.*.attention.projection.weight", "tensor", Sbp::S(1)},
          {"blocks.*.mlp.expand", "tensor", Sbp::S(0)},
          {"blocks.*.mlp.contract.weight", "tensor", Sbp::S(1)}};
}

inline std::vector<PlacementRule> LlamaTensorRules() {
  return {{"model.layers.*.self_attn.q_proj", "tensor", Sbp::S(0)},
          {"model.layers.*.self_attn.k_proj", "tensor", Sbp::S(0)},
          {"model.layers.*.self_attn.v_proj", "tensor", Sbp::S(0)},
          {"model.layers.*.self_attn.o_proj", "tensor", Sbp::S(1)},
          {"model.layers.*.mlp.gate_proj", "tensor", Sbp::S(0)},
          {"model.layers.*.mlp.up_proj", "tensor", Sbp::S(0)},
          {"model.layers.*.mlp.down_proj", "tensor", Sbp::S(1)}};
}

}  // namespace zg::testing
