#include <cmath>
#include <tuple>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs MseLoss(const ReferenceCall& call) {
  double sum = 0.0;
  for (size_t i = 0; i < call.inputs[0].values.size(); ++i) {
    sum += std::pow(call.inputs[0].values[i] - call.inputs[1].values[i], 2);
  }
  return {{sum / call.attributes.Float("divisor")}};
}

ReferenceOutputs MseLossGrad(const ReferenceCall& call) {
  const double scale = 2.0 * call.inputs[0].values[0] / call.attributes.Float("divisor");
  std::vector<double> gradient = call.inputs[1].values;
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = scale * (gradient[i] - call.inputs[2].values[i]);
  }
  return {gradient};
}

ReferenceOutputs SoftmaxCrossEntropy(const ReferenceCall& call) {
  const ReferenceTensor& logits = call.inputs[0];
  const int64_t columns = Columns(logits);
  double loss = 0.0;
  std::vector<double> log_sum_exp;
  for (int64_t row = 0; row < RowsOf(logits); ++row) {
    const double* const values = logits.values.data() + row * columns;
    double sum = 0.0;
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(values[i]);
    log_sum_exp.push_back(std::log(sum));
    loss += std::log(sum) - values[static_cast<int64_t>(call.inputs[1].values[row])];
  }
  return {{loss / call.attributes.Float("divisor")}, log_sum_exp};
}

ReferenceOutputs SoftmaxCrossEntropyGrad(const ReferenceCall& call) {
  const double scale = call.inputs[0].values[0] / call.attributes.Float("divisor");
  const int64_t columns = Columns(call.inputs[1]);
  std::vector<double> gradient = call.inputs[1].values;
  const auto target_of = [&](int64_t row) {
    return FindInParts(call, 4, columns, static_cast<int64_t>(call.inputs[2].values[row]));
  };
  for (size_t i = 0; i < gradient.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / columns;
    const bool is_target = static_cast<int64_t>(i) % columns == target_of(row);
    gradient[i] =
        scale * (std::exp(gradient[i] - call.inputs[3].values[row]) - (is_target ? 1.0 : 0.0));
  }
  return {gradient};
}

ReferenceOutputs SoftmaxCrossEntropyWithGrad(const ReferenceCall& call) {
  const std::vector<ReferenceTensor>& inputs = call.inputs;
  const ReferenceOutputs loss =
      SoftmaxCrossEntropy({{inputs[1], inputs[2]}, call.attributes, call.step});
  ReferenceCall grad = call;
  grad.inputs.push_back(inputs[0]);
  grad.inputs[3].values = loss[1];
  grad.attributes.Set("parts", int64_t{1});
  return {loss[0], SoftmaxCrossEntropyGrad(grad)[0]};
}

// Input 3 becomes the log_sum_exp of input 1.
void TakeLogSumExp(ReferenceCall& call) {
  call.inputs[3].values =
      SoftmaxCrossEntropy({{call.inputs[1], call.inputs[2]}, call.attributes, call.step})[1];
}

// Every third logit and the first 40 of a row become -infinity, except the target's.
void HideClasses(ReferenceTensor* logits, const ReferenceTensor& targets) {
  const int64_t columns = Columns(*logits);
  for (int64_t i = 0; i < static_cast<int64_t>(logits->values.size()); ++i) {
    const int64_t column = i % columns;
    if (static_cast<double>(column) == targets.values[i / columns]) continue;
    if (column < 40 || column % 3 == 0) logits->values[i] = -INFINITY;
  }
}

enum class Target { kAsPrediction, kF32 };

void AddMse(std::string label, const Shape& shape, Target target, std::vector<OpCase>* cases) {
  const bool is_f32 = target == Target::kF32;
  const ir::Attributes attributes = {{"divisor", 35.0}};
  const bool small = shape.num_elements() < 1000;
  cases->push_back({.op = "mse_loss",
                    .label = label,
                    .inputs = {F32(shape), F32(shape)},
                    .attributes = attributes,
                    .reference = MseLoss,
                    .check_gradient = small,
                    .f32_inputs = is_f32 ? std::vector<int>{1} : std::vector<int>{}});
  cases->push_back({.op = "mse_loss_grad",
                    .label = label,
                    .inputs = {F32({}), F32(shape), F32(shape)},
                    .attributes = attributes,
                    .reference = MseLossGrad,
                    .f32_inputs = is_f32 ? std::vector<int>{0, 2} : std::vector<int>{0}});
}

void AddCrossEntropy(std::string label, const Shape& rows, int64_t classes,
                     std::vector<OpCase>* cases) {
  std::vector<int64_t> dims = rows.dims();
  dims.push_back(classes);
  const Shape logits(dims);
  const ir::Attributes attributes = {{"divisor", 5.0}};
  const bool small = logits.num_elements() < 1000;
  cases->push_back({.op = "softmax_cross_entropy",
                    .label = label,
                    .inputs = {F32(logits, -3.0, 3.0), I64(rows, classes)},
                    .attributes = attributes,
                    .reference = SoftmaxCrossEntropy,
                    .check_gradient = small});
  cases->push_back({.op = "softmax_cross_entropy_grad",
                    .label = label,
                    .inputs = {F32({}), F32(logits, -3.0, 3.0), I64(rows, classes), F32(rows)},
                    .attributes = attributes,
                    .reference = SoftmaxCrossEntropyGrad,
                    .prepare = TakeLogSumExp,
                    .f32_inputs = {0, 3}});
  cases->push_back({.op = "softmax_cross_entropy_with_grad",
                    .label = label,
                    .inputs = {F32({}), F32(logits, -3.0, 3.0), I64(rows, classes)},
                    .attributes = attributes,
                    .reference = SoftmaxCrossEntropyWithGrad,
                    .f32_inputs = {0}});
}

// Logits of which a call has `own` of `parts` parts of two classes, from `first` on.
void AddGradOfParts(std::string label, const Shape& rows, int64_t own, int64_t parts, int64_t first,
                    std::vector<OpCase>* cases) {
  std::vector<int64_t> dims = rows.dims();
  dims.push_back(2 * own);
  const Shape logits(dims);
  cases->push_back({.op = "softmax_cross_entropy_grad",
                    .label = std::move(label),
                    .inputs = {F32({}), F32(logits, -3.0, 3.0), I64(rows, 2 * parts),
                               F32(rows, 2.0, 4.0), I64({own}, 1)},
                    .attributes = {{"divisor", 5.0}, {"parts", parts}},
                    .reference = SoftmaxCrossEntropyGrad,
                    .prepare = [first](ReferenceCall& call) { NumberParts(call, 4, first); },
                    .f32_inputs = {0, 3}});
}

void AddHiddenClasses(std::vector<OpCase>* cases) {
  std::vector<OpCase> hidden;
  AddCrossEntropy("hidden classes", {3}, 1003, &hidden);
  hidden[0].prepare = [](ReferenceCall& call) { HideClasses(&call.inputs[0], call.inputs[1]); };
  hidden[1].prepare = [](ReferenceCall& call) {
    HideClasses(&call.inputs[1], call.inputs[2]);
    TakeLogSumExp(call);
  };
  hidden[2].prepare = [](ReferenceCall& call) { HideClasses(&call.inputs[1], call.inputs[2]); };
  cases->insert(cases->end(), hidden.begin(), hidden.end());
}

}  // namespace

FamilyCases LossesCases() {
  FamilyCases family;
  AddMse("odd", {5, 7}, Target::kF32, &family.cases);
  AddMse("scalar", {}, Target::kAsPrediction, &family.cases);
  AddMse("many elements", {3, 3001}, Target::kF32, &family.cases);
  AddMse("splits", {6, 6, 6}, Target::kAsPrediction, &family.cases);
  AddCrossEntropy("odd", {5}, 7, &family.cases);
  AddCrossEntropy("one row", {}, 3, &family.cases);
  AddCrossEntropy("many classes", {19}, 1003, &family.cases);
  AddCrossEntropy("splits", {6, 6}, 5, &family.cases);
  AddHiddenClasses(&family.cases);
  AddGradOfParts("parts", {19}, 2, 5, 2, &family.cases);
  AddGradOfParts("all parts", {6}, 6, 6, 0, &family.cases);
  const ir::Attributes divisor = {{"divisor", 5.0}};
  family.rejections = {
      {"mse_loss",
       {F32({5, 7}), F32({7, 5})},
       divisor,
       "mse_loss: shapes of prediction and target differ: prediction f32[5,7], target f32[7,5]"},
      {"mse_loss",
       {F32({5}), {{DType::kBF16, {5}}}},
       divisor,
       "mse_loss: dtypes differ: prediction f32[5], target bf16[5]"},
      {"mse_loss",
       {F32({5}), F32({5})},
       {{"divisor", 0.0}},
       "mse_loss: divisor is 0, expected divisor > 0"},
      {"mse_loss_grad",
       {F32({1}), F32({5}), F32({5})},
       divisor,
       "mse_loss_grad: dloss is not f32[]: dloss f32[1], prediction f32[5], target f32[5]"},
      {"softmax_cross_entropy",
       {F32({5, 7}), I64({7}, 7)},
       divisor,
       "softmax_cross_entropy: targets are not one index per row of logits: logits f32[5,7], "
       "targets i64[7]"},
      {"softmax_cross_entropy",
       {F32({5, 7}), F32({5})},
       divisor,
       "softmax_cross_entropy: targets are not i64: logits f32[5,7], targets f32[5]"},
      {"softmax_cross_entropy_grad",
       {F32({}), F32({5, 7}), I64({5}, 7), F32({7})},
       divisor,
       "softmax_cross_entropy_grad: log_sum_exp is not one f32 per row of logits: dloss f32[], "
       "logits f32[5,7], targets i64[5], log_sum_exp f32[7]"},
      {"softmax_cross_entropy_with_grad",
       {F32({5}), F32({5, 7}), I64({5}, 7)},
       divisor,
       "softmax_cross_entropy_with_grad: dloss is not f32[]: dloss f32[5], logits f32[5,7], "
       "targets i64[5]"}};
  const InputSpec logits = F32({19, 5003}, -9, 9);
  family.large = {
      Sized("mse_loss", "odd rows", {F32({40, 1001}), F32({40, 1001})}, {{"divisor", 4.0}}),
      Sized("mse_loss_grad", "odd rows", {F32({}), F32({40, 1001}), F32({40, 1001})},
            {{"divisor", 4.0}}, {0}),
      Sized("softmax_cross_entropy", "many classes", {logits, I64({19}, 5003)},
            {{"divisor", 19.0}}),
      Sized("softmax_cross_entropy_grad", "many classes",
            {F32({}), logits, I64({19}, 5003), F32({19}, 8, 12)}, {{"divisor", 19.0}}, {0, 3})};
  // On a GPU: rows for small and large blocks, in shared memory, and too long for it.
  for (const auto& [label, rows, classes] :
       {std::tuple("many classes", 19, 5003), {"long rows", 5, 9001}, {"longest rows", 2, 60013}}) {
    family.large.push_back(Sized("softmax_cross_entropy_with_grad", label,
                                 {F32({}), F32({rows, classes}, -9, 9), I64({rows}, classes)},
                                 {{"divisor", 3.0}}, {0}));
  }
  const ir::Attributes mean = {{"divisor", 2048.0}};
  const InputSpec wide = F32({2048, 1536});
  const InputSpec bytes = F32({2048, 256});
  const InputSpec targets = I64({2048}, 256);
  family.bench = {
      Sized("mse_loss", "wide", {wide, wide}, mean),
      Sized("mse_loss_grad", "wide", {F32({}), wide, wide}, mean, {0}),
      Sized("softmax_cross_entropy", "256", {bytes, targets}, mean),
      Sized("softmax_cross_entropy_grad", "256", {F32({}), bytes, targets, F32({2048})}, mean,
            {0, 3}),
      Sized("softmax_cross_entropy_with_grad", "256", {F32({}), bytes, targets}, mean, {0})};
  family.exact_on_gpu = {"mse_loss_grad"};
  return family;
}

}  // namespace zg::testing
