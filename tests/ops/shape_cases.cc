#include <algorithm>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Ints = std::vector<int64_t>;

std::vector<int64_t> IndexOf(int64_t element, const Shape& shape) {
  std::vector<int64_t> index(shape.num_dims());
  for (int dim = shape.num_dims(); dim-- > 0;) {
    index[dim] = element % shape.dim(dim);
    element /= shape.dim(dim);
  }
  return index;
}

double ElementAt(const ReferenceTensor& x, const std::vector<int64_t>& index) {
  int64_t element = 0;
  for (int dim = 0; dim < x.shape.num_dims(); ++dim) {
    element = element * x.shape.dim(dim) + index[dim];
  }
  return x.values[element];
}

ReferenceOutputs Permute(const ReferenceCall& call) {
  const Ints& order = call.attributes.Ints("order");
  const ReferenceTensor& x = call.inputs[0];
  Ints dims;
  for (const int64_t dim : order) dims.push_back(x.shape.dim(static_cast<int>(dim)));
  const Shape y_shape(dims);
  std::vector<double> y;
  for (int64_t i = 0; i < y_shape.num_elements(); ++i) {
    const std::vector<int64_t> index = IndexOf(i, y_shape);
    std::vector<int64_t> x_index(index.size());
    for (size_t dim = 0; dim < index.size(); ++dim) x_index[order[dim]] = index[dim];
    y.push_back(ElementAt(x, x_index));
  }
  return {y};
}

ReferenceOutputs Slice(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  Shape y_shape = x.shape;
  y_shape.set_dim(dim, call.attributes.Int("size"));
  std::vector<double> y;
  for (int64_t i = 0; i < y_shape.num_elements(); ++i) {
    std::vector<int64_t> index = IndexOf(i, y_shape);
    index[dim] = call.attributes.Int("start") + index[dim] * call.attributes.Int("step");
    y.push_back(ElementAt(x, index));
  }
  return {y};
}

ReferenceOutputs Pad(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  const int64_t step = call.attributes.Int("step");
  Shape y_shape = x.shape;
  y_shape.set_dim(dim, call.attributes.Int("before") + (x.shape.dim(dim) - 1) * step + 1 +
                           call.attributes.Int("after"));
  std::vector<double> y;
  for (int64_t i = 0; i < y_shape.num_elements(); ++i) {
    std::vector<int64_t> index = IndexOf(i, y_shape);
    const int64_t at = index[dim] - call.attributes.Int("before");
    index[dim] = at / step;
    const bool is_there = at >= 0 && at % step == 0 && index[dim] < x.shape.dim(dim);
    y.push_back(is_there ? ElementAt(x, index) : call.attributes.Float("value"));
  }
  return {y};
}

ReferenceOutputs Concat(const ReferenceCall& call) {
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  Shape y_shape = call.inputs[0].shape;
  int64_t size = 0;
  for (const ReferenceTensor& x : call.inputs) size += x.shape.dim(dim);
  y_shape.set_dim(dim, size);
  std::vector<double> y;
  for (int64_t i = 0; i < y_shape.num_elements(); ++i) {
    std::vector<int64_t> index = IndexOf(i, y_shape);
    size_t from = 0;
    while (index[dim] >= call.inputs[from].shape.dim(dim)) {
      index[dim] -= call.inputs[from++].shape.dim(dim);
    }
    y.push_back(ElementAt(call.inputs[from], index));
  }
  return {y};
}

OpCase PermuteOf(std::string label, const Shape& x, Ints order) {
  return {.op = "permute",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"order", std::move(order)}},
          .reference = Permute};
}

OpCase SliceOf(std::string label, const Shape& x, int64_t dim, int64_t start, int64_t size,
               int64_t step = 1) {
  return {.op = "slice",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dim", dim}, {"start", start}, {"size", size}, {"step", step}},
          .reference = Slice};
}

OpCase PadOf(std::string label, const Shape& x, int64_t dim, int64_t before, int64_t after,
             int64_t step = 1, double value = 0.0) {
  return {.op = "pad",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dim", dim},
                         {"before", before},
                         {"after", after},
                         {"step", step},
                         {"value", value}},
          .reference = Pad};
}

OpCase ConcatOf(std::string label, const std::vector<Shape>& shapes, int64_t dim) {
  OpCase concat = {
      .op = "concat", .label = std::move(label), .attributes = {{"dim", dim}}, .reference = Concat};
  for (const Shape& shape : shapes) concat.inputs.push_back(F32(shape));
  return concat;
}

OpCase GroupsOf(const std::vector<Shape>& shapes, int64_t dim) {
  OpCase groups = ConcatOf("groups", shapes, dim);
  groups.attributes.Set("of_groups", true);
  return groups;
}

ReferenceOutputs Flip(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const int dim = static_cast<int>(call.attributes.Int("dim"));
  std::vector<double> y;
  for (int64_t i = 0; i < x.shape.num_elements(); ++i) {
    std::vector<int64_t> index = IndexOf(i, x.shape);
    index[dim] = x.shape.dim(dim) - 1 - index[dim];
    y.push_back(ElementAt(x, index));
  }
  return {y};
}

OpCase FlipOf(std::string label, const Shape& x, int64_t dim) {
  return {.op = "flip",
          .label = std::move(label),
          .inputs = {F32(x)},
          .attributes = {{"dim", dim}},
          .reference = Flip};
}

OpCase OfIds(OpCase op_case) {
  for (InputSpec& input : op_case.inputs) input = I64(input.type.shape, 1000);
  op_case.label += ", i64";
  op_case.check_gradient = false;
  return op_case;
}

}  // namespace

FamilyCases ShapeCases() {
  FamilyCases family;
  family.cases = {
      PermuteOf("a matrix", {5, 7}, {1, 0}),
      PermuteOf("nothing moves", {5, 7}, {0, 1}),
      PermuteOf("a scalar", {}, {}),
      PermuteOf("heads", {3, 5, 2, 7}, {0, 2, 1, 3}),
      PermuteOf("all", {3, 1, 5, 7}, {3, 1, 0, 2}),
      PermuteOf("beyond a square", {2, 67, 45}, {0, 2, 1}),
      OfIds(PermuteOf("a matrix", {5, 7}, {1, 0})),
      PermuteOf("three", {3, 5, 7}, {2, 0, 1}),
      SliceOf("leading", {5, 7}, 0, 1, 3),
      SliceOf("last", {5, 7}, 1, 2, 4),
      SliceOf("with steps", {3, 8, 2}, 1, 1, 3, 3),
      SliceOf("nothing", {5, 7}, 1, 7, 0),
      OfIds(SliceOf("last", {5, 7}, 1, 2, 4)),
      SliceOf("splits", {6, 6, 6}, 1, 1, 4),
      SliceOf("splits of the others", {6, 6, 6}, 0, 1, 4),
      PadOf("leading", {5, 7}, 0, 1, 2),
      PadOf("last, with numbers", {5, 7}, 1, 2, 0, 1, -1.5),
      PadOf("between", {3, 4, 2}, 1, 1, 2, 3),
      OfIds(PadOf("last", {5, 7}, 1, 2, 1, 1, 7.0)),
      PadOf("splits", {6, 6, 6}, 1, 1, 4),
      PadOf("splits of the others", {6, 6, 6}, 0, 1, 4),
      ConcatOf("leading", {{2, 7}, {3, 7}}, 0),
      ConcatOf("last", {{5, 2}, {5, 1}, {5, 4}}, 1),
      ConcatOf("one", {{5, 2}}, 1),
      OfIds(ConcatOf("last", {{5, 2}, {5, 1}}, 1)),
      ConcatOf("splits", {{6, 6, 6}, {6, 2, 6}}, 1),
      ConcatOf("splits of the others", {{6, 6, 6}, {2, 6, 6}}, 0),
      GroupsOf({{3, 6}, {3, 6}, {3, 6}}, 1),
      FlipOf("leading", {5, 7}, 0),
      FlipOf("middle", {3, 5, 7}, 1),
      OfIds(FlipOf("last", {5, 7}, 1)),
      FlipOf("splits", {6, 6, 6}, 1),
      FlipOf("splits of the others", {6, 6, 6}, 0),
  };
  // For each op that takes any sizes, a case whose dims are all divisible by 6.
  const size_t num_cases = family.cases.size();
  for (size_t i = 0; i < num_cases; ++i) {
    if (family.cases[i].label == "beyond a square") family.cases[i].check_gradient = false;
    OpCase splits = family.cases[i];
    if (splits.op != "permute" && splits.op != "concat") continue;
    splits.label += ", splits";
    splits.check_gradient = false;
    for (InputSpec& input : splits.inputs) {
      for (int dim = 0; dim < input.type.shape.num_dims(); ++dim) input.type.shape.set_dim(dim, 6);
    }
    family.cases.push_back(std::move(splits));
  }
  family.rejections = {
      {"flip",
       {F32({5, 7})},
       {{"dim", int64_t{2}}},
       "flip: got dim 2, expected one of its dims: x f32[5,7]"},
      {"reshape",
       {F32({6, 4})},
       {{"from", Ints{1}}, {"to", Ints{1}}, {"sizes", Ints{-1}}},
       "reshape: its groups are not those of the dims: x f32[6,4]"},
      {"reshape",
       {F32({6, 4})},
       {{"from", Ints{2}}, {"to", Ints{2}}, {"sizes", Ints{-1, 5}}},
       "reshape: 24 elements do not make dims of the sizes [-1,5]: x f32[6,4]"},
      {"permute",
       {F32({5, 7})},
       {{"order", Ints{0, 0}}},
       "permute: got order [0,0], expected each of its 2 dims once: x f32[5,7]"},
      {"slice",
       {F32({5, 7})},
       {{"dim", int64_t{2}}, {"start", int64_t{0}}, {"size", int64_t{1}}},
       "slice: got dim 2, expected one of its dims: x f32[5,7]"},
      {"slice",
       {F32({5, 7})},
       {{"dim", int64_t{1}}, {"start", int64_t{4}}, {"size", int64_t{4}}},
       "slice: dim 1 has no 4 elements from 4 on in steps of 1: x f32[5,7]"},
      {"pad",  // in 64 bits the sizes add up to 1
       {F32({5, 3})},
       {{"dim", int64_t{1}},
        {"before", int64_t{1} << 62},
        {"after", int64_t{1} << 62},
        {"step", int64_t{1} << 62}},
       "pad: got sizes that no tensor has: x f32[5,3]"},
      {"pad",
       {F32({5, 7})},
       {{"dim", int64_t{1}}, {"before", int64_t{-1}}, {"after", int64_t{0}}},
       "pad: got before=-1, after=0, step=1, expected 0 or more, and a step of at least 1: x "
       "f32[5,7]"},
      {"concat",
       {F32({5, 7}), F32({4, 7})},
       {{"dim", int64_t{1}}},
       "concat: they differ in more than dim 1: x0 f32[5,7], x1 f32[4,7]"},
      {"concat",
       {F32({5, 7}), I64({5, 7}, 3)},
       {{"dim", int64_t{1}}},
       "concat: their dtypes differ: x0 f32[5,7], x1 i64[5,7]"},
  };
  family.large = {PermuteOf("heads", {4, 128, 6, 64}, {0, 2, 1, 3}),
                  PermuteOf("a matrix", {300, 500}, {1, 0}),
                  SliceOf("part", {70, 3000}, 1, 5, 2000), PadOf("part", {70, 3000}, 1, 5, 70),
                  ConcatOf("two", {{70, 3000}, {70, 17}}, 1)};
  for (OpCase& large : family.large) large.reference = nullptr;
  family.bench = {
      PermuteOf("heads", {8, 256, 6, 64}, {0, 2, 1, 3}),
      PermuteOf("a matrix", {2048, 2048}, {1, 0}), SliceOf("half", {2048, 3072}, 1, 1536, 1536),
      PadOf("twice", {2048, 1536}, 1, 0, 1536), ConcatOf("two", {{2048, 768}, {2048, 768}}, 1)};
  for (const char* op : {"permute", "slice", "pad", "concat", "flip"}) {
    family.exact_on_gpu.push_back(op);
  }
  return family;
}

}  // namespace zg::testing
