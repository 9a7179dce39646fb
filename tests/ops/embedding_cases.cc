#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

ReferenceOutputs Embedding(const ReferenceCall& call) {
  const ReferenceTensor& table = call.inputs[0];
  const int64_t columns = Columns(table);
  std::vector<double> y;
  for (double id : call.inputs[1].values) {
    const auto row = table.values.begin() + static_cast<int64_t>(id) * columns;
    y.insert(y.end(), row, row + columns);
  }
  return {y};
}

ReferenceOutputs EmbeddingGrad(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  const int64_t columns = Columns(dy);
  std::vector<double> sum(call.attributes.Int("rows") * columns, 0.0);
  for (size_t i = 0; i < dy.values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(call.inputs[1].values[i / columns]);
    sum[row * columns + i % columns] += dy.values[i];
  }
  return {sum};
}

}  // namespace

FamilyCases EmbeddingCases() {
  const Attributes five_rows = {{"rows", int64_t{5}}};
  return {{
              {.op = "embedding",
               .label = "odd",
               .inputs = {F32({5, 7}), I64({3}, 5)},
               .reference = Embedding},
              {.op = "embedding",
               .label = "one id",
               .inputs = {F32({5, 7}), I64({}, 5)},
               .reference = Embedding},
              {.op = "embedding",
               .label = "splits",
               .inputs = {F32({5, 6}), I64({6, 12}, 5)},
               .reference = Embedding},
              {.op = "embedding_grad",
               .label = "odd",
               .inputs = {F32({9, 7}), I64({9}, 5)},
               .attributes = five_rows,
               .reference = EmbeddingGrad},
              {.op = "embedding_grad",
               .label = "one id",
               .inputs = {F32({7}), I64({}, 5)},
               .attributes = five_rows,
               .reference = EmbeddingGrad},
              {.op = "embedding_grad",
               .label = "splits",
               .inputs = {F32({6, 12, 18}), I64({6, 12}, 5)},
               .attributes = five_rows,
               .reference = EmbeddingGrad},
          },
          {
              {"embedding",
               {F32({5, 7}), F32({3})},
               {},
               "embedding: ids are not i64: table f32[5,7], ids f32[3]"},
              {"embedding",
               {F32({5}), I64({3}, 5)},
               {},
               "embedding: table is not a matrix: table f32[5], ids i64[3]"},
              {"embedding_grad",
               {F32({4, 7}), I64({3}, 5)},
               five_rows,
               "embedding_grad: leading dims differ: dy f32[4,7], ids i64[3]"},
              {"embedding_grad",
               {F32({3, 7}), I64({3}, 5)},
               {{"rows", int64_t{0}}},
               "embedding_grad: rows is 0, expected rows >= 1"},
          }};
}

}  // namespace zg::testing
