// Functions of Vars give PyTorch's results and gradients (tests/reference/make_functions.py made
// them, in double precision).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;
using Function = std::function<Var(Var a, Var b)>;

// Relative to the largest element, at least 1: gradients come from a difference of parameters.
constexpr double kTolerance = 4e-6;

Var Positive(Var x) { return x * x + 0.5; }

Var GroupNorm(Var a, Var b) {
  const Var x = reshape(a, {2, 3, 4});
  const Var centred = x - mean(x, {2}, true);
  return centred * rsqrt(mean(square(centred), {2}, true) + 1e-5) * reshape(b, {3, 1});
}

Var Image(Var a) { return reshape(a, {1, 2, 3, 4}); }
Var ClassWeights() { return to(arange(3, 1), DType::kF32) * 0.5; }  // 0.5, 1, 1.5

Var ClassLoss(Var a, Var, Reduction reduction) {
  ClassLossOptions options;
  options.weight = ClassWeights();
  options.label_smoothing = 0.1;
  options.ignore_index = 2;
  options.class_dim = 1;
  options.reduction = reduction;
  return cross_entropy(a, argmax(flip(a, -1), 1), options);
}

const std::map<std::string, Function>& Functions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"add", [](Var a, Var b) { return a + b; }},
      {"subtract", [](Var a, Var b) { return a - b; }},
      {"multiply", [](Var a, Var b) { return a * b; }},
      {"divide", [](Var a, Var b) { return a / Positive(b); }},
      {"numbers", [](Var a, Var b) { return 2.0 - (a + 1.0) / 3.0 * b - 0.5 / (square(b) + 1.0); }},
      {"maximum", maximum},
      {"minimum", minimum},
      {"clamp", [](Var a, Var b) { return clamp(a, -0.5, 1.0) * b; }},
      {"abs", [](Var a, Var b) { return abs(a) * b; }},
      {"sqrt", [](Var a, Var b) { return sqrt(Positive(a)) * b; }},
      {"rsqrt", [](Var a, Var b) { return rsqrt(Positive(a)) * b; }},
      {"exp", [](Var a, Var b) { return exp(a) * b; }},
      {"log", [](Var a, Var b) { return log(Positive(a)) * b; }},
      {"sin", [](Var a, Var b) { return sin(a) * b; }},
      {"cos", [](Var a, Var b) { return cos(a) * b; }},
      {"tanh", [](Var a, Var b) { return tanh(a) * b; }},
      {"sigmoid", [](Var a, Var b) { return sigmoid(a) * b; }},
      {"softplus", [](Var a, Var b) { return softplus(a) * b; }},
      {"erf", [](Var a, Var b) { return erf(a) * b; }},
      {"relu", [](Var a, Var b) { return relu(a) * b; }},
      {"leaky_relu", [](Var a, Var b) { return leaky_relu(a, 0.2) * b; }},
      {"elu", [](Var a, Var b) { return elu(a, 0.7) * b; }},
      {"silu", [](Var a, Var b) { return silu(a) * b; }},
      {"gelu", [](Var a, Var b) { return gelu(a) * b; }},
      {"gelu_erf", [](Var a, Var b) { return gelu_erf(a) * b; }},
      {"sum",
       [](Var a, Var b) {
         return sum(a, {0, 2}) * b;
       }},
      {"mean", [](Var a, Var b) { return mean(a, {1}, true) * b; }},
      {"variance",
       [](Var a, Var b) {
         return variance(a, {0, -1}) * b;
       }},
      {"norm", [](Var a, Var b) { return norm(a, {-1}) * b; }},
      {"reshape",
       [](Var a, Var b) {
         return reshape(a, {6, 4}) * b;
       }},
      {"permute",
       [](Var a, Var b) {
         return permute(a, {2, 0, 1}) * b;
       }},
      {"slice", [](Var a, Var b) { return slice(a, 2, 1, 4, 2) * b; }},
      {"select", [](Var a, Var b) { return select(a, 1, -1) * b; }},
      {"concat",
       [](Var a, Var b) {
         return square(concat({a, b}, 1));
       }},
      {"stack",
       [](Var a, Var b) {
         return square(stack({a, b}, 1));
       }},
      {"chunk", [](Var a, Var b) { return chunk(a, 2, -1)[0] * chunk(a, 2, -1)[1] * b; }},
      {"expand",
       [](Var a, Var b) {
         return expand(b, {2, 3, 4}) * a;
       }},
      {"repeat",
       [](Var a, Var b) {
         return repeat(a, {1, 2, 1}) * b;
       }},
      {"pad", [](Var a, Var b) { return pad(a, 1, 1, 2, 0.5) * b; }},
      {"roll", [](Var a, Var b) { return roll(a, 2, -1) * b; }},
      {"matmul", matmul},
      {"matmul_batch", matmul},
      {"matmul_vector", matmul},
      {"einsum_attention", [](Var a, Var b) { return einsum("bqd,bkd->bqk", a, b); }},
      {"einsum_outer", [](Var a, Var b) { return einsum("bqd,kd->kbq", a, b); }},
      {"softmax", [](Var a, Var b) { return softmax(a) * b; }},
      {"softmax_dim", [](Var a, Var b) { return softmax(a, 1) * b; }},
      {"log_softmax", [](Var a, Var b) { return log_softmax(a) * b; }},
      {"group_norm", GroupNorm},
      {"conv1d",
       [](Var a, Var b) {
         return conv1d(a, b, {.padding = 1});
       }},
      {"conv1d_strided",
       [](Var a, Var b) {
         return conv1d(a, b, {.stride = 2, .padding = 1, .dilation = 2});
       }},
      {"conv2d",
       [](Var a, Var b) {
         return conv2d(Image(a), b, {.stride = {1, 2}, .padding = {1, 0}});
       }},
      {"conv2d_dilated",
       [](Var a, Var b) {
         return conv2d(Image(a), b, {.padding = 2, .dilation = {2, 3}});
       }},
      {"conv2d_groups",
       [](Var a, Var b) {
         return conv2d(reshape(a, {2, 3, 2, 2}), b, {.padding = 1, .groups = 3});
       }},
      {"conv2d_bias",
       [](Var a, Var b) {
         return conv2d(Image(a), reshape(a, {6, 2, 2, 1}), b);
       }},
      {"conv_transpose2d",
       [](Var a, Var b) {
         return conv_transpose2d(Image(a), b,
                                 {.stride = {2, 3}, .padding = {0, 1}, .dilation = {2, 1}}, {1, 2});
       }},
      {"conv_transpose2d_groups",
       [](Var a, Var b) {
         return conv_transpose2d(reshape(a, {2, 3, 2, 2}), b, {.groups = 3});
       }},
      {"max_pool1d", [](Var a, Var b) { return max_pool1d(a, 3, 2, 1) * b; }},
      {"max_pool2d",
       [](Var a, Var b) {
         return max_pool2d(Image(a), {2, 3}, {.stride = 1, .padding = 1}) * b;
       }},
      {"avg_pool1d", [](Var a, Var b) { return avg_pool1d(a, 3, 2, 1) * b; }},
      {"avg_pool2d",
       [](Var a, Var b) {
         return avg_pool2d(Image(a), {3, 2}, {.stride = Size2(1, 2), .padding = {1, 0}}) * b;
       }},
      {"avg_pool2d_inside",
       [](Var a, Var b) {
         return avg_pool2d(Image(a), 2, {.padding = 1, .count_include_pad = false}) * b;
       }},
      {"adaptive_avg_pool2d",
       [](Var a, Var b) {
         return adaptive_avg_pool2d(Image(a), {2, 3}) * b;
       }},
      {"adaptive_avg_pool2d_one",
       [](Var a, Var b) { return adaptive_avg_pool2d(Image(a), 1) * b; }},
      {"interpolate_nearest",
       [](Var a, Var b) {
         return interpolate(Image(a), {5, 7}) * b;
       }},
      {"interpolate_bilinear",
       [](Var a, Var b) {
         return interpolate(Image(a), {2, 9}, Interpolation::kBilinear) * b;
       }},
      {"interpolate_corners",
       [](Var a, Var b) {
         return interpolate(Image(a), {5, 7}, Interpolation::kBilinear, true) * b;
       }},
      {"batch_norm", [](Var a, Var b) { return batch_norm(a, b, b * 0.0).y; }},
      {"batch_norm_images",
       [](Var a, Var b) { return batch_norm(reshape(a, {3, 2, 2, 2}), b, b * b, 0.1).y; }},
      {"mse_loss", [](Var a, Var b) { return mse_loss(a, b); }},
      {"l1_loss", [](Var a, Var b) { return l1_loss(a, b); }},
      {"smooth_l1_loss", [](Var a, Var b) { return smooth_l1_loss(a, b, 0.7); }},
      {"huber_loss", [](Var a, Var b) { return huber_loss(a, b, 0.7); }},
      {"bce_with_logits", [](Var a, Var b) { return bce_with_logits(a, sigmoid(b)); }},
      {"soft_cross_entropy", [](Var a, Var b) { return soft_cross_entropy(a, softmax(b)); }},
      {"kl_div", [](Var a, Var b) { return kl_div(log_softmax(a), softmax(b)); }},
      {"where", [](Var a, Var b) { return where(a > b, a, 2.0 * b); }},
      {"masked_fill", [](Var a, Var b) { return masked_fill(a, b > 0.0, 0.25) * b; }},
      {"comparisons",
       [](Var a, Var b) {
         return to(a <= b, DType::kF32) * a + to(not_equal(a, b), DType::kF32) * b;
       }},
      {"logical",
       [](Var a, Var b) { return where(((a > 0.0) & (b < 1.0)) | !(a > -1.0), a * b, b); }},
      {"pow", [](Var a, Var b) { return pow(Positive(a), b); }},
      {"pow_number", [](Var a, Var b) { return pow(Positive(a), 1.7) * b + pow(a, 3.0); }},
      {"gather", [](Var a, Var b) { return gather(a, 1, argmin(b, 1, true)) * b; }},
      {"index_select", [](Var a, Var b) { return index_select(a, 1, arange(3, 2, -1)) * b; }},
      {"index_select_rows",
       [](Var a, Var b) {
         const Var rows = to(not_equal(arange(4), 2.0), DType::kI64);  // 1, 1, 0, 1
         return index_select(a, 0, rows) * b;
       }},
      {"one_hot", [](Var a, Var b) { return one_hot(argmax(a, -1), 4) * b + a; }},
      {"tril", [](Var a, Var b) { return tril(a, -1) * b; }},
      {"triu", [](Var a, Var b) { return triu(a, 1) * b; }},
      {"flip", [](Var a, Var b) { return flip(a, 1) * b; }},
      {"max",
       [](Var a, Var b) {
         return max(a, {0, 2}) * b;
       }},
      {"min", [](Var a, Var b) { return min(a, {1}, true) * b; }},
      {"max_all", [](Var a, Var b) { return max(a) * b; }},
      {"top_k", [](Var a, Var b) { return top_k(a, 2).values * b; }},
      {"sort", [](Var a, Var b) { return top_k(a, 3, 1, /*largest=*/false).values * b; }},
      {"any_all",
       [](Var a, Var b) { return where(any(a > 1.5, {2}, true) | all(a > -1.0, {1}, true), a, b); }},
      {"cumsum", [](Var a, Var b) { return cumsum(a, 1) * b; }},
      {"logsumexp",
       [](Var a, Var b) {
         return logsumexp(a, {0, 2}) * b;
       }},
      {"vector_norm", [](Var a, Var b) { return vector_norm(a, 3.0, {1}) * b; }},
      {"largest_norm", [](Var a, Var b) { return vector_norm(a, HUGE_VAL, {1}) * b; }},
      {"stop_gradient", [](Var a, Var b) { return stop_gradient(a) * b + a; }},
      {"cross_entropy_options", [](Var a, Var b) { return ClassLoss(a, b, Reduction::kMean) * b; }},
      {"cross_entropy_sum", [](Var a, Var b) { return ClassLoss(a, b, Reduction::kSum) * b; }},
      {"cross_entropy_of_rows",
       [](Var a, Var b) { return ClassLoss(a, b, Reduction::kNone) * b; }},
      {"cross_entropy_smooth",
       [](Var a, Var b) {
         return cross_entropy(a, argmax(b, -1), {.label_smoothing = 0.2}) + sum(b);
       }},
      {"nll_loss",
       [](Var a, Var b) {
         return nll_loss(log_softmax(a), argmax(b, -1), {.ignore_index = 1}) + sum(b);
       }},
      {"soft_cross_entropy_options",
       [](Var a, Var b) {
         return soft_cross_entropy(a, softmax(b, 1), {.weight = ClassWeights(),
                                                      .label_smoothing = 0.1,
                                                      .class_dim = 1,
                                                      .reduction = Reduction::kNone});
       }},
      {"mse_loss_of_elements", [](Var a, Var b) { return mse_loss(a, b, Reduction::kNone); }},
      {"l1_loss_sum", [](Var a, Var b) { return l1_loss(a, b, Reduction::kSum); }},
      {"cosine_similarity", [](Var a, Var b) { return cosine_similarity(a, b, 1); }},
      {"cosine_embedding_loss",
       [](Var a, Var b) {
         const Var labels = to(equal(arange(3), 1.0), DType::kF32) * 2.0 - 1.0;  // -1, 1, -1
         return cosine_embedding_loss(a, b, expand(labels, {2, 3}), 0.1, Reduction::kNone);
       }},
      {"expm1", [](Var a, Var b) { return expm1(a) * b; }},
      {"log1p", [](Var a, Var b) { return log1p(a * a) * b; }},
      {"floor", [](Var a, Var b) { return floor(a) * b + a; }},
      {"ceil", [](Var a, Var b) { return ceil(a) * b + a; }},
      {"round", [](Var a, Var b) { return round(2.0 * a) * b + a; }},
      {"relu6", [](Var a, Var b) { return relu6(4.0 * a) * b; }},
      {"hardsigmoid", [](Var a, Var b) { return hardsigmoid(2.0 * a) * b; }},
      {"hardswish", [](Var a, Var b) { return hardswish(2.0 * a) * b; }},
      {"mish", [](Var a, Var b) { return mish(a) * b; }},
      {"selu", [](Var a, Var b) { return selu(a) * b; }},
      {"log_sigmoid", [](Var a, Var b) { return log_sigmoid(a) * b; }},
      {"glu", [](Var a, Var b) { return glu(a) * b; }},
      {"prelu", prelu},
      {"prelu_of_all", prelu},
      {"scatter_add",
       [](Var a, Var b) {
         const Var corner = slice(slice(b, 1, 0, 2), 2, 0, 3);
         return scatter_add(b, 1, to(corner > 0.0, DType::kI64), a);
       }},
      {"scatter_add_rows",
       [](Var a, Var b) { return scatter_add(b, 0, 3 * to(a > 0.0, DType::kI64), a); }},
      {"index_add",
       [](Var a, Var b) {
         return index_add(b, 1, 2 * abs(arange(3, -1)), a);  // 2, 0, 2
       }},
      {"index_add_rows", [](Var a, Var b) { return square(index_add(b, 0, arange(2, 4, -3), a)); }},
      {"conv_transpose1d",
       [](Var a, Var b) {
         return conv_transpose1d(a, b, {.stride = 2, .padding = 1}, 1);
       }},
      {"conv_transpose1d_bias",
       [](Var a, Var b) {
         return conv_transpose1d(reshape(a, {1, 6, 4}), reshape(a, {6, 2, 2}), b, {.groups = 3});
       }},
      {"pixel_shuffle",
       [](Var a, Var b) { return pixel_shuffle(reshape(a, {1, 4, 2, 3}), 2) * b; }},
      {"pixel_unshuffle",
       [](Var a, Var b) { return pixel_unshuffle(reshape(a, {1, 1, 4, 6}), 2) * b; }},
      {"stddev",
       [](Var a, Var b) {
         return stddev(a, {0, 2}) * b;
       }},
      {"normalize", [](Var a, Var b) { return normalize(a) * b; }},
      {"unbind", [](Var a, Var b) { return unbind(a, 1)[0] * b + unbind(a, 1)[2]; }},
      {"logaddexp", [](Var a, Var b) { return logaddexp(3.0 * a, b); }},
      {"eye", [](Var a, Var b) { return matmul(a, eye(4) * b); }},
      {"linspace", [](Var a, Var b) { return a * b * linspace(-1.0, 2.0, 4); }},
      {"triplet_margin_loss",
       [](Var a, Var b) {
         return triplet_margin_loss(a, b, flip(a, 1) * b, 0.5, Reduction::kNone);
       }},
  };
  return *functions;
}

std::vector<float> Floats(const Json& numbers) { return numbers.get<std::vector<float>>(); }

void ExpectNear(const std::vector<float>& got, const Json& want) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1.0;
  for (const Json& number : want) largest = std::max(largest, std::abs(number.get<double>()));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i].get<double>(), kTolerance * largest) << "element " << i;
  }
}

std::vector<float> ValuesOf(Trainer& trainer, const std::string& name) {
  const ir::StoredTensor* tensor = trainer.executor().graph().FindTensor(name);
  const LocalPart part = trainer.executor().LocalPartOf(*tensor).value();
  const auto* const values = reinterpret_cast<const float*>(part.data);
  return std::vector<float>(values, values + part.count);
}

class FunctionReference : public ::testing::TestWithParam<std::string> {};

// The operands are parameters, the loss is the weighted sum, and a step of size 1 subtracts the
// gradient from them.
TEST_P(FunctionReference, GivesPyTorchsResultsAndGradients) {
  RegisterAllOps();
  const Json file = Json::parse(std::ifstream("tests/reference/functions.json"));
  const auto& cases = file["cases"];
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [](const Json& one) { return one["name"] == GetParam(); });
  ASSERT_NE(found, cases.end()) << "make_functions.py has no such case";
  const Json& c = *found;
  const Function& function = Functions().at(GetParam());
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    const std::vector<int64_t> b_shape = c["b_shape"], y_shape = c["y_shape"];
    nn::Parameter a(nullptr, "a", {2, 3, 4}, Initializer::Zeros());
    nn::Parameter b(nullptr, "b", Shape(b_shape), Initializer::Zeros());
    // Operands are the fed values plus the parameters, which are 0 before the step.
    const auto result = [&](Inputs& in) {
      return function(in.f32("x", {2, 3, 4}, Sbp::B()) + a,
                      in.f32("z", Shape(b_shape), Sbp::B()) + b);
    };
    Graph graph("g");
    graph.train(optim::Sgd{.lr = 1.0}, [&](Inputs& in) {
      return sum(result(in) * in.f32("weights", Shape(y_shape), Sbp::B())) +
             sum(in.f32("nothing", {1}));
    });
    graph.eval("run", [&](Inputs& in) { return reshape(result(in), {-1}); });
    graph.config().zero.shard_min_elements = 0;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    const std::vector<float> x = Floats(file["a"]), z = Floats(c["b"]),
                             weights = Floats(c["weights"]), nothing = {0.0f};
    ZG_RETURN_IF_ERROR(trainer->eval("run", {{"x", x}, {"z", z}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> y, trainer->result("run"));
    ExpectNear(y, c["y"]);
    ZG_RETURN_IF_ERROR(
        trainer->step({{"x", x}, {"z", z}, {"weights", weights}, {"nothing", nothing}}).status());
    std::vector<float> da = ValuesOf(*trainer, "a"), db = ValuesOf(*trainer, "b");
    for (float& value : da) value = -value;
    for (float& value : db) value = -value;
    ExpectNear(da, c["da"]);
    ExpectNear(db, c["db"]);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Functions()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, FunctionReference, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg
