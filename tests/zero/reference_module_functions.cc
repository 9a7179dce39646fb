// Modules, with their parameters out of b, and functions of signals.
#include <map>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/zero/reference_functions.h"

namespace zg {
namespace {

// b in parts with the shapes of the module's parameters, in PyTorch's order: weight_ih, weight_hh,
// bias_ih, bias_hh.
nn::ParameterValues OutOf(Var b, const nn::Module& module, int64_t rows, int64_t in,
                          int64_t hidden) {
  std::map<std::string, Var> parts;
  int64_t begin = 0;
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Dims>>{{"weight_ih", {rows, in}},
                                                 {"weight_hh", {rows, hidden}},
                                                 {"bias_ih", {rows}},
                                                 {"bias_hh", {rows}}}) {
    const int64_t size = Shape(shape).num_elements();
    parts[name] = reshape(slice(b, 0, begin, begin + size), shape);
    begin += size;
  }
  return nn::ParameterValues(module, [parts](const nn::Parameter& parameter) {
    for (const auto& [name, part] : parts) {
      if (parameter.path().find(name) != std::string::npos) return part;
    }
    return Var();
  });
}

constexpr int64_t kIn = 4, kHidden = 2;

Var RunLayer(nn::Recurrent& layer, Var a, Var b, int64_t gates) {
  const nn::ParameterValues values = OutOf(b, layer, gates * kHidden, kIn, kHidden);
  return layer(a);
}

Var RunRnn(Var a, Var b, bool uses_relu) {
  static nn::RNN& with_tanh = *new nn::RNN(nullptr, "tanh", kIn, kHidden);
  static nn::RNN& with_relu = *new nn::RNN(nullptr, "relu", kIn, kHidden, {}, true);
  return RunLayer(uses_relu ? with_relu : with_tanh, a, b, 1);
}

// The results of all elements, one after the other.
template <typename Cell, typename Step>
Var RunCell(Var a, Var b, int64_t gates, const Step& step) {
  static Cell& cell = *new Cell(nullptr, "cell", kIn, kHidden);
  const nn::ParameterValues values = OutOf(b, cell, gates * kHidden, kIn, kHidden);
  Var h, c;
  std::vector<Var> results;
  for (const Var& x : unbind(a, 1)) {
    h = step(cell, x, h, &c);
    results.push_back(h);
  }
  return stack(results, 1);
}

Var Padded(Var a, PadMode mode) {
  return pad(pad(reshape(a, {2, 1, 3, 4}), 3, 2, 1, mode), -2, 1, 2, mode);
}

Var RunBilinear(Var a, Var b) {
  static nn::Bilinear& layer = *new nn::Bilinear(nullptr, "layer", 4, 4, 3, /*has_bias=*/false);
  const nn::ParameterValues values(layer, [&](const nn::Parameter&) { return b; });
  return layer(a, flip(a, 2));
}

Var SumOfBags(Var a, Var table, nn::BagMode mode, bool has_padding, Var weights = {}) {
  nn::EmbeddingOptions options;
  if (has_padding) options.padding_idx = 1;
  nn::EmbeddingBag bag(nullptr, "bag", 5, 4, mode, options);
  const nn::ParameterValues values(bag, [&](const nn::Parameter&) { return table; });
  return bag(constant({3, 2}, std::vector<int64_t>{0, 3, 1, 4, 1, 1}), weights) * select(a, 0, 0);
}

BceOptions WeightsOf(Var b) {
  BceOptions options;
  options.weight = stop_gradient(abs(select(b, 0, 0)));
  options.reduction = Reduction::kNone;
  return options;
}

Var WithBiasOfKeys(Var a, Var b) {
  AttentionOptions options;
  options.bias = b;
  return attention(a, flip(a, 1), square(a), options);
}

}  // namespace

const std::map<std::string, Function>& ModuleFunctions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"pad_reflect", [](Var a, Var b) { return Padded(a, PadMode::kReflect) * b; }},
      {"pad_replicate", [](Var a, Var b) { return Padded(a, PadMode::kReplicate) * b; }},
      {"pad_circular", [](Var a, Var b) { return Padded(a, PadMode::kCircular) * b; }},
      {"channel_shuffle",
       [](Var a, Var b) {
         return channel_shuffle(reshape(a, {1, 6, 2, 2}), 3) * b;
       }},
      {"layer_norm_of_two_dims", [](Var a, Var b) { return layer_norm(a, b, b * b); }},
      {"rms_norm_of_two_dims", [](Var a, Var b) { return rms_norm(a, b); }},
      {"meshgrid",
       [](Var a, Var b) {
         const Var first = select(select(a, 0, 0), 0, 0), last = select(select(a, 0, 1), 1, 0);
         return stack(meshgrid({first, b, last}));
       }},
      {"adaptive_max_pool2d",
       [](Var a, Var b) {
         return adaptive_max_pool2d(reshape(a, {2, 1, 3, 4}), {2, 3}) * b;
       }},
      {"adaptive_avg_pool1d", [](Var a, Var b) { return adaptive_avg_pool1d(a, 3) * b; }},
      {"group_norm_alone",
       [](Var a, Var b) {
         return group_norm(reshape(a, {2, 6, 2}), 3) * b;
       }},
      {"instance_norm", [](Var a, Var b) { return instance_norm(a) * b; }},
      {"bilinear", RunBilinear},
      {"rnn", [](Var a, Var b) { return RunRnn(a, b, /*uses_relu=*/false); }},
      {"rnn_relu", [](Var a, Var b) { return RunRnn(a, b, /*uses_relu=*/true); }},
      {"adaptive_max_pool2d_of_equal_windows",
       [](Var a, Var b) {
         return adaptive_max_pool2d(reshape(a, {2, 1, 3, 4}), {1, 2}) * b;
       }},
      {"lstm",
       [](Var a, Var b) {
         static nn::LSTM& layer = *new nn::LSTM(nullptr, "lstm", kIn, kHidden);
         return RunLayer(layer, a, b, 4);
       }},
      {"gru",
       [](Var a, Var b) {
         static nn::GRU& layer = *new nn::GRU(nullptr, "gru", kIn, kHidden);
         return RunLayer(layer, a, b, 3);
       }},
      {"rnn_cell",
       [](Var a, Var b) {
         return RunCell<nn::RNNCell>(a, b, 1,
                                     [](auto& cell, Var x, Var h, Var*) { return cell(x, h); });
       }},
      {"gru_cell",
       [](Var a, Var b) {
         return RunCell<nn::GRUCell>(a, b, 3,
                                     [](auto& cell, Var x, Var h, Var*) { return cell(x, h); });
       }},
      {"bce_with_weights",
       [](Var a, Var b) {
         BceOptions options = WeightsOf(b);
         options.pos_weight = constant({4}, std::vector<float>{0.5f, 2.0f, 3.0f, 1.0f});
         return bce_with_logits(a, sigmoid(b), options);
       }},
      {"binary_cross_entropy",
       [](Var a, Var b) { return binary_cross_entropy(sigmoid(a), sigmoid(b), WeightsOf(b)); }},
      {"embedding_bag_sum", [](Var a, Var b) { return SumOfBags(a, b, nn::BagMode::kSum, true); }},
      {"embedding_bag_mean",
       [](Var a, Var b) { return SumOfBags(a, b, nn::BagMode::kMean, true); }},
      {"embedding_bag_max", [](Var a, Var b) { return SumOfBags(a, b, nn::BagMode::kMax, true); }},
      {"embedding_bag_weighted",
       [](Var a, Var b) {
         const std::vector<float> weights = {0.5f, 2.0f, 1.0f, -1.0f, 0.0f, 3.0f};
         return SumOfBags(a, b, nn::BagMode::kSum, false, constant({3, 2}, weights));
       }},
      {"layer_norm_without_parameters", [](Var a, Var b) { return layer_norm(a) * b; }},
      {"attention_with_a_bias_of_keys", WithBiasOfKeys},
      {"constants",
       [](Var a, Var b) {
         const Var picked = index_select(a, 2, constant({3}, std::vector<int64_t>{3, 0, 0}));
         return picked * constant({3}, std::vector<float>{0.1f, -2.5f, 7.0f}) * b;
       }},
      {"lstm_cell",
       [](Var a, Var b) {
         return RunCell<nn::LSTMCell>(
             a, b, 4, [](auto& cell, Var x, Var h, Var* c) { return cell(x, h, c); });
       }},
  };
  return *functions;
}

}  // namespace zg
