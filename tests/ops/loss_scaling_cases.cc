#include <algorithm>
#include <cmath>

#include "framework/base/exact_sum.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The state: {k - initial_exponent, steps since k changed, updates done, steps skipped in a row}.
using State = std::vector<double>;

double ScaleOf(const ReferenceCall& call, const State& state) {
  return std::exp2(static_cast<double>(call.attributes.Int("initial_exponent")) + state[0]);
}

ReferenceOutputs LossSeed(const ReferenceCall& call) {
  return {{call.attributes.Float("value") * ScaleOf(call, call.inputs[0].values)}};
}

ReferenceOutputs ScaledUpdateControl(const ReferenceCall& call) {
  double sum = 0;
  for (size_t input = 0; input + 1 < call.inputs.size(); ++input) {
    const std::vector<double>& words = call.inputs[input].values;
    for (int i = 0; i < kExactSumWords - 2; ++i) sum += std::ldexp(words[i], 32 * i - 320);
    if (words[kExactSumWords - 2] > 0) sum += HUGE_VAL;
    if (words[kExactSumWords - 1] > 0) sum += NAN;
  }
  State state = call.inputs.back().values;
  const double scale = ScaleOf(call, state);
  const double norm = std::sqrt(sum) / scale;
  const double update = state[2] + 1;
  if (!std::isfinite(norm)) {
    return {{0.0, update}, {norm}, {state[0] - 1, 0.0, state[2], state[3] + 1}};
  }
  const double max_norm = call.attributes.Float("max_norm");
  const double clip = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
  const bool grows = state[1] + 1 == static_cast<double>(call.attributes.Int("growth_interval"));
  return {{clip / scale, update},
          {norm},
          {state[0] + (grows ? 1 : 0), grows ? 0.0 : state[1] + 1, update, 0.0}};
}

OpCase Seed(const char* label, const State& state, int64_t initial_exponent) {
  return {.op = "loss_seed",
          .label = label,
          .inputs = {F32({4})},
          .attributes = {{"value", 0.25}, {"initial_exponent", initial_exponent}},
          .reference = LossSeed,
          .prepare = [state](ReferenceCall& call) { call.inputs[0].values = state; },
          .tolerance = 0,
          .f32_inputs = {0}};
}

// With two square sums; `special_word` of the second one counts terms that are not finite.
OpCase Control(const char* label, const State& state, double max_norm, int special_word = -1) {
  const InputSpec words = I64({kExactSumWords}, int64_t{1} << 40);
  OpCase op_case;
  op_case.op = "scaled_update_control";
  op_case.label = label;
  op_case.inputs = {words, words, F32({4})};
  op_case.attributes = {{"max_norm", max_norm}, {"growth_interval", int64_t{50}}};
  op_case.reference = ScaledUpdateControl;
  op_case.prepare = [state, special_word](ReferenceCall& call) {
    for (int input : {0, 1}) {
      std::vector<double> taken(kExactSumWords);
      for (int i = 9; i <= 11; ++i) taken[i] = call.inputs[input].values[i];
      call.inputs[input].values = taken;
    }
    if (special_word >= 0) call.inputs[1].values[special_word] = 3;
    call.inputs[2].values = state;
  };
  op_case.tolerance = 1e-6;
  op_case.f32_inputs = {2};
  return op_case;
}

}  // namespace

FamilyCases LossScalingCases() {
  constexpr int kInfinities = kExactSumWords - 2;
  constexpr int kNaNs = kExactSumWords - 1;
  const State first = {0, 0, 0, 0};
  const State later = {-3, 7, 120, 2};
  FamilyCases family;
  family.cases = {
      Seed("first step", first, 16),           Seed("smaller than one", later, 1),
      Seed("larger", {5, 7, 120, 0}, 10),      Control("first step", first, 0.0),
      Control("clipped", later, 0.5),          Control("not clipped", later, 1e12),
      Control("grows", {-3, 49, 120, 0}, 0.0), Control("an infinity", later, 0.5, kInfinities),
      Control("NaN", first, 0.0, kNaNs)};
  const InputSpec words = I64({kExactSumWords}, 2);
  family.rejections = {
      {"loss_seed", {F32({3})}, {{"value", 1.0}}, "loss_seed: state is not f32[4]: state f32[3]"},
      {"scaled_update_control",
       {F32({4}), words},
       {},
       "scaled_update_control: input 0 is f32[4], expected i64[21]"},
      {"scaled_update_control",
       {words, words},
       {},
       "scaled_update_control: input 1 is i64[21], expected f32[4]"},
      {"scaled_update_control",
       {words, F32({4})},
       {{"max_norm", -1.0}},
       "scaled_update_control: max_norm is -1, expected 0 <= max_norm"}};
  family.exact_on_gpu = {"loss_seed", "scaled_update_control"};
  return family;
}

}  // namespace zg::testing
