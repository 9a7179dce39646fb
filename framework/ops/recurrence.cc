// Whole sequences of recurrent layers: LSTM (Hochreiter and Schmidhuber 1997), GRU (Cho et al., arXiv
// 1406.1078, with the reset gate behind the product, as in cuDNN) and RNN (Elman 1990), and their
// gradients. What the elements contribute to the gates, x, is one product of all of them, before these
// ops; these go from element to element. Shapes: B samples, T elements, H channels; x (B, T, G H)
// for G gates, weight (G H, H), bias (G H), h and c, the states before the first element, (B, H); zeros
// if they are left out. With `from_end` a sequence is read from its last element on.
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Ints = std::vector<int64_t>;
using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

// What differs between the layers. Their first output are the states h of all elements.
struct Layer {
  const char* name;
  int64_t gates;
  int num_states;  // before the first element: h, or h and c
};
constexpr Layer kLstm = {"lstm", 4, 2};
constexpr Layer kGru = {"gru", 3, 1};
constexpr Layer kRnn = {"rnn", 1, 1};

// From the type of states (B, T, H): (B, T, rows x H), and (B, H).
TensorType SequenceLike(const TensorType& states, int64_t rows) {
  return {states.dtype, WithLastDim(states.shape, rows * states.shape.dim(2))};
}
TensorType StateLike(const TensorType& states) {
  return {states.dtype, {states.shape.dim(0), states.shape.dim(2)}};
}
// The type of a layer's states, from that of x.
TensorType StatesOf(const TensorType& x, const Layer& layer) {
  return {x.dtype, WithLastDim(x.shape, x.shape.dim(2) / layer.gates)};
}

InputNames NamesOf(const Layer& layer) {
  InputNames names = {"x", "weight", "bias", "h"};
  if (layer.num_states == 2) names.push_back("c");
  return names;
}

Status CheckLayer(const ir::OpCall& call, const Layer& layer) {
  const InputNames names = NamesOf(layer);
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  const Shape& x = call.inputs[0].shape;
  if (x.num_dims() != 3 || x.dim(1) < 1 || x.dim(2) < 1 || x.dim(2) % layer.gates != 0) {
    return Rejected(call, names, "x is not (samples, elements, gates x channels)");
  }
  const TensorType states = StatesOf(call.inputs[0], layer);
  if (call.inputs[1].shape != Shape{x.dim(2), states.shape.dim(2)}) {
    return Rejected(call, names, "weight is not (gates x channels, channels)");
  }
  if (call.inputs[2].shape != Shape{x.dim(2)}) {
    return Rejected(call, names, "bias does not fit the rows of weight");
  }
  if (call.inputs.size() != 3 && call.inputs.size() != names.size()) {
    return Rejected(call, names, "c is missing");
  }
  for (size_t i = 3; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == StateLike(states)) continue;
    return Rejected(call, names, fmt::format("{} is not (samples, channels)", names[i]));
  }
  return Status::Ok();
}

// Samples are independent of each other; `weights` are the operands without samples.
ir::SbpSignature BySamples(const ir::OpCall& call, std::initializer_list<int> weights,
                           int num_outputs) {
  ir::SbpSignature signature = {NdSbp(call.inputs.size(), Sbp::S(0)),
                                NdSbp(num_outputs, Sbp::S(0))};
  for (const int weight : weights) signature.inputs[weight] = Sbp::B();
  return signature;
}

// A product with weight for each element, and some operations for each gate.
int64_t FlopsOf(const TensorType& x, const Layer& layer) {
  return x.shape.num_elements() * (2 * StatesOf(x, layer).shape.dim(2) + 16);
}

ir::Value* Slice(ir::Builder& builder, ir::Value* sequence, int64_t start, int64_t size) {
  return builder.Op("slice", {sequence}, {{"dim", 1}, {"start", start}, {"size", size}});
}

// The state h that each element has found: (B, T, H).
ir::Value* StatesBefore(ir::GradientContext& context) {
  ir::Builder& builder = context.builder();
  ir::Value* const states = context.output(0);
  const int64_t steps = states->type.shape.dim(1);
  const bool from_end = context.node().attributes.Bool("from_end");
  ir::Value* const others = Slice(builder, states, from_end ? 1 : 0, steps - 1);
  if (context.num_inputs() == 3) {
    return builder.Op("pad", {others},
                      {{"dim", 1}, {"before", from_end ? 0 : 1}, {"after", from_end ? 1 : 0}});
  }
  ir::Value* const first =
      builder.Op("reshape", {context.input(3)},
                 {{"from", Ints{1, 0, 1}}, {"to", Ints{1, 1, 1}}, {"sizes", Ints{-1, -1, -1}}});
  std::vector<ir::Value*> in_order = {first, others};
  if (from_end) std::swap(in_order[0], in_order[1]);
  return builder.Op("concat", in_order, {{"dim", 1}});
}

// The gradients of x and of the states (`of_states`), and those of weight and bias from that of the
// product with weight, `dproduct`.
void SetGradients(ir::GradientContext& context, ir::Value* dx, ir::Value* dproduct,
                  const std::vector<ir::Value*>& of_states) {
  ir::Builder& builder = context.builder();
  if (context.needs(0)) context.set_input_gradient(0, dx);
  if (context.needs(1)) {
    context.set_input_gradient(1,
                               builder.Op("linear_grad_weight", {dproduct, StatesBefore(context)}));
  }
  if (context.needs(2)) {
    context.set_input_gradient(2, builder.Op(op_names::kLinearGradBias, {dproduct}));
  }
  for (int i = 3; i < context.num_inputs(); ++i) {
    if (context.needs(i)) context.set_input_gradient(i, of_states[i - 3]);
  }
}

bool NeedsNone(const ir::GradientContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) {
    if (context.needs(i)) return false;
  }
  return true;
}

// The gradient of an LSTM's states h, which is zero if only its cells are used.
ir::Value* GradientOfStates(ir::GradientContext& context) {
  if (context.output_gradient(0) != nullptr) return context.output_gradient(0);
  ir::Builder& builder = context.builder();
  const TensorType& type = context.output(0)->type;
  ir::Value* zero = builder.Op("constant", {}, {{"value", 0.0}});
  zero = builder.Op("cast", {zero}, {{"dtype", type.dtype}});
  return builder.Op("expand", {zero}, {{"dims", Ints{0, 1, 2}}, {"sizes", type.shape.dims()}});
}

ir::OpDef LayerOp(const Layer& layer, int num_outputs) {
  ir::OpDef op;
  op.name = layer.name;
  op.min_inputs = 3;
  op.max_inputs = 3 + layer.num_states;
  op.num_outputs = num_outputs;
  op.attributes = {{"from_end", false}};
  op.sbp_signatures = [num_outputs](const ir::OpCall& call) {
    return Signatures{BySamples(call, {1, 2}, num_outputs)};
  };
  op.flops = [layer](const ir::OpCall& call) { return FlopsOf(call.inputs[0], layer); };
  return op;
}

// Operand 0 is the gradient of the states h, operand 1 weight.
ir::OpDef LayerGradOp(const Layer& layer, int num_outputs) {
  ir::OpDef op;
  op.name = std::string(layer.name) + "_grad";
  op.num_outputs = num_outputs;
  op.attributes = {{"from_end", false}};
  op.sbp_signatures = [num_outputs](const ir::OpCall& call) {
    return Signatures{BySamples(call, {1}, num_outputs)};
  };
  op.not_differentiable = kNoSecondDerivative;
  op.flops = [layer](const ir::OpCall& call) {
    const int64_t states = call.inputs[0].shape.num_elements();
    return layer.gates * states * (2 * call.inputs[0].shape.dim(2) + 24);
  };
  return op;
}

// Checks the operands of a gradient: dh (B, T, H), weight, and sequences of `rows` x H channels;
// those after them are states (B, H) or, as the last one may be, a sequence like dh.
Status CheckGradient(const ir::OpCall& call, const InputNames& names, const Layer& layer,
                     const std::vector<int64_t>& rows) {
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  const TensorType& dh = call.inputs[0];
  if (dh.shape.num_dims() != 3 || dh.shape.dim(1) < 1 || dh.shape.dim(2) < 1) {
    return Rejected(call, names, "dh is not (samples, elements, channels)");
  }
  const int64_t samples = dh.shape.dim(0), steps = dh.shape.dim(1), hidden = dh.shape.dim(2);
  if (call.inputs[1].shape != Shape{layer.gates * hidden, hidden}) {
    return Rejected(call, names, "weight is not (gates x channels, channels)");
  }
  for (size_t i = 2; i < call.inputs.size(); ++i) {
    const bool is_sequence = i - 2 < rows.size();
    const Shape expected =
        is_sequence ? Shape{samples, steps, rows[i - 2] * hidden} : Shape{samples, hidden};
    if (call.inputs[i].shape == expected) continue;
    return Rejected(call, names, fmt::format("{} does not fit dh", names[i]));
  }
  return Status::Ok();
}

ir::OpDef Lstm() {
  ir::OpDef op = LayerOp(kLstm, 3);
  op.doc =
      "With i, f, g, o = x[t] + weight h + bias: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = "
      "sigmoid(o) tanh(c'). Outputs: h' and c' of each t, (B, T, H), and sigmoid(i), sigmoid(f), "
      "tanh(g), sigmoid(o), (B, T, 4 H), which the gradient reads.";
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckLayer(call, kLstm));
    const TensorType states = StatesOf(call.inputs[0], kLstm);
    return Types{states, states, SequenceLike(states, 4)};
  };
  op.gradient = [](ir::GradientContext& context) {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context, 2));
    if (NeedsNone(context)) return Status::Ok();
    const bool has_states = context.num_inputs() > 3;
    std::vector<ir::Value*> inputs = {GradientOfStates(context), context.input(1),
                                      context.output(2), context.output(1)};
    if (context.output_gradient(1) != nullptr) inputs.push_back(context.output_gradient(1));
    if (has_states) inputs.push_back(context.input(4));
    ir::Attributes attributes = context.node().attributes;
    attributes.Set("has_states", has_states);
    const std::vector<ir::Value*> gradients =
        context.builder().Ops("lstm_grad", inputs, attributes);
    SetGradients(context, gradients[0], gradients[0], {gradients[1], gradients[2]});
    return Status::Ok();
  };
  return op;
}

ir::OpDef LstmGrad() {
  ir::OpDef op = LayerGradOp(kLstm, 3);
  op.doc =
      "The gradients of x, (B, T, 4 H), and of the states h and c before the first element, from dh "
      "and, if it is there, dc, the gradients of h' and c' of each t. Reads sigmoid(i), sigmoid(f), "
      "tanh(g), sigmoid(o), (B, T, 4 H), and c' of each t; and, with `has_states`, as the last operand, "
      "c before the first element.";
  op.min_inputs = 4;
  op.max_inputs = 6;
  op.attributes.push_back({"has_states", false});
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const bool has_states = call.attributes.Bool("has_states");
    const size_t sequences = call.inputs.size() - (has_states ? 1 : 0);
    InputNames names = {"dh", "weight", "gates", "cells"};
    std::vector<int64_t> rows = {4, 1};
    if (sequences >= 5) {
      names.push_back("dc");
      rows.push_back(1);
    }
    if (has_states) names.push_back("c");
    if (call.inputs.size() != names.size()) {
      return InvalidArgument("lstm_grad: got {} operands, expected {}", call.inputs.size(),
                             names.size());
    }
    ZG_RETURN_IF_ERROR(CheckGradient(call, names, kLstm, rows));
    const TensorType& dh = call.inputs[0];
    return Types{SequenceLike(dh, 4), StateLike(dh), StateLike(dh)};
  };
  return op;
}

ir::OpDef Gru() {
  ir::OpDef op = LayerOp(kGru, 2);
  op.doc =
      "With r, z = sigmoid of the first gates of x[t] + p, p = weight h + bias, and n = tanh(x[t] + r p) "
      "of the third: h' = (1 - z) n + z h. Outputs: h' of each t, (B, T, H), and r, z, n and p of n, "
      "(B, T, 4 H), which the gradient reads.";
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckLayer(call, kGru));
    const TensorType states = StatesOf(call.inputs[0], kGru);
    return Types{states, SequenceLike(states, 4)};
  };
  op.gradient = [](ir::GradientContext& context) {
    ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
    if (NeedsNone(context)) return Status::Ok();
    std::vector<ir::Value*> inputs = {context.output_gradient(), context.input(1),
                                      context.output(1), context.output(0)};
    if (context.num_inputs() > 3) inputs.push_back(context.input(3));
    const std::vector<ir::Value*> gradients =
        context.builder().Ops("gru_grad", inputs, context.node().attributes);
    SetGradients(context, gradients[0], gradients[1], {gradients[2]});
    return Status::Ok();
  };
  return op;
}

ir::OpDef GruGrad() {
  ir::OpDef op = LayerGradOp(kGru, 3);
  op.doc =
      "The gradients of x and of the products p, (B, T, 3 H), and of the state h before the first "
      "element, from dh, the gradient of h' of each t. Reads r, z, n and p of n, (B, T, 4 H), h' of "
      "each t and, if it is not zero, h before the first element.";
  op.min_inputs = 4;
  op.max_inputs = 5;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    InputNames names = {"dh", "weight", "gates", "states", "h"};
    names.resize(call.inputs.size());
    ZG_RETURN_IF_ERROR(CheckGradient(call, names, kGru, {4, 1}));
    const TensorType& dh = call.inputs[0];
    return Types{SequenceLike(dh, 3), SequenceLike(dh, 3), StateLike(dh)};
  };
  return op;
}

ir::OpDef Rnn() {
  ir::OpDef op = LayerOp(kRnn, 1);
  op.doc = "h' = tanh(x[t] + weight h + bias), or relu of that, of each t: (B, T, H).";
  op.attributes.push_back({"uses_relu", false});
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckLayer(call, kRnn));
    return Types{call.inputs[0]};
  };
  op.gradient = [](ir::GradientContext& context) {
    if (NeedsNone(context)) return Status::Ok();
    const std::vector<ir::Value*> gradients = context.builder().Ops(
        "rnn_grad", {context.output_gradient(), context.input(1), context.output(0)},
        context.node().attributes);
    SetGradients(context, gradients[0], gradients[0], {gradients[1]});
    return Status::Ok();
  };
  return op;
}

ir::OpDef RnnGrad() {
  ir::OpDef op = LayerGradOp(kRnn, 2);
  op.doc =
      "The gradients of x, (B, T, H), and of the state h before the first element, from dh, the "
      "gradient of h' of each t. Reads h' of each t.";
  op.min_inputs = op.max_inputs = 3;
  op.attributes.push_back({"uses_relu", false});
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckGradient(call, {"dh", "weight", "states"}, kRnn, {1}));
    return Types{call.inputs[0], StateLike(call.inputs[0])};
  };
  return op;
}

}  // namespace

void RegisterRecurrenceOps(ir::OpRegistry& registry) {
  for (ir::OpDef op : {Lstm(), LstmGrad(), Gru(), GruGrad(), Rnn(), RnnGrad()}) {
    registry.Register(std::move(op));
  }
}

}  // namespace zg
