#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Embedding(const ReferenceCall& call) {
  const ReferenceTensor& table = call.inputs[0];
  const int64_t columns = Columns(table);
  std::vector<double> y;
  for (double id : call.inputs[1].values) {
    const int64_t at = FindInParts(call, 2, table.shape.dim(0), static_cast<int64_t>(id));
    if (at < 0) {
      y.resize(y.size() + columns, 0.0);
      continue;
    }
    const auto row = table.values.begin() + at * columns;
    y.insert(y.end(), row, row + columns);
  }
  return {y};
}

ReferenceOutputs EmbeddingGrad(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  const int64_t columns = Columns(dy);
  int64_t rows = call.attributes.Int("rows") / call.attributes.Int("parts");
  if (call.inputs.size() == 3) rows *= call.inputs[2].shape.dim(0);
  std::vector<double> sum(rows * columns, 0.0);
  for (size_t i = 0; i < dy.values.size(); ++i) {
    const auto id = static_cast<int64_t>(call.inputs[1].values[i / columns]);
    const int64_t row = FindInParts(call, 2, rows, id);
    if (row >= 0) sum[row * columns + i % columns] += dy.values[i];
  }
  return {sum};
}

const ir::Attributes& FiveRows() {
  static const auto& attributes = *new ir::Attributes{{"rows", int64_t{5}}};
  return attributes;
}

// Both ops on ids of one shape and rows of `columns` elements.
void AddCases(const std::string& label, const Shape& ids, int64_t columns,
              std::vector<OpCase>* cases) {
  std::vector<int64_t> dims = ids.dims();
  dims.push_back(columns);
  cases->push_back({.op = "embedding",
                    .label = label,
                    .inputs = {F32({5, columns}), I64(ids, 5)},
                    .reference = Embedding});
  cases->push_back({.op = "embedding_grad",
                    .label = label,
                    .inputs = {F32(Shape(dims)), I64(ids, 5)},
                    .attributes = FiveRows(),
                    .reference = EmbeddingGrad});
}

// Tables of which a call has `own` of `parts` parts of two rows, from `first` on.
void AddParts(const std::string& label, int64_t own, int64_t parts, int64_t first, const Shape& ids,
              int64_t columns, std::vector<OpCase>* cases) {
  std::vector<int64_t> dims = ids.dims();
  dims.push_back(columns);
  const int64_t rows = 2 * parts;
  const auto number = [first](ReferenceCall& call) { NumberParts(call, 2, first); };
  cases->push_back({.op = "embedding",
                    .label = label,
                    .inputs = {F32({2 * own, columns}), I64(ids, rows), I64({own}, 1)},
                    .attributes = {{"parts", parts}},
                    .reference = Embedding,
                    .prepare = number,
                    .check_gradient = false});
  cases->push_back({.op = "embedding_grad",
                    .label = label,
                    .inputs = {F32(Shape(dims)), I64(ids, rows), I64({own}, 1)},
                    .attributes = {{"rows", rows}, {"parts", parts}},
                    .reference = EmbeddingGrad,
                    .prepare = number});
}

}  // namespace

FamilyCases EmbeddingCases() {
  FamilyCases family;
  AddCases("odd", {9}, 7, &family.cases);
  AddCases("one id", {}, 6, &family.cases);
  AddCases("one dim", {6}, 12, &family.cases);
  AddCases("two dims", {6, 12}, 18, &family.cases);
  AddParts("a part", 1, 3, 1, {19}, 8, &family.cases);
  AddParts("parts", 2, 5, 2, {23}, 7, &family.cases);
  AddParts("all parts", 6, 6, 0, {6}, 6, &family.cases);
  family.rejections = {
      {"embedding",
       {F32({5, 7}), F32({3})},
       {},
       "embedding: ids are not i64: table f32[5,7], ids f32[3]"},
      {"embedding",
       {F32({5}), I64({3}, 5)},
       {},
       "embedding: table is not a matrix: table f32[5], ids i64[3]"},
      {"embedding",
       {F32({5, 7}), I64({3}, 5)},
       {{"parts", int64_t{2}}},
       "embedding: got one of 2 parts without its number, expected an operand part"},
      {"embedding",
       {F32({5, 7}), I64({3}, 5), I64({2}, 2)},
       {{"parts", int64_t{4}}},
       "embedding: got 2 of 4 parts of a dim of 5, expected 1 to 4 that divide it: "
       "table f32[5,7], ids i64[3], part i64[2]"},
      {"embedding_grad",
       {F32({4, 7}), I64({3}, 5)},
       FiveRows(),
       "embedding_grad: leading dims differ: dy f32[4,7], ids i64[3]"},
      {"embedding_grad",
       {F32({3, 7}), I64({3}, 5)},
       {{"rows", int64_t{-1}}},
       "embedding_grad: rows is -1, expected rows >= 0"}};
  family.large = {
      Sized("embedding", "wide rows", {F32({67, 768}), I64({5, 40}, 67)}),
      Sized("embedding_grad", "few rows, many times", {F32({3000, 24}), I64({3000}, 7)},
            {{"rows", int64_t{2000}}}),
      Sized("embedding_grad", "one row", {F32({300, 264}), I64({300}, 1)}, {{"rows", int64_t{3}}}),
      // On a GPU, more segments of a list than warps for them.
      Sized("embedding_grad", "one row, often", {F32({9000, 8}), I64({9000}, 1)},
            {{"rows", int64_t{2}}})};
  family.bench = {Sized("embedding", "256", {F32({256, 384}), I64({2048}, 256)}),
                  Sized("embedding_grad", "256", {F32({2048, 384}), I64({2048}, 256)},
                        {{"rows", int64_t{256}}})};
  family.exact_on_gpu = {"embedding"};
  return family;
}

}  // namespace zg::testing
