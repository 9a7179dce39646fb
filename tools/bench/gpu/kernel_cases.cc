#include "tools/bench/gpu/kernel_cases.h"

#include <fmt/format.h>

#include <utility>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "models/gpt/presets.h"

namespace zg::bench {
namespace {

TensorType BF16(Shape shape) { return {DType::kBF16, std::move(shape)}; }
TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
TensorType I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

class CaseList {
 public:
  // Returns the case so that it can be changed; null after an error.
  KernelCase* Add(int64_t times_per_step, const std::string& name, const std::string& op,
                  std::vector<TensorType> inputs, ir::Attributes attributes = {}) {
    if (!status_.ok()) return nullptr;
    StatusOr<KernelCase> made = MakeKernelCase(name, op, std::move(inputs), std::move(attributes));
    status_ = made.status();
    if (!status_.ok()) return nullptr;
    made->times_per_step = times_per_step;
    cases_.push_back(*std::move(made));
    return &cases_.back();
  }

  StatusOr<std::vector<KernelCase>> Take() {
    ZG_RETURN_IF_ERROR(status_);
    return std::move(cases_);
  }

 private:
  Status status_;
  std::vector<KernelCase> cases_;
};

// B batch, T time, C channels, H heads, V vocabulary, L layers.
struct Sizes {
  int64_t B, T, C, H, V, L;
};

// A layer of inputs x outputs parameters, forward and backward.
struct LinearLayer {
  std::string name;
  int64_t inputs = 0;
  int64_t outputs = 0;
  bool has_bias = true;
  bool gelu_before = false;  // its inputs are gelus, whose gradient is fused with its input's
  bool gelu_behind = false;  // its outputs become gelus
  bool adds_behind = false;  // they are added to the residual stream, whose norm sums their
                             // gradients
};

void AddLinear(const Sizes& s, int64_t times_per_step, const LinearLayer& layer, CaseList* list) {
  const TensorType x = BF16({s.B, s.T, layer.inputs});
  const TensorType y = BF16({s.B, s.T, layer.outputs});
  const TensorType weight = BF16({layer.outputs, layer.inputs});
  std::vector<TensorType> forward = {x, weight};
  if (layer.has_bias) forward.push_back(BF16({layer.outputs}));
  ir::Attributes attributes;
  if (layer.adds_behind) {
    forward.push_back(y);
    attributes.Set("adds", true);
  }
  const std::string op = layer.gelu_behind ? "linear_gelu" : "linear";
  list->Add(times_per_step, op + " " + layer.name, op, forward, attributes);
  std::vector<TensorType> backward = {y, weight};
  if (layer.gelu_before) backward.push_back(x);
  const std::string grad_op = layer.gelu_before ? "linear_grad_input_gelu" : "linear_grad_input";
  list->Add(times_per_step, grad_op + " " + layer.name, grad_op, backward);
  list->Add(times_per_step, "linear_grad_weight " + layer.name, "linear_grad_weight", {y, x});
  if (!layer.has_bias || layer.adds_behind) return;
  list->Add(times_per_step, "linear_grad_bias " + layer.name, "linear_grad_bias", {y});
}

void AddBlocks(const Sizes& s, CaseList* list) {
  const TensorType hidden = BF16({s.B, s.T, s.C});
  const TensorType wide = BF16({s.B, s.T, 4 * s.C});
  const TensorType qkv = BF16({s.B, s.T, 3 * s.C});
  const TensorType vector = BF16({s.C});
  const TensorType per_row = F32({s.B, s.T});
  AddLinear(s, s.L, {"qkv", s.C, 3 * s.C}, list);
  LinearLayer projection = {"projection", s.C, s.C};
  projection.adds_behind = true;
  AddLinear(s, s.L, projection, list);
  LinearLayer expand = {"expand", s.C, 4 * s.C};
  expand.gelu_behind = true;
  AddLinear(s, s.L, expand, list);
  LinearLayer contract = {"contract", 4 * s.C, s.C};
  contract.gelu_before = contract.adds_behind = true;
  AddLinear(s, s.L, contract, list);
  const ir::Attributes causal = {{"heads", s.H}, {"causal", true}};
  list->Add(s.L, "attention", "attention", {qkv}, causal);
  list->Add(s.L, "attention_grad", "attention_grad", {hidden, qkv, hidden, F32({s.B, s.H, s.T})},
            causal);
  list->Add(2 * s.L + 1, "layer_norm", "layer_norm", {hidden, vector, vector});
  // All norms but the last add the gradient of the residual stream.
  list->Add(2 * s.L, "layer_norm_grad", "layer_norm_grad",
            {hidden, hidden, vector, per_row, per_row, hidden}, {{"adds", true}, {"sums", true}});
  list->Add(1, "layer_norm_grad last", "layer_norm_grad",
            {hidden, hidden, vector, per_row, per_row}, {{"sums", true}});
  // The parts of the fused kernels, for comparison.
  list->Add(0, "linear expand apart", "linear", {hidden, BF16({4 * s.C, s.C}), BF16({4 * s.C})});
  list->Add(0, "gelu apart", "gelu", {wide});
  list->Add(0, "linear_grad_input apart", "linear_grad_input", {hidden, BF16({s.C, 4 * s.C})});
  list->Add(0, "gelu_grad apart", "gelu_grad", {wide, wide});
  list->Add(0, "add apart", "add", {hidden, hidden});
}

void AddEnds(const Sizes& s, CaseList* list) {
  const TensorType table = BF16({s.V, s.C});
  const TensorType hidden = BF16({s.B, s.T, s.C});
  const TensorType logits = BF16({s.B, s.T, s.V});
  const TensorType ids = I64({s.B, s.T});
  const ir::Attributes divisor = {{"divisor", static_cast<double>(s.B * s.T)}};
  if (KernelCase* added = list->Add(1, "embedding", "embedding", {table, ids})) {
    added->max_id = s.V;
    added->moved_bytes = ids.bytes() + 2 * hidden.bytes();
  }
  if (KernelCase* added =
          list->Add(1, "embedding_grad", "embedding_grad", {hidden, ids}, {{"rows", s.V}})) {
    added->max_id = s.V;
  }
  list->Add(1, "add tied gradients", "add", {table, table});
  list->Add(1, "add positions", "add", {hidden, BF16({s.T, s.C})});
  list->Add(1, "sum positions", "sum", {hidden}, {{"dims", std::vector<int64_t>{0}}});
  AddLinear(s, 1, {"head", s.C, s.V, /*has_bias=*/false}, list);
  const auto add_loss = [&](int64_t times_per_step, const std::string& op,
                            const std::vector<TensorType>& inputs) {
    if (KernelCase* added = list->Add(times_per_step, op, op, inputs, divisor)) added->max_id = s.V;
  };
  add_loss(1, "softmax_cross_entropy_with_grad", {F32({}), logits, ids});
  // What it consists of, to be compared.
  add_loss(0, "softmax_cross_entropy", {logits, ids});
  add_loss(0, "softmax_cross_entropy_grad", {F32({}), logits, ids, F32({s.B, s.T})});
}

// As if all parameters were in one bucket.
void AddUpdate(int64_t num_parameters, CaseList* list) {
  const TensorType state = F32({num_parameters});
  const TensorType gradient = BF16({num_parameters});
  list->Add(1, "adam_update", "adam_update", {state, gradient, state, state},
            {{"lr", 1e-3},
             {"beta1", 0.9},
             {"beta2", 0.99},
             {"epsilon", 1e-8},
             {"weight_decay", 0.1},
             {"decoupled", true},
             {"copy_dtype", DType::kBF16}});
  list->Add(0, "square_sum gradients", "square_sum", {gradient});
}

}  // namespace

StatusOr<KernelCase> MakeKernelCase(const std::string& name, const std::string& op,
                                    std::vector<TensorType> inputs, ir::Attributes attributes) {
  KernelCase made;
  made.name = name;
  ir::OpCall& call = made.spec.call;
  call.op = ir::OpRegistry::Global().Find(op);
  ZG_CHECK(call.op != nullptr, "there is no op {}", op);
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  ZG_RETURN_IF_ERROR(ir::CompleteAttributes(call.op->attributes, &call.attributes));
  ZG_ASSIGN_OR_RETURN(made.spec.outputs, call.op->infer_shape(call));
  for (const TensorType& type : call.inputs) made.moved_bytes += type.bytes();
  for (const TensorType& type : made.spec.outputs) made.moved_bytes += type.bytes();
  if (call.op->flops != nullptr) made.flops = call.op->flops(call);
  return made;
}

StatusOr<std::vector<KernelCase>> GptKernelCases(const models::GptConfig& config, int64_t batch) {
  const Sizes sizes = {batch,        config.context,    config.channels,
                       config.heads, config.vocabulary, config.layers};
  CaseList list;
  AddBlocks(sizes, &list);
  AddEnds(sizes, &list);
  AddUpdate(models::NumGptParameters(config), &list);
  return list.Take();
}

StatusOr<KernelCase> SquareProduct(int64_t size) {
  const TensorType matrix = BF16({size, size});
  return MakeKernelCase(fmt::format("linear {0} x {0} x {0}", size), "linear", {matrix, matrix});
}

}  // namespace zg::bench
