// LoRA (arXiv 2106.09685): a linear layer with frozen weights learns a low-rank difference: y = x
// W^T + b + alpha / rank (x A^T) B^T. A (rank, in) is initialised like PyTorch's linear layers, B
// (out, rank) with zeros, so that the layer is unchanged at first.
//
//   models::Gpt model(config);
//   nn::LoraOptions options;
//   options.rank = 8;
//   nn::Lora lora(options);
//   for (models::GptBlock& block : model.blocks) lora.adapt(block.attention.qkv);
//   graph.train(..., [&](Inputs& in) { ... });
//   graph.freeze("**");                          // also freezes parameters outside of layers
//   graph.unfreeze("**.lora_A,**.lora_B");
//
// save_lora and load_lora (framework/train/lora_files.h) write and read PEFT's files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/nn/linear.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16.0;
};

// The term that a Linear adds to its output.
class LoraAdapter {
 public:
  // Parameters "lora_A.weight" and "lora_B.weight" of the layer.
  LoraAdapter(const Linear& layer, const LoraOptions& options);

  Var Difference(Var x) const;                                  // (..., in) -> (..., out)
  const std::string& path() const { return a_.module_path(); }  // path of the layer
  const std::string& a_path() const { return a_.path(); }
  const std::string& b_path() const { return b_.path(); }

 private:
  Parameter a_;
  Parameter b_;
  double scale_;
};

// The adapters of a model. It must live while functions of a graph run.
class Lora {
 public:
  explicit Lora(const LoraOptions& options = {}) : options_(options) {}

  // Freezes the layer's parameters and adapts it; must be called before the layer's first use in a
  // graph. A layer that has an adapter keeps it.
  void adapt(Linear& layer);

  const LoraOptions& options() const { return options_; }
  const std::vector<std::shared_ptr<const LoraAdapter>>& adapters() const { return adapters_; }

 private:
  LoraOptions options_;
  std::vector<std::shared_ptr<const LoraAdapter>> adapters_;
};

}  // namespace zg::nn
