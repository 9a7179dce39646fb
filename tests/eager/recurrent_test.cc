// Recurrent layers compute a whole sequence in one node: what a loop over the elements gives.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kIn = 5, kHidden = 19, kSamples = 3, kSteps = 6;

// Numbers between -0.5 and 0.5 that differ from one `salt` to the next.
Floats Numbers(int64_t count, double salt) {
  Floats numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(0.5 * std::sin(12.9898 * static_cast<double>(i) + salt)));
  }
  return numbers;
}

// The parameters of a layer, or of a cell, of so many gates.
class Parameters {
 public:
  Parameters(Eager& eager, int64_t gates)
      : weight_ih_(Make(eager, {gates * kHidden, kIn}, 1.0)),
        weight_hh_(Make(eager, {gates * kHidden, kHidden}, 2.0)),
        bias_ih_(Make(eager, {gates * kHidden}, 3.0)),
        bias_hh_(Make(eager, {gates * kHidden}, 4.0)) {}

  Var operator()(const nn::Parameter& parameter) const {
    const std::string& path = parameter.path();
    const auto has = [&](const char* part) { return path.find(part) != std::string::npos; };
    if (has("weight")) return has("weight_ih") ? weight_ih_ : weight_hh_;
    return has("bias_ih") ? bias_ih_ : bias_hh_;
  }

  std::vector<Tensor> all() const { return {weight_ih_, weight_hh_, bias_ih_, bias_hh_}; }

 private:
  static Tensor Make(Eager& eager, const Shape& shape, double salt) {
    const Tensor tensor = eager.f32(shape, Numbers(shape.num_elements(), salt));
    tensor.require_grad();
    return tensor;
  }

  Tensor weight_ih_, weight_hh_, bias_ih_, bias_hh_;
};

struct Case {
  const char* name;
  int64_t gates;
  std::function<std::unique_ptr<nn::Recurrent>(const nn::RecurrentOptions&)> layer;
  // The cell's parameters are those given when it is called: (x, h, c) -> h'.
  std::function<Var(const Parameters&, Var x, Var h, Var* c)> cell;
};

template <typename Layer, typename Cell, typename... Arguments>
Case Of(const char* name, int64_t gates, Arguments... arguments) {
  Case made;
  made.name = name;
  made.gates = gates;
  made.layer = [=](const nn::RecurrentOptions& options) {
    return std::make_unique<Layer>(nullptr, "layer", kIn, kHidden, options, arguments...);
  };
  auto cell = std::make_shared<Cell>(nullptr, "cell", kIn, kHidden, arguments...);
  made.cell = [cell](const Parameters& parameters, Var x, Var h, Var* c) {
    const nn::ParameterValues values(*cell, parameters);
    if constexpr (std::is_same_v<Cell, nn::LSTMCell>) {
      return (*cell)(x, h, c);
    } else {
      return (*cell)(x, h);
    }
  };
  return made;
}

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      Of<nn::LSTM, nn::LSTMCell>("LSTM", 4), Of<nn::GRU, nn::GRUCell>("GRU", 3),
      Of<nn::RNN, nn::RNNCell>("RNN", 1, false),
      Of<nn::RNN, nn::RNNCell>("RNN with relu", 1, true)};
  return *cases;
}

// The states of a loop over the elements, in their order.
Var Loop(const Case& of, const Parameters& parameters, Var x, bool from_end) {
  std::vector<Var> elements = unbind(x, 1);
  if (from_end) elements = std::vector<Var>(elements.rbegin(), elements.rend());
  Var h, c;
  std::vector<Var> states;
  for (const Var& element : elements) {
    h = of.cell(parameters, element, h, &c);
    states.push_back(h);
  }
  if (from_end) states = std::vector<Var>(states.rbegin(), states.rend());
  return stack(states, 1);
}

// The gradients of x and of the parameters, for a loss that weighs the states.
std::vector<Floats> Gradients(Eager& eager, const Tensor& x, const Parameters& parameters,
                              Var states) {
  const int64_t count = states.shape().num_elements();
  const Tensor weights = eager.f32(states.shape(), Numbers(count, 7.0));
  Tensor(sum(states * weights)).backward();
  std::vector<Floats> gradients = {x.grad().values()};
  for (const Tensor& parameter : parameters.all()) gradients.push_back(parameter.grad().values());
  eager.zero_grad();
  return gradients;
}

void ExpectClose(const std::vector<Floats>& got, const std::vector<Floats>& wanted) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (size_t k = 0; k < got[i].size(); ++k) ASSERT_NEAR(got[i][k], wanted[i][k], 2e-6);
  }
}

Tensor Signal(Eager& eager) {
  const Tensor x = eager.f32({kSamples, kSteps, kIn}, Numbers(kSamples * kSteps * kIn, 5.0));
  x.require_grad();
  return x;
}

TEST(Recurrent, LayersAreLoopsOfTheirCells) {
  for (const Case& of : Cases()) {
    SCOPED_TRACE(of.name);
    for (const bool from_end : {false, true}) {
      Eager eager;
      const Tensor x = Signal(eager);
      const Parameters parameters(eager, of.gates);
      nn::RecurrentOptions options;
      options.bidirectional = from_end;
      const std::unique_ptr<nn::Recurrent> layer = of.layer(options);
      const nn::ParameterValues values(*layer, parameters);
      Var states = (*layer)(x);
      if (from_end) states = slice(states, -1, kHidden, 2 * kHidden);
      const Var expected = Loop(of, parameters, x, from_end);
      EXPECT_EQ(Tensor(states).values(), Tensor(expected).values());
      ExpectClose(Gradients(eager, x, parameters, states),
                  Gradients(eager, x, parameters, expected));
    }
  }
}

// State goes from one part of a sequence to the next, and so do gradients.
TEST(Recurrent, PartsOfASequenceMakeTheWhole) {
  for (const Case& of : Cases()) {
    SCOPED_TRACE(of.name);
    Eager eager;
    const Tensor x = Signal(eager);
    const Parameters parameters(eager, of.gates);
    const std::unique_ptr<nn::Recurrent> layer = of.layer({});
    const nn::ParameterValues values(*layer, parameters);
    nn::RecurrentState state, whole_state;
    std::vector<Var> parts;
    for (const Var& part : chunk(x, 3, 1)) parts.push_back((*layer)(part, &state));
    const Var whole = (*layer)(x, &whole_state);
    EXPECT_EQ(Tensor(concat(parts, 1)).values(), Tensor(whole).values());
    EXPECT_EQ(Tensor(state.h[0]).values(), Tensor(whole_state.h[0]).values());
    if (of.gates == 4) {
      EXPECT_EQ(Tensor(state.c[0]).values(), Tensor(whole_state.c[0]).values());
    }
    ExpectClose(Gradients(eager, x, parameters, concat(parts, 1)),
                Gradients(eager, x, parameters, whole));
  }
}

// A loss of the last cells alone.
TEST(Recurrent, GradientsOfCells) {
  Eager eager;
  const Tensor x = Signal(eager);
  const Parameters parameters(eager, 4);
  nn::LSTM layer(nullptr, "layer", kIn, kHidden);
  const nn::ParameterValues values(layer, parameters);
  nn::RecurrentState state;
  layer(x, &state);
  Var h, c;
  for (const Var& element : unbind(x, 1)) h = Cases()[0].cell(parameters, element, h, &c);
  EXPECT_EQ(Tensor(state.c[0]).values(), Tensor(c).values());
  ExpectClose(Gradients(eager, x, parameters, state.c[0]), Gradients(eager, x, parameters, c));
}

// A sequence that is shorter than the others computes what it does alone.
TEST(Recurrent, SequencesOfSeveralLengths) {
  const std::vector<int64_t> lengths = {4, kSteps, 1};
  for (const Case& of : Cases()) {
    SCOPED_TRACE(of.name);
    Eager eager;
    const Tensor x = Signal(eager);
    const Parameters parameters(eager, of.gates);
    nn::RecurrentOptions options;
    options.bidirectional = true;
    const std::unique_ptr<nn::Recurrent> layer = of.layer(options);
    const nn::ParameterValues values(*layer, parameters);
    nn::RecurrentState state;
    const Var together = (*layer)(x, &state, eager.i64({kSamples}, lengths));
    std::vector<Var> alone;
    for (int64_t n = 0; n < kSamples; ++n) {
      nn::RecurrentState own;
      const Var part = slice(slice(x, 0, n, n + 1), 1, 0, lengths[n]);
      alone.push_back(pad((*layer)(part, &own), 1, 0, kSteps - lengths[n]));
      for (int direction = 0; direction < 2; ++direction) {
        EXPECT_EQ(Tensor(slice(state.h[direction], 0, n, n + 1)).values(),
                  Tensor(own.h[direction]).values());
        if (of.gates != 4) continue;
        EXPECT_EQ(Tensor(slice(state.c[direction], 0, n, n + 1)).values(),
                  Tensor(own.c[direction]).values());
      }
    }
    EXPECT_EQ(Tensor(together).values(), Tensor(concat(alone, 0)).values());
    ExpectClose(Gradients(eager, x, parameters, together),
                Gradients(eager, x, parameters, concat(alone, 0)));
  }
}

TEST(RecurrentDeathTest, WrongLengths) {
  Eager eager;
  const Tensor x = Signal(eager);
  nn::GRU gru(nullptr, "gru", kIn, kHidden);
  EXPECT_EXIT(gru(x, nullptr, eager.i64({2}, {1, 1})), ::testing::ExitedWithCode(1),
              "gru: got lengths i64\\[2\\], expected i64\\[3\\]");
  nn::RecurrentState state;
  EXPECT_EXIT(gru(x, &state, eager.i64({3}, {1, 2, kSteps + 1})), ::testing::ExitedWithCode(1),
              "the dim has elements 0 to 5");
}

TEST(RecurrentDeathTest, WrongStates) {
  Eager eager;
  const Tensor x = Signal(eager);
  nn::LSTM lstm(nullptr, "lstm", kIn, kHidden);
  nn::RecurrentState state;
  state.h = {eager.f32({kSamples, kHidden}, Numbers(kSamples * kHidden, 1.0))};
  EXPECT_EXIT(lstm(x, &state), ::testing::ExitedWithCode(1),
              "lstm: got a state h without c, or c without h, expected both or neither");
  nn::GRU gru(nullptr, "gru", kIn, kHidden);
  state.h = {eager.f32({1, kHidden}, Numbers(kHidden, 1.0))};
  EXPECT_EXIT(
      gru(x, &state), ::testing::ExitedWithCode(1),
      "gru: h is not \\(samples, channels\\): x f32\\[3,6,57\\], weight f32\\[57,19\\], bias "
      "f32\\[57\\], h f32\\[1,19\\]");
}

}  // namespace
}  // namespace zg
