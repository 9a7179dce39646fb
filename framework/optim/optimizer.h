// The optimizers that a graph can train with, as PyTorch defines them. The learning rate comes
// first; the other hyperparameters are fields:
//   zg::optim::AdamW adamw{3e-4};
//   adamw.weight_decay = 0.1;
//   graph.train(adamw, ...);
// More optimizers, and user-defined ones, are in framework/nn/optimizers.h and update_rule.h.
#pragma once

#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attribute.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace zg::optim {

// m = momentum m + (g + weight_decay p);  p -= lr m   (without momentum: no m)
struct Sgd {
  double lr = 1e-3;
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
};

// Adam (arXiv 1412.6980, algorithm 1) with L2 regularisation: g += weight_decay p.
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

// Adam with decoupled weight decay (arXiv 1711.05101): p -= lr weight_decay p.
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
};

// A rule made of elementwise ops, as framework/nn/update_rule.h traces it.
struct Elementwise {
  std::string name;  // in messages
  double lr = 1e-3;
  double weight_decay = 0.0;
  std::vector<std::string> states;  // suffixes of their names; they start as zeros
  std::string program;              // attributes of the op elementwise_update: program and results
  std::vector<int64_t> results;
  std::vector<int64_t> norms = {};  // statements whose norm over a tensor the update reads
                                    // (normed_update)
  // What eval programs read instead of the parameter: a program of fused_elementwise on the
  // parameter and the states; empty: the parameter.
  std::string eval_program;
  Status status;  // the error if it could not be traced
};

// Adafactor (framework/nn/optimizers.h): tensors of two dims or more keep numbers only for their
// rows and columns; other tensors use a rule made of elementwise ops.
struct Factored {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  double epsilon1 = 0.0;
  double epsilon2 = 0.0;
  double clip_threshold = 1.0;
  double weight_decay = 0.0;
  Elementwise of_vectors;  // for other tensors; also holds the status of the whole
};

// Muon (https://kellerjordan.github.io/posts/muon), as in torch.optim.Muon, in f32. Newton-Schulz
// steps X = a X + (b X X^T + c (X X^T)^2) X make the momentum of a matrix orthogonal before it is
// subtracted from the weights, times lr sqrt(max(1, rows / columns)). It is meant for the hidden
// matrices of a model; embeddings and heads get another optimizer through parameter groups. One
// rank updates each matrix as a whole.
struct Muon {
  double lr = 1e-3;
  double momentum = 0.95;
  double weight_decay = 0.1;  // decoupled: p -= lr weight_decay p
  bool nesterov = true;
  // Uses lr times 0.2 sqrt(max(rows, columns)) instead: steps are then about as large as AdamW's,
  // so that AdamW's lr and weight_decay fit (arXiv 2502.16982).
  bool match_rms_adamw = false;
  int64_t steps = 5;
  double a = 3.4445, b = -4.7750, c = 2.0315;
  double epsilon = 1e-7;  // lower bound of the norm that a momentum is divided by
  AdamW of_vectors = {};  // for parameters with one dim in the same group
};

// AdamW with two 8-bit states (arXiv 2110.02861, as torchao.optim.AdamW8bit): blocks of 256
// consecutive elements of a tensor share a scale. Tensors of fewer than `min_elements` use AdamW.
// Both follow from the whole tensor, never from a rank's part of it.
struct AdamW8bit {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  int64_t min_elements = 4096;
};

using Optimizer = std::variant<Sgd, Adam, AdamW, Elementwise, Factored, Muon, AdamW8bit>;

// Parameters with an optimizer or a learning-rate factor of their own.
struct ParameterGroup {
  std::string name;  // letters, digits, '_'
  // Patterns of their paths, joined by commas (framework/ir/scope_pattern.h): "**.bias,head".
  std::string parameters;
  std::optional<Optimizer> optimizer = std::nullopt;  // none: the graph's optimizer
  double lr_factor = 1.0;                             // on the optimizer's lr
};

// The unit for which a state has one number.
enum class StateOf {
  kElements,  // each element of the parameter
  kRows,      // each row of its matrices, which are the last two dims: [.., R, 1]
  kColumns,   // each column: [.., 1, C]
  kBlocks,    // each block of 256 elements (framework/ops/quantised_blocks.h)
};

struct State {
  std::string name;  // a suffix of the tensor's name: "exp_avg", as in PyTorch
  StateOf of = StateOf::kElements;
  DType dtype = DType::kF32;

  Shape ShapeFor(const Shape& parameter) const;
};

// The update node of an optimizer: op, attributes, and states.
struct UpdateRule {
  std::string op;
  ir::Attributes attributes;
  std::vector<State> states;
  bool counts = false;  // the op has the attribute after_updates
  // The rule of parameters with two dims or more, if it differs: one element, or none.
  std::vector<UpdateRule> of_matrices = {};
  // Likewise for parameters with at least that many elements.
  std::vector<UpdateRule> of_large = {};
  int64_t large_elements = 0;

  const UpdateRule& For(const Shape& parameter) const;
  void ScaleLr(double factor);
};

// Error: a hyperparameter that is not finite or out of its range.
StatusOr<UpdateRule> MakeUpdateRule(const Optimizer& optimizer);

// Returns "adam_update beta1=0.9 ...".
std::string ToString(const UpdateRule& rule);

// 0 <= value < end.
struct HyperparameterRange {
  std::string_view name;
  double value;
  double end = std::numeric_limits<double>::infinity();
  bool has_zero = true;
};
// A rule divides by it where its states are still 0.
inline HyperparameterRange PositiveEpsilon(double value) {
  return {"epsilon", value, std::numeric_limits<double>::infinity(), /*has_zero=*/false};
}
Status CheckHyperparameters(std::string_view optimizer,
                            std::initializer_list<HyperparameterRange> ranges);

}  // namespace zg::optim
