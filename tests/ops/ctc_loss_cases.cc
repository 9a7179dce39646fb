#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// One sample's inputs, from input `first` of the call on.
struct Sample {
  Sample(const ReferenceCall& call, size_t first, int64_t number) {
    const Shape& shape = call.inputs[first].shape;
    steps = static_cast<int64_t>(call.inputs[first + 2].values[number]);
    classes = shape.dim(2);
    log_probabilities = call.inputs[first].values.data() + number * shape.dim(1) * classes;
    const int64_t labels = call.inputs[first + 1].shape.dim(1);
    for (int64_t i = 0; i < call.inputs[first + 3].values[number]; ++i) {
      target.push_back(static_cast<int64_t>(call.inputs[first + 1].values[number * labels + i]));
    }
    blank = call.attributes.Int("blank");
  }

  // Calls f(path, its probability) for all paths whose text is the target.
  template <typename F>
  void ForPaths(const F& f) const {
    std::vector<int64_t> path(steps, 0);
    for (;;) {
      double probability = 1.0;
      std::vector<int64_t> text;
      for (int64_t t = 0; t < steps; ++t) {
        probability *= std::exp(log_probabilities[t * classes + path[t]]);
        const bool repeats = t > 0 && path[t] == path[t - 1];
        if (path[t] != blank && !repeats) text.push_back(path[t]);
      }
      if (text == target) f(path, probability);
      int64_t t = 0;
      while (t < steps && ++path[t] == classes) path[t++] = 0;
      if (t == steps) return;
    }
  }

  double Probability() const {
    double sum = 0.0;
    ForPaths([&](const std::vector<int64_t>&, double probability) { sum += probability; });
    return sum;
  }

  int64_t steps;
  int64_t classes;
  const double* log_probabilities;
  std::vector<int64_t> target;
  int64_t blank;
};

// By the definition: a sum over all paths.
ReferenceOutputs CtcLoss(const ReferenceCall& call) {
  std::vector<double> losses;
  for (int64_t n = 0; n < call.inputs[0].shape.dim(0); ++n) {
    losses.push_back(-std::log(Sample(call, 0, n).Probability()));
  }
  return {losses};
}

ReferenceOutputs CtcLossGrad(const ReferenceCall& call) {
  std::vector<double> gradient(call.inputs[1].values.size(), 0.0);
  const Shape& shape = call.inputs[1].shape;
  for (int64_t n = 0; n < shape.dim(0); ++n) {
    const Sample sample(call, 1, n);
    const double all = sample.Probability();
    double* const own = gradient.data() + n * shape.dim(1) * shape.dim(2);
    sample.ForPaths([&](const std::vector<int64_t>& path, double probability) {
      for (int64_t t = 0; t < sample.steps; ++t) {
        own[t * sample.classes + path[t]] -= call.inputs[0].values[n] * probability / all;
      }
    });
  }
  return {gradient};
}

// Possible lengths and labels, from the random ones.
void MakePossible(ReferenceCall& call) {
  const size_t first = call.inputs.size() - 4;
  const int64_t steps = call.inputs[first].shape.dim(1), classes = call.inputs[first].shape.dim(2);
  const int64_t blank = call.attributes.Int("blank");
  for (double& label : call.inputs[first + 1].values) {
    if (label == static_cast<double>(blank)) {
      label = static_cast<double>(blank == 0 ? classes - 1 : blank - 1);
    }
  }
  std::vector<double>& input_lengths = call.inputs[first + 2].values;
  std::vector<double>& target_lengths = call.inputs[first + 3].values;
  const int64_t labels = call.inputs[first + 1].shape.dim(1);
  for (size_t n = 0; n < input_lengths.size(); ++n) {
    target_lengths[n] = static_cast<double>(n % (labels + 1));
    // A label that repeats the one before it takes a blank between them.
    const int64_t least = std::max<int64_t>(1, std::min<int64_t>(steps, 2 * labels - 1));
    input_lengths[n] = static_cast<double>(steps - n % (steps - least + 1));
  }
}

OpCase Of(std::string label, int64_t samples, int64_t steps, int64_t classes, int64_t labels,
          int64_t blank = 0) {
  return {.op = "ctc_loss",
          .label = std::move(label),
          .inputs = {F32({samples, steps, classes}), I64({samples, labels}, classes),
                     I64({samples}, 2), I64({samples}, 2)},
          .attributes = {{"blank", blank}},
          .reference = CtcLoss,
          .prepare = MakePossible,
          .is_f32_only = true};
}

OpCase GradOf(const OpCase& loss) {
  OpCase grad = loss;
  grad.op = "ctc_loss_grad";
  grad.inputs.insert(grad.inputs.begin(), F32({loss.inputs[0].type.shape.dim(0)}));
  grad.reference = CtcLossGrad;
  return grad;
}

}  // namespace

FamilyCases CtcLossCases() {
  FamilyCases family;
  family.cases = {
      Of("of few labels", 6, 5, 3, 2),
      Of("of one step", 2, 1, 4, 1),
      Of("with the last class as the blank", 3, 6, 4, 3, 3),
      Of("of repeated labels", 3, 7, 2, 3),
  };
  for (const OpCase& loss : std::vector<OpCase>(family.cases)) {
    family.cases.push_back(GradOf(loss));
  }
  family.rejections = {
      {"ctc_loss",
       {F32({2, 5}), I64({2, 3}, 4), I64({2}, 5), I64({2}, 3)},
       {},
       "ctc_loss: log_probabilities are not f32 (samples, steps, classes): log_probabilities "
       "f32[2,5], targets i64[2,3], input_lengths i64[2], target_lengths i64[2]"},
      {"ctc_loss",
       {F32({2, 5, 4}), I64({3, 3}, 4), I64({2}, 5), I64({2}, 3)},
       {},
       "ctc_loss: targets are not i64 (samples, labels): log_probabilities f32[2,5,4], targets "
       "i64[3,3], input_lengths i64[2], target_lengths i64[2]"},
      {"ctc_loss",
       {F32({2, 5, 4}), I64({2, 3}, 4), I64({2}, 5), F32({2})},
       {},
       "ctc_loss: target_lengths are not i64 (samples): log_probabilities f32[2,5,4], targets "
       "i64[2,3], input_lengths i64[2], target_lengths f32[2]"},
      {"ctc_loss",
       {F32({2, 5, 4}), I64({2, 3}, 4), I64({2}, 5), I64({2}, 3)},
       {{"blank", int64_t{4}}},
       "ctc_loss: got the blank 4, expected one of the classes: log_probabilities f32[2,5,4], "
       "targets i64[2,3], input_lengths i64[2], target_lengths i64[2]"},
      {"ctc_loss_grad",
       {F32({3}), F32({2, 5, 4}), I64({2, 3}, 4), I64({2}, 5), I64({2}, 3)},
       {},
       "ctc_loss_grad: dloss is not f32 (samples): dloss f32[3], log_probabilities f32[2,5,4], "
       "targets i64[2,3], input_lengths i64[2], target_lengths i64[2]"},
  };
  const auto sized = [](const char* label, int64_t samples, int64_t steps, int64_t classes,
                        int64_t labels) {
    OpCase loss = Of(label, samples, steps, classes, labels);
    loss.reference = nullptr;
    loss.inputs[0] = F32({samples, steps, classes}, -6.0, 0.0);
    return loss;
  };
  family.large = {sized("many labels", 3, 700, 29, 300)};
  family.large.push_back(GradOf(family.large[0]));
  family.large[1].reference = nullptr;
  family.bench = {sized("speech", 16, 400, 29, 60)};
  family.bench.push_back(GradOf(family.bench[0]));
  family.bench[1].reference = nullptr;
  return family;
}

}  // namespace zg::testing
