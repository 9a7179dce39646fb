#include <algorithm>
#include <limits>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Pair = std::vector<int64_t>;

// Calls visit(index of y, index of x or -1) for every element of y and its largest one.
template <typename Visit>
void ForEachLargest(const ir::Attributes& attributes, const ReferenceTensor& x, const Shape& y,
                    const Visit& visit) {
  const Pair& kernel = attributes.Ints("kernel");
  const Pair& stride = attributes.Ints("stride");
  const Pair& padding = attributes.Ints("padding");
  const Pair& dilation = attributes.Ints("dilation");
  const int64_t height = x.shape.dim(2), width = x.shape.dim(3);
  for (int64_t at = 0; at < y.num_elements(); ++at) {
    const int64_t plane = at / (y.dim(2) * y.dim(3));
    const int64_t i = at / y.dim(3) % y.dim(2), j = at % y.dim(3);
    int64_t largest = -1;
    for (int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
      const int64_t h = i * stride[0] - padding[0] + k / kernel[1] * dilation[0];
      const int64_t w = j * stride[1] - padding[1] + k % kernel[1] * dilation[1];
      if (h < 0 || h >= height || w < 0 || w >= width) continue;
      const int64_t index = (plane * height + h) * width + w;
      if (largest < 0 || x.values[index] > x.values[largest]) largest = index;
    }
    visit(at, largest);
  }
}

Shape PooledShape(const ir::Attributes& attributes, const Shape& x) {
  Shape y = x;
  for (int i = 0; i < 2; ++i) {
    const int64_t window = attributes.Ints("dilation")[i] * (attributes.Ints("kernel")[i] - 1) + 1;
    y.set_dim(2 + i, (x.dim(2 + i) + 2 * attributes.Ints("padding")[i] - window) /
                             attributes.Ints("stride")[i] +
                         1);
  }
  return y;
}

ReferenceOutputs MaxPool(const ReferenceCall& call) {
  const Shape shape = PooledShape(call.attributes, call.inputs[0].shape);
  std::vector<double> y(shape.num_elements(), -std::numeric_limits<double>::infinity());
  ForEachLargest(call.attributes, call.inputs[0], shape, [&](int64_t at, int64_t largest) {
    if (largest >= 0) y[at] = call.inputs[0].values[largest];
  });
  return {y};
}

ReferenceOutputs MaxPoolGrad(const ReferenceCall& call) {
  std::vector<double> dx(call.inputs[1].values.size(), 0.0);
  ForEachLargest(call.attributes, call.inputs[1], call.inputs[0].shape,
                 [&](int64_t at, int64_t largest) {
                   if (largest >= 0) dx[largest] += call.inputs[0].values[at];
                 });
  return {dx};
}

// Integers in a fixed order, so that small steps do not change which one is the largest.
void MakeDistinct(ReferenceTensor* x) {
  const auto count = static_cast<int64_t>(x->values.size());
  for (int64_t i = 0; i < count; ++i) {
    x->values[i] = static_cast<double>(i * 37 % 101) - 50.0;
  }
}

struct Window {
  Pair kernel;
  Pair stride;
  Pair padding = {0, 0};
  Pair dilation = {1, 1};
};

void AddCases(std::vector<OpCase>* cases, const std::string& label, const Shape& x,
              const Window& window, bool has_reference = true) {
  OpCase pool;
  pool.op = "max_pool2d";
  pool.label = label;
  pool.inputs = {F32(x)};
  pool.attributes = {{"kernel", window.kernel},
                     {"stride", window.stride},
                     {"padding", window.padding},
                     {"dilation", window.dilation}};
  OpCase grad = pool;
  grad.op = "max_pool2d_grad";
  grad.inputs = {F32(PooledShape(pool.attributes, x)), F32(x)};
  if (has_reference) {
    pool.reference = MaxPool;
    pool.prepare = [](ReferenceCall& call) { MakeDistinct(&call.inputs[0]); };
    grad.reference = MaxPoolGrad;
    grad.prepare = [](ReferenceCall& call) { MakeDistinct(&call.inputs[1]); };
  }
  cases->insert(cases->end(), {pool, grad});
}

}  // namespace

FamilyCases MaxPoolCases() {
  FamilyCases family;
  AddCases(&family.cases, "2x2", {2, 3, 4, 6}, {{2, 2}, {2, 2}});
  AddCases(&family.cases, "overlapping, padded", {2, 2, 5, 7}, {{3, 3}, {2, 2}, {1, 1}});
  AddCases(&family.cases, "more windows than lanes", {1, 2, 5, 45}, {{3, 3}, {2, 2}, {1, 1}});
  (family.cases.end() - 2)->check_gradient = false;  // some elements are alike
  AddCases(&family.cases, "unequal", {1, 2, 5, 7}, {{2, 3}, {1, 2}, {1, 0}});
  AddCases(&family.cases, "dilated", {1, 2, 7, 6}, {{3, 2}, {1, 1}, {1, 1}, {2, 3}});
  AddCases(&family.cases, "what no window reaches", {1, 1, 7, 7}, {{2, 2}, {3, 3}});
  AddCases(&family.cases, "splits", {6, 6, 4, 4}, {{2, 2}, {2, 2}});
  AddCases(&family.large, "ResNet's stem", {2, 9, 30, 30}, {{3, 3}, {2, 2}, {1, 1}}, false);
  AddCases(&family.bench, "ResNet's stem", {8, 64, 112, 112}, {{3, 3}, {2, 2}, {1, 1}}, false);
  const ir::Attributes two = {{"kernel", Pair{2, 2}}, {"stride", Pair{2, 2}}};
  family.rejections = {
      {"max_pool2d", {F32({3, 4, 4})}, two, "max_pool2d: x has not 4 dims: x f32[3,4,4]"},
      {"max_pool2d",
       {F32({2, 3, 4, 0})},
       {{"kernel", Pair{2, 2}}, {"stride", Pair{2, 2}}, {"padding", Pair{1, 1}}},
       "max_pool2d: x has no rows or columns: x f32[2,3,4,0]"},
      {"max_pool2d",
       {F32({2, 3, 1, 4})},
       two,
       "max_pool2d: the window has size 2, expected one within the padded size 1: x f32[2,3,1,4]"},
      {"max_pool2d",  // twice this padding is negative in 64 bits
       {F32({2, 3, 4, 4})},
       {{"kernel", Pair{2, 2}}, {"stride", Pair{2, 2}}, {"padding", Pair{0, int64_t{1} << 62}}},
       "max_pool2d: padding is [0,4611686018427387904], expected two numbers from 0 to 2147483648"},
      {"max_pool2d",
       {F32({2, 3, 4, 4})},
       {{"kernel", Pair{2, 2}}, {"stride", Pair{2, 2}}, {"padding", Pair{0, 2}}},
       "max_pool2d: the padding is 2, expected at most half of the window's 2: x f32[2,3,4,4]"},
      {"max_pool2d",
       {F32({2, 3, 4, 4})},
       {{"kernel", Pair{2, 2}}, {"stride", Pair{2}}},
       "max_pool2d: stride is [2], expected two numbers from 1 to 2147483648"},
      {"max_pool2d_grad",
       {F32({2, 3, 4, 4}), F32({2, 3, 4, 4})},
       two,
       "max_pool2d_grad: dy is not of the shape [2,3,2,2]: dy f32[2,3,4,4], x f32[2,3,4,4]"},
  };
  family.exact_on_gpu = {"max_pool2d", "max_pool2d_grad"};
  return family;
}

}  // namespace zg::testing
