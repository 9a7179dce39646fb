#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The matrix of a row in the call; -1: it is in another part.
int64_t GroupOf(const ReferenceCall& call, int64_t groups, int64_t row) {
  return FindInParts(call, 3, groups, static_cast<int64_t>(call.inputs[2].values[row]));
}

ReferenceOutputs GroupedMatmul(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const ReferenceTensor& matrices = call.inputs[1];
  const bool transposed = call.attributes.Bool("transposed");
  const int64_t depth = Columns(x), columns = matrices.shape.dim(transposed ? 1 : 2);
  std::vector<double> y(RowsOf(x) * columns, 0.0);
  for (int64_t i = 0; i < RowsOf(x); ++i) {
    const int64_t group = GroupOf(call, matrices.shape.dim(0), i);
    if (group < 0) continue;
    const auto matrix = matrices.values.begin() + group * depth * columns;
    for (int64_t m = 0; m < columns; ++m) {
      for (int64_t k = 0; k < depth; ++k) {
        y[i * columns + m] +=
            x.values[i * depth + k] * matrix[transposed ? m * depth + k : k * columns + m];
      }
    }
  }
  return {y};
}

ReferenceOutputs GroupedMatmulGrad(const ReferenceCall& call) {
  const ReferenceTensor& a = call.inputs[0];
  const ReferenceTensor& b = call.inputs[1];
  int64_t groups = call.attributes.Int("groups") / call.attributes.Int("parts");
  if (call.inputs.size() == 4) groups *= call.inputs[3].shape.dim(0);
  const int64_t p_size = Columns(a), q_size = Columns(b);
  std::vector<double> y(groups * p_size * q_size, 0.0);
  for (int64_t i = 0; i < RowsOf(a); ++i) {
    const int64_t group = GroupOf(call, groups, i);
    if (group < 0) continue;
    for (int64_t p = 0; p < p_size; ++p) {
      for (int64_t q = 0; q < q_size; ++q) {
        y[(group * p_size + p) * q_size + q] += a.values[i * p_size + p] * b.values[i * q_size + q];
      }
    }
  }
  return {y};
}

struct Sizes {
  int64_t rows;
  int64_t groups;
  int64_t depth;
  int64_t columns;
};

OpCase Product(const std::string& label, const Sizes& sizes, bool transposed) {
  OpCase one;
  one.op = "grouped_matmul";
  one.label = label + (transposed ? ", transposed" : "");
  one.inputs = {F32({sizes.rows, sizes.depth}),
                F32(transposed ? Shape{sizes.groups, sizes.columns, sizes.depth}
                               : Shape{sizes.groups, sizes.depth, sizes.columns}),
                I64({sizes.rows}, sizes.groups)};
  one.attributes = {{"transposed", transposed}};
  one.reference = GroupedMatmul;
  one.check_gradient = sizes.rows * sizes.depth * sizes.columns < 2000;
  return one;
}

OpCase Gradient(const std::string& label, const Sizes& sizes) {
  OpCase one;
  one.op = "grouped_matmul_grad";
  one.label = label;
  one.inputs = {F32({sizes.rows, sizes.depth}), F32({sizes.rows, sizes.columns}),
                I64({sizes.rows}, sizes.groups)};
  one.attributes = {{"groups", sizes.groups}};
  one.reference = GroupedMatmulGrad;
  one.check_gradient = sizes.rows * sizes.depth * sizes.columns < 2000;
  return one;
}

void AddCases(const std::string& label, const Sizes& sizes, std::vector<OpCase>* cases) {
  cases->push_back(Product(label, sizes, false));
  cases->push_back(Product(label, sizes, true));
  cases->push_back(Gradient(label, sizes));
}

// Matrices of which a call has `own` of `parts` parts of two, from `first` on.
void AddParts(const std::string& label, int64_t own, int64_t parts, int64_t first,
              std::vector<OpCase>* cases) {
  const int64_t all = 2 * parts;
  OpCase product = Product(label, {18, 2 * own, 6, 6}, false);
  OpCase gradient = Gradient(label, {18, all, 6, 6});
  for (OpCase* one : {&product, &gradient}) {
    one->inputs[2] = I64({18}, all);
    one->inputs.push_back(I64({own}, 1));
    one->attributes.Set("parts", parts);
    one->prepare = [first](ReferenceCall& call) { NumberParts(call, 3, first); };
    cases->push_back(*one);
  }
}

OpCase WithoutReference(OpCase one) {
  one.reference = nullptr;
  return one;
}

}  // namespace

FamilyCases GroupedMatmulCases() {
  FamilyCases family;
  AddCases("odd", {13, 3, 5, 7}, &family.cases);
  AddCases("splits", {12, 2, 6, 6}, &family.cases);
  AddCases("one group", {9, 1, 4, 3}, &family.cases);
  AddCases("more groups than rows", {3, 8, 4, 5}, &family.cases);
  AddCases("many rows", {1333, 2, 21, 19}, &family.cases);
  AddParts("a part", 1, 3, 1, &family.cases);
  AddParts("parts", 2, 4, 1, &family.cases);
  AddParts("all parts", 6, 6, 0, &family.cases);
  family.rejections = {
      {"grouped_matmul",
       {F32({5, 3}), F32({2, 3, 4}), F32({5})},
       {},
       "grouped_matmul: ids are not i64: x f32[5,3], matrices f32[2,3,4], ids f32[5]"},
      {"grouped_matmul",
       {F32({5, 3}), F32({3, 4}), I64({5}, 2)},
       {},
       "grouped_matmul: x and matrices have not 2 and 3 dims: x f32[5,3], matrices f32[3,4], ids "
       "i64[5]"},
      {"grouped_matmul",
       {F32({5, 3}), F32({2, 3, 4}), I64({4}, 2)},
       {},
       "grouped_matmul: ids are not one for each row of x: x f32[5,3], matrices f32[2,3,4], ids "
       "i64[4]"},
      {"grouped_matmul",
       {F32({5, 3}), F32({2, 3, 4}), I64({5}, 2)},
       {{"transposed", true}},
       "grouped_matmul: the rows of x do not fit the matrices: x f32[5,3], matrices f32[2,3,4], ids "
       "i64[5]"},
      {"grouped_matmul_grad",
       {F32({5, 3}), F32({4, 3}), I64({5}, 2)},
       {{"groups", int64_t{2}}},
       "grouped_matmul_grad: a, b and ids have not the same rows: a f32[5,3], b f32[4,3], ids "
       "i64[5]"},
      {"grouped_matmul_grad",
       {F32({5, 3}), F32({5, 3}), I64({5}, 2)},
       {{"groups", int64_t{-1}}},
       "grouped_matmul_grad: groups is -1, expected groups >= 0"}};
  family.large = {WithoutReference(Product("tiles", {400, 5, 70, 133}, false)),
                  WithoutReference(Product("tiles", {400, 5, 70, 133}, true)),
                  WithoutReference(Gradient("tiles", {400, 5, 70, 133}))};
  const Sizes experts = {4096, 8, 256, 512};
  family.bench = {WithoutReference(Product("8 experts", experts, false)),
                  WithoutReference(Product("8 experts", experts, true)),
                  WithoutReference(Gradient("8 experts", experts))};
  return family;
}

}  // namespace zg::testing
