#include "tests/ops/gelu_reference.h"
#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// out[i,j] = sum over k of a(i,k) b(k,j), for any indexing of two tensors.
template <typename A, typename B>
std::vector<double> Product(int64_t rows, int64_t inner, int64_t columns, const A& a, const B& b) {
  std::vector<double> out(rows * columns, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t k = 0; k < inner; ++k) out[i * columns + j] += a(i, k) * b(k, j);
    }
  }
  return out;
}

// Element (i, j) of a tensor seen as rows of its last dim.
auto At(const ReferenceTensor& tensor) {
  return [&tensor](int64_t i, int64_t j) { return tensor.values[i * Columns(tensor) + j]; };
}
auto AtTransposed(const ReferenceTensor& tensor) {
  return [&tensor](int64_t i, int64_t j) { return tensor.values[j * Columns(tensor) + i]; };
}

ReferenceOutputs Linear(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const ReferenceTensor& weight = call.inputs[1];
  const int64_t columns = RowsOf(weight);
  std::vector<double> y = Product(RowsOf(x), Columns(x), columns, At(x), AtTransposed(weight));
  if (call.inputs.size() - (Adds(call) ? 1 : 0) == 3) {
    for (size_t i = 0; i < y.size(); ++i) y[i] += call.inputs[2].values[i % columns];
  }
  AddLastInput(call, &y);
  return {y};
}

ReferenceOutputs LinearGelu(const ReferenceCall& call) {
  std::vector<double> h = Linear(call)[0];
  std::vector<double> y;
  for (double x : h) y.push_back(Gelu(x));
  return {y, h};
}

ReferenceOutputs LinearGradInput(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  const ReferenceTensor& weight = call.inputs[1];
  std::vector<double> dx = Product(RowsOf(dy), Columns(dy), Columns(weight), At(dy), At(weight));
  AddLastInput(call, &dx);
  return {dx};
}

ReferenceOutputs LinearGradInputGelu(const ReferenceCall& call) {
  std::vector<double> dh = LinearGradInput(call)[0];
  for (size_t i = 0; i < dh.size(); ++i) dh[i] *= GeluDerivative(call.inputs[2].values[i]);
  return {dh};
}

ReferenceOutputs LinearGradWeight(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  const ReferenceTensor& x = call.inputs[1];
  return {Product(Columns(dy), RowsOf(dy), Columns(x), AtTransposed(dy), At(x))};
}

ReferenceOutputs LinearGradBias(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  std::vector<double> sum(Columns(dy), 0.0);
  for (size_t i = 0; i < dy.values.size(); ++i) sum[i % sum.size()] += dy.values[i];
  return {sum};
}

// The sizes of a part may select another algorithm for the product, with other roundings.
OpCase Case(std::string op, std::string label, std::vector<InputSpec> inputs,
            std::function<ReferenceOutputs(const ReferenceCall&)> reference) {
  OpCase op_case;
  op_case.op = std::move(op);
  op_case.sums_products = true;
  op_case.label = std::move(label);
  op_case.inputs = std::move(inputs);
  op_case.reference = std::move(reference);
  op_case.exact_splits = false;
  op_case.check_gradient = op_case.inputs[0].type.shape.num_elements() < 1000;
  return op_case;
}

// In 16 bits the gelu is that of the rounded product.
OpCase GeluCase(std::string op, std::string label, std::vector<InputSpec> inputs,
                std::function<ReferenceOutputs(const ReferenceCall&)> reference) {
  OpCase op_case = Case(std::move(op), std::move(label), std::move(inputs), std::move(reference));
  op_case.rounds_within = true;
  return op_case;
}

// The sum in parts {count, dim, groups}.
OpCase InParts(OpCase op_case, std::vector<int64_t> parts) {
  op_case.label += ", in parts";
  op_case.attributes.Set("summed_parts", std::move(parts));
  op_case.is_f32_only = true;
  return op_case;
}

void AddLarge(std::vector<OpCase>* cases) {
  const auto add = [cases](const char* op, std::vector<InputSpec> inputs) {
    std::string label = inputs[0].type.ToString();
    cases->push_back(Sized(op, std::move(label), std::move(inputs)));
  };
  add("linear", {F32({67, 96}), F32({40, 96}), F32({40})});
  add("linear_grad_input", {F32({67, 40}), F32({40, 96})});
  const ir::Attributes adds = {{"adds", true}};
  cases->push_back(
      Sized("linear", "adds", {F32({67, 96}), F32({40, 96}), F32({40}), F32({67, 40})}, adds));
  cases->push_back(
      Sized("linear_grad_input", "adds", {F32({67, 40}), F32({40, 96}), F32({67, 96})}, adds));
  add("linear_grad_weight", {F32({67, 40}), F32({67, 96})});
  // On a GPU with an epilogue for the gelu, and without one: its rows must divide by 8.
  for (const int64_t size : {int64_t{96}, int64_t{768}, int64_t{91}}) {
    const InputSpec weight = F32({size, size}, -0.2, 0.2);
    add("linear_gelu", {F32({67, size}), weight, F32({size})});
    add("linear_gelu", {F32({64, size}), weight});
    add("linear_grad_input_gelu", {F32({67, size}), weight, F32({67, size}, -4, 4)});
  }
  add("linear_grad_bias", {F32({8200, 24})});
  add("linear_grad_bias", {F32({131, 769})});
}

// A layer of `inputs` x `outputs` parameters, forward and backward.
void AddBench(const char* model, int64_t rows, int64_t inputs, int64_t outputs,
              std::vector<OpCase>* cases) {
  const std::string label = fmt::format("{}/{}x{}x{}", model, rows, inputs, outputs);
  const InputSpec x = F32({rows, inputs}), y = F32({rows, outputs}), bias = F32({outputs});
  const InputSpec weight = F32({outputs, inputs});
  cases->push_back(Sized("linear", label, {x, weight, bias}));
  cases->push_back(Sized("linear_grad_input", label, {y, weight}));
  cases->push_back(Sized("linear_grad_weight", label, {y, x}));
}

}  // namespace

FamilyCases LinearCases() {
  FamilyCases family;
  family.cases = {
      Case("linear", "odd", {F32({5, 7}), F32({3, 7}), F32({3})}, Linear),
      Case("linear", "one by one", {F32({1, 1}), F32({1, 1})}, Linear),
      Case("linear", "vector", {F32({18}), F32({12, 18}), F32({12})}, Linear),
      Case("linear", "matrix", {F32({6, 12}), F32({18, 12}), F32({18})}, Linear),
      Case("linear", "matrix, no bias", {F32({6, 12}), F32({18, 12})}, Linear),
      Case("linear", "three dims", {F32({6, 6, 12}), F32({18, 12}), F32({18})}, Linear),
      Case("linear", "three dims, no bias", {F32({6, 6, 12}), F32({6, 12})}, Linear),
      WithAddend(Case("linear", "odd", {F32({5, 7}), F32({3, 7}), F32({3})}, Linear), {5, 3}),
      WithAddend(Case("linear", "vector", {F32({18}), F32({12, 18}), F32({12})}, Linear), {12}),
      WithAddend(Case("linear", "matrix", {F32({6, 12}), F32({18, 12}), F32({18})}, Linear),
                 {6, 18}),
      WithAddend(Case("linear", "matrix, no bias", {F32({6, 12}), F32({18, 12})}, Linear), {6, 18}),
      WithAddend(Case("linear", "many rows", {F32({131, 37}), F32({91, 37})}, Linear), {131, 91}),
      WithAddend(Case("linear", "deep", {F32({70, 900}), F32({24, 900}), F32({24})}, Linear),
                 {70, 24}),
      WithAddend(Case("linear", "three dims", {F32({6, 6, 12}), F32({18, 12}), F32({18})}, Linear),
                 {6, 6, 18}),
      WithAddend(Case("linear", "three dims, no bias", {F32({6, 6, 12}), F32({6, 12})}, Linear),
                 {6, 6, 6}),
      WithAddend(Case("linear_grad_input", "odd", {F32({5, 3}), F32({3, 7})}, LinearGradInput),
                 {5, 7}),
      WithAddend(Case("linear_grad_input", "vector", {F32({12}), F32({12, 18})}, LinearGradInput),
                 {18}),
      WithAddend(
          Case("linear_grad_input", "matrix", {F32({6, 12}), F32({12, 18})}, LinearGradInput),
          {6, 18}),
      WithAddend(
          Case("linear_grad_input", "three dims", {F32({6, 6, 12}), F32({12, 6})}, LinearGradInput),
          {6, 6, 6}),
      Case("linear_grad_input", "odd", {F32({5, 3}), F32({3, 7})}, LinearGradInput),
      Case("linear_grad_input", "vector", {F32({12}), F32({12, 18})}, LinearGradInput),
      Case("linear_grad_input", "matrix", {F32({6, 12}), F32({12, 18})}, LinearGradInput),
      Case("linear_grad_input", "three dims", {F32({6, 6, 12}), F32({12, 6})}, LinearGradInput),
      GeluCase("linear_gelu", "odd", {F32({5, 7}), F32({3, 7}), F32({3})}, LinearGelu),
      GeluCase("linear_gelu", "one by one", {F32({1, 1}), F32({1, 1})}, LinearGelu),
      GeluCase("linear_gelu", "vector", {F32({18}), F32({12, 18}), F32({12})}, LinearGelu),
      GeluCase("linear_gelu", "matrix", {F32({6, 12}), F32({18, 12}), F32({18})}, LinearGelu),
      GeluCase("linear_gelu", "matrix, no bias", {F32({6, 12}), F32({18, 12})}, LinearGelu),
      GeluCase("linear_gelu", "three dims", {F32({6, 6, 12}), F32({18, 12}), F32({18})},
               LinearGelu),
      GeluCase("linear_grad_input_gelu", "odd", {F32({5, 3}), F32({3, 7}), F32({5, 7}, -3, 3)},
               LinearGradInputGelu),
      GeluCase("linear_grad_input_gelu", "vector", {F32({12}), F32({12, 18}), F32({18}, -3, 3)},
               LinearGradInputGelu),
      GeluCase("linear_grad_input_gelu", "matrix",
               {F32({6, 12}), F32({12, 18}), F32({6, 18}, -3, 3)}, LinearGradInputGelu),
      GeluCase("linear_grad_input_gelu", "three dims",
               {F32({6, 6, 12}), F32({12, 6}), F32({6, 6, 6}, -3, 3)}, LinearGradInputGelu),
      Case("linear_grad_weight", "odd", {F32({5, 3}), F32({5, 7})}, LinearGradWeight),
      Case("linear_grad_weight", "vector", {F32({12}), F32({18})}, LinearGradWeight),
      Case("linear_grad_weight", "matrix", {F32({6, 12}), F32({6, 18})}, LinearGradWeight),
      Case("linear_grad_weight", "three dims", {F32({6, 6, 12}), F32({6, 6, 18})},
           LinearGradWeight),
      InParts(Case("linear", "three dims", {F32({3, 6, 24}), F32({18, 24}), F32({18})}, Linear),
              {4, 2, 1}),
      InParts(Case("linear_grad_input", "matrix", {F32({70, 24}), F32({24, 18})}, LinearGradInput),
              {2, 1, 1}),
      InParts(Case("linear_grad_bias", "three dims", {F32({3, 8, 18})}, LinearGradBias), {4, 1, 1}),
      Case("linear_grad_bias", "odd", {F32({5, 3})}, LinearGradBias),
      Case("linear_grad_bias", "many rows", {F32({301, 19})}, LinearGradBias),
      Case("linear_grad_bias", "vector", {F32({18})}, LinearGradBias),
      Case("linear_grad_bias", "matrix", {F32({6, 12})}, LinearGradBias),
      Case("linear_grad_bias", "three dims", {F32({6, 6, 12})}, LinearGradBias),
  };
  const std::string parts =
      "], expected the number of parts, a power of two, the dim of f32[8,16] that they cut, and the "
      "number of its groups; only of f32";
  const std::vector<InputSpec> products = {F32({8, 16}), F32({4, 16})};
  const auto in_parts = [](std::vector<int64_t> numbers) {
    return ir::Attributes{{"summed_parts", std::move(numbers)}};
  };
  family.rejections = {
      {"linear", products, in_parts({2}), "linear: got summed_parts [2" + parts},
      {"linear", products, in_parts({3, 1, 1}), "linear: got summed_parts [3, 1, 1" + parts},
      {"linear", products, in_parts({32, 1, 1}), "linear: got summed_parts [32, 1, 1" + parts},
      {"linear", products, in_parts({2, 2, 1}), "linear: got summed_parts [2, 2, 1" + parts},
      {"linear", products, in_parts({8, 1, 4}), "linear: got summed_parts [8, 1, 4" + parts},
      {"linear",
       {F32({8, 16}), F32({32, 64})},
       {},
       "linear: inner dims differ: x f32[8,16], weight f32[32,64]"},
      {"linear",
       {F32({8, 16}), F32({32, 16}), F32({16})},
       {},
       "linear: bias does not fit the rows of weight: x f32[8,16], weight f32[32,16], "
       "bias f32[16]"},
      {"linear",
       {F32({8, 16}), F32({16})},
       {},
       "linear: weight is not a matrix: x f32[8,16], weight f32[16]"},
      {"linear",
       {I64({8, 16}, 9), F32({32, 16})},
       {},
       "linear: x is not floating-point, convert with to(x, dtype): x i64[8,16], weight f32[32,16]"},
      {"linear", {F32({}), F32({32, 16})}, {}, "linear: x has no dims: x f32[], weight f32[32,16]"},
      {"linear_grad_input",
       {F32({8, 16}), F32({32, 16})},
       {},
       "linear_grad_input: outer dims differ: dy f32[8,16], weight f32[32,16]"},
      {"linear",
       {F32({8, 16}), F32({32, 16}), F32({8, 16})},
       {{"adds", true}},
       "linear: the addend is f32[8,16], expected the type of the result, f32[8,32]"},
      {"linear",
       {F32({8, 16}), F32({32, 16})},
       {{"adds", true}},
       "linear: got 1 inputs beside an addend, expected 2 to 3"},
      {"linear",
       {F32({8, 16}), F32({32, 16}), F32({32}), F32({8, 32})},
       {},
       "linear: got 4 inputs beside an addend, expected 2 to 3"},
      {"linear_gelu",
       {F32({8, 16}), F32({32, 64})},
       {},
       "linear_gelu: inner dims differ: x f32[8,16], weight f32[32,64]"},
      {"linear_grad_input_gelu",
       {F32({8, 16}), F32({32, 16}), F32({8, 16})},
       {},
       "linear_grad_input_gelu: outer dims differ: dy f32[8,16], weight f32[32,16], "
       "h f32[8,16]"},
      {"linear_grad_input_gelu",
       {F32({8, 16}), F32({16, 32}), F32({8, 16})},
       {},
       "linear_grad_input_gelu: h is not of the product's shape: dy f32[8,16], "
       "weight f32[16,32], h f32[8,16]"},
      {"linear_grad_weight",
       {F32({8, 16}), F32({4, 2, 16})},
       {},
       "linear_grad_weight: leading dims differ: dy f32[8,16], x f32[4,2,16]"},
      {"linear_grad_bias",
       {I64({8, 16}, 9)},
       {},
       "linear_grad_bias: dy is not floating-point, convert with to(x, dtype): dy i64[8,16]"},
  };
  AddLarge(&family.large);
  AddBench("gpt", 2048, 384, 1152, &family.bench);
  AddBench("gpt", 2048, 384, 384, &family.bench);
  AddBench("gpt", 2048, 384, 1536, &family.bench);
  AddBench("gpt", 2048, 1536, 384, &family.bench);
  AddBench("gpt", 2048, 384, 256, &family.bench);
  AddBench("token", 1, 768, 3072, &family.bench);
  AddBench("tokens", 8, 768, 3072, &family.bench);
  AddBench("recipe", 20, 2000, 2000, &family.bench);
  family.bench.push_back(Sized("linear_grad_bias", "wide", {F32({2048, 1536})}));
  return family;
}

}  // namespace zg::testing
