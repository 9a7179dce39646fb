#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Pair = std::vector<int64_t>;

struct Window {
  Pair stride = {1, 1};
  Pair padding = {0, 0};
  Pair dilation = {1, 1};
  int64_t groups = 1;
};

ir::Attributes AttributesOf(const Window& window) {
  return {{"stride", window.stride},
          {"padding", window.padding},
          {"dilation", window.dilation},
          {"groups", window.groups}};
}

// Calls visit(index in x, index in weight, index in y) for every product of a convolution.
template <typename Visit>
void ForEachProduct(const ir::Attributes& attributes, const Shape& x, const Shape& weight,
                    const Shape& y, const Visit& visit) {
  const Pair& stride = attributes.Ints("stride");
  const Pair& padding = attributes.Ints("padding");
  const Pair& dilation = attributes.Ints("dilation");
  const int64_t outputs = weight.dim(0) / attributes.Int("groups");
  for (int64_t at_y = 0; at_y < y.num_elements(); ++at_y) {
    const int64_t j = at_y % y.dim(3), i = at_y / y.dim(3) % y.dim(2);
    const int64_t o = at_y / y.dim(3) / y.dim(2) % y.dim(1),
                  n = at_y / y.dim(3) / y.dim(2) / y.dim(1);
    for (int64_t at = 0; at < weight.num_elements() / weight.dim(0); ++at) {
      const int64_t l = at % weight.dim(3), k = at / weight.dim(3) % weight.dim(2);
      const int64_t c = o / outputs * weight.dim(1) + at / weight.dim(3) / weight.dim(2);
      const int64_t h = i * stride[0] - padding[0] + k * dilation[0];
      const int64_t w = j * stride[1] - padding[1] + l * dilation[1];
      if (h < 0 || h >= x.dim(2) || w < 0 || w >= x.dim(3)) continue;
      visit(((n * x.dim(1) + c) * x.dim(2) + h) * x.dim(3) + w,
            o * (weight.num_elements() / weight.dim(0)) + at, at_y);
    }
  }
}

int64_t OutputSize(const Window& window, const Shape& x, const Shape& weight, int i) {
  return (x.dim(2 + i) + 2 * window.padding[i] - window.dilation[i] * (weight.dim(2 + i) - 1) - 1) /
             window.stride[i] +
         1;
}

Shape OutputShape(const Window& window, const Shape& x, const Shape& weight) {
  return {x.dim(0), weight.dim(0), OutputSize(window, x, weight, 0),
          OutputSize(window, x, weight, 1)};
}

ReferenceOutputs Conv(const ReferenceCall& call) {
  const ReferenceTensor& x = call.inputs[0];
  const ReferenceTensor& weight = call.inputs[1];
  Window window = {call.attributes.Ints("stride"), call.attributes.Ints("padding"),
                   call.attributes.Ints("dilation")};
  const Shape shape = OutputShape(window, x.shape, weight.shape);
  std::vector<double> y(shape.num_elements(), 0.0);
  for (size_t i = 0; i < y.size() && call.inputs.size() == 3; ++i) {
    y[i] = call.inputs[2].values[i / (shape.dim(2) * shape.dim(3)) % shape.dim(1)];
  }
  ForEachProduct(call.attributes, x.shape, weight.shape, shape,
                 [&](int64_t at_x, int64_t at_weight, int64_t at_y) {
                   y[at_y] += x.values[at_x] * weight.values[at_weight];
                 });
  return {y};
}

ReferenceOutputs GradInput(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  const ReferenceTensor& weight = call.inputs[1];
  const Pair& size = call.attributes.Ints("size");
  const Shape x = {dy.shape.dim(0), weight.shape.dim(1) * call.attributes.Int("groups"), size[0],
                   size[1]};
  std::vector<double> dx(x.num_elements(), 0.0);
  ForEachProduct(call.attributes, x, weight.shape, dy.shape,
                 [&](int64_t at_x, int64_t at_weight, int64_t at_y) {
                   dx[at_x] += dy.values[at_y] * weight.values[at_weight];
                 });
  return {dx};
}

ReferenceOutputs GradWeight(const ReferenceCall& call) {
  const ReferenceTensor& dy = call.inputs[0];
  const ReferenceTensor& x = call.inputs[1];
  const Pair& kernel = call.attributes.Ints("kernel");
  const Shape weight = {dy.shape.dim(1), x.shape.dim(1) / call.attributes.Int("groups"), kernel[0],
                        kernel[1]};
  std::vector<double> dw(weight.num_elements(), 0.0);
  ForEachProduct(call.attributes, x.shape, weight, dy.shape,
                 [&](int64_t at_x, int64_t at_weight, int64_t at_y) {
                   dw[at_weight] += dy.values[at_y] * x.values[at_x];
                 });
  return {dw};
}

// The three ops for one convolution.
void AddCases(std::vector<OpCase>* cases, const std::string& label, const Shape& x,
              const Shape& weight, const Window& window, bool has_bias = false,
              bool check_gradient = true) {
  const Shape y = OutputShape(window, x, weight);
  OpCase conv;
  conv.op = "conv2d";
  conv.sums_products = true;
  conv.label = label;
  conv.inputs = {F32(x), F32(weight)};
  if (has_bias) conv.inputs.push_back(F32({weight.dim(0)}));
  conv.attributes = AttributesOf(window);
  conv.reference = Conv;
  conv.check_gradient = check_gradient;
  OpCase grad_input = conv;
  grad_input.op = "conv2d_grad_input";
  grad_input.inputs = {F32(y), F32(weight)};
  grad_input.attributes.Set("size", Pair{x.dim(2), x.dim(3)});
  grad_input.reference = GradInput;
  OpCase grad_weight = conv;
  grad_weight.op = "conv2d_grad_weight";
  grad_weight.inputs = {F32(y), F32(x)};
  grad_weight.attributes.Set("kernel", Pair{weight.dim(2), weight.dim(3)});
  grad_weight.reference = GradWeight;
  cases->insert(cases->end(), {conv, grad_input, grad_weight});
}

void AddSizes(std::vector<OpCase>* cases, const std::string& label, const Shape& x,
              const Shape& weight, const Window& window) {
  AddCases(cases, label, x, weight, window);
  for (auto added = cases->end() - 3; added != cases->end(); ++added) added->reference = nullptr;
}

}  // namespace

FamilyCases ConvCases() {
  const Window same = {.padding = {1, 1}};
  const Window halving = {.stride = {2, 2}, .padding = {1, 1}};
  FamilyCases family;
  std::vector<OpCase>* const cases = &family.cases;
  AddCases(cases, "3x3", {2, 3, 5, 7}, {4, 3, 3, 3}, {});
  AddCases(cases, "padded, with bias", {2, 3, 5, 4}, {5, 3, 3, 3}, same, true);
  AddCases(cases, "1x1", {3, 4, 3, 3}, {5, 4, 1, 1}, {});
  AddCases(cases, "strided", {2, 3, 7, 8}, {4, 3, 3, 3}, halving);
  AddCases(cases, "strided 1x1", {2, 4, 5, 6}, {3, 4, 1, 1}, {.stride = {2, 2}});
  AddCases(cases, "dilated", {2, 2, 7, 9}, {3, 2, 3, 2}, {.padding = {2, 1}, .dilation = {2, 3}});
  AddCases(cases, "strides that leave pixels out", {1, 2, 8, 9}, {3, 2, 2, 1}, {.stride = {3, 4}});
  AddCases(cases, "strided and dilated", {1, 2, 9, 8}, {3, 2, 3, 3},
           {.stride = {2, 3}, .padding = {1, 2}, .dilation = {3, 2}});
  AddCases(cases, "groups", {2, 6, 4, 5}, {4, 3, 3, 3}, {.padding = {1, 1}, .groups = 2}, true);
  AddCases(cases, "depthwise", {2, 4, 5, 5}, {4, 1, 3, 3}, {.padding = {1, 1}, .groups = 4});
  AddCases(cases, "depthwise, strided, with bias", {2, 3, 7, 9}, {3, 1, 3, 2},
           {.stride = {2, 3}, .padding = {1, 2}, .dilation = {2, 1}, .groups = 3}, true);
  AddCases(cases, "depthwise, large", {3, 5, 16, 21}, {5, 1, 5, 5},
           {.padding = {2, 2}, .groups = 5}, false, false);
  AddCases(cases, "depthwise, some pixels left out", {2, 2, 9, 8}, {2, 1, 2, 2},
           {.stride = {3, 3}, .groups = 2});
  AddCases(cases, "depthwise, more padding than window", {3, 7, 3, 3}, {7, 1, 2, 2},
           {.stride = {1, 2}, .padding = {3, 4}, .groups = 7}, true, false);
  AddCases(cases, "depthwise, bands of rows", {1, 17, 64, 40}, {17, 1, 3, 3},
           {.padding = {1, 1}, .groups = 17}, true, false);
  AddCases(cases, "depthwise, bands of one row", {1, 3, 1, 5000}, {3, 1, 1, 4},
           {.padding = {0, 3}, .groups = 3}, true, false);
  AddCases(cases, "depthwise, strided bands of rows", {2, 9, 131, 34}, {9, 1, 3, 3},
           {.stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 1}, .groups = 9}, false, false);
  AddCases(cases, "more padding than window", {1, 2, 3, 3}, {2, 2, 2, 2}, {.padding = {3, 4}});
  AddCases(cases, "one row", {2, 3, 1, 9}, {4, 3, 1, 3}, {.stride = {1, 2}, .padding = {0, 1}});
  AddCases(cases, "splits", {6, 2, 4, 4}, {3, 2, 3, 3}, same, true);
  AddCases(cases, "splits without bias", {6, 2, 4, 4}, {3, 2, 3, 3}, halving);
  AddCases(cases, "several blocks", {3, 50, 16, 16}, {20, 50, 3, 3}, same, false, false);
  AddCases(cases, "rows of a vector", {2, 16, 3, 32}, {17, 16, 2, 3}, {}, false, false);
  family.rejections = {
      {"conv2d",
       {F32({2, 3, 5}), F32({4, 3, 3, 3})},
       {},
       "conv2d: x has not 4 dims: x f32[2,3,5], weight f32[4,3,3,3]"},
      {"conv2d",
       {F32({2, 3, 0, 5}), F32({4, 3, 1, 1})},
       {{"padding", Pair{1, 1}}},
       "conv2d: x has no rows or columns: x f32[2,3,0,5], weight f32[4,3,1,1]"},
      {"conv2d",
       {F32({2, 3, 5, 5}), F32({4, 2, 3, 3})},
       {},
       "conv2d: got 3 channels, 4 output channels, weights for 2 and 1 groups, expected groups that "
       "divide both, and weights for the channels of one: x f32[2,3,5,5], weight f32[4,2,3,3]"},
      {"conv2d",
       {F32({2, 3, 5, 5}), F32({4, 3, 3, 3}), F32({3})},
       {},
       "conv2d: bias does not fit the output channels of weight: x f32[2,3,5,5], "
       "weight f32[4,3,3,3], bias f32[3]"},
      {"conv2d",
       {F32({2, 3, 5, 5}), F32({4, 3, 3, 3})},
       {{"dilation", Pair{1, 3}}},
       "conv2d: the window has size 7, expected one within the padded size 5: x f32[2,3,5,5], "
       "weight f32[4,3,3,3]"},
      {"conv2d",  // 4 of these steps are none in 64 bits
       {F32({2, 3, 5, 5}), F32({4, 3, 5, 3})},
       {{"dilation", Pair{int64_t{1} << 62, 1}}},
       "conv2d: dilation is [4611686018427387904,1], expected two numbers from 1 to 2147483648"},
      {"conv2d",
       {F32({2, 3, 5, 5}), F32({4, 3, 3, 3})},
       {{"stride", Pair{1, 0}}},
       "conv2d: stride is [1,0], expected two numbers from 1 to 2147483648"},
      {"conv2d",
       {F32({2, 3, 5, 5}), F32({4, 3, 3, 3})},
       {{"groups", int64_t{0}}},
       "conv2d: groups are fewer than one: x f32[2,3,5,5], weight f32[4,3,3,3]"},
      {"conv2d_grad_input",
       {F32({2, 4, 5, 5}), F32({4, 3, 3, 3})},
       {{"size", Pair{5, 5}}},
       "conv2d_grad_input: dy is not of the shape [2,4,3,3]: dy f32[2,4,5,5], "
       "weight f32[4,3,3,3]"},
      {"conv2d_grad_weight",
       {F32({2, 4, 5, 5}), F32({2, 3, 5, 5})},
       {{"kernel", Pair{3, 3}}},
       "conv2d_grad_weight: dy is not of the shape [2,4,3,3]: dy f32[2,4,5,5], x f32[2,3,5,5]"},
  };
  AddSizes(&family.large, "3x3", {5, 33, 14, 18}, {40, 33, 3, 3}, same);
  AddSizes(&family.large, "halving", {3, 20, 30, 28}, {70, 20, 3, 3}, halving);
  // The sizes of ResNet-18 on images of 32x32.
  AddSizes(&family.bench, "stem", {32, 3, 32, 32}, {64, 3, 3, 3}, same);
  AddSizes(&family.bench, "64x32x32", {32, 64, 32, 32}, {64, 64, 3, 3}, same);
  AddSizes(&family.bench, "128x16x16", {32, 128, 16, 16}, {128, 128, 3, 3}, same);
  AddSizes(&family.bench, "256x8x8", {32, 256, 8, 8}, {256, 256, 3, 3}, same);
  AddSizes(&family.bench, "512x4x4", {32, 512, 4, 4}, {512, 512, 3, 3}, same);
  AddSizes(&family.bench, "64x32x32 to 128", {32, 64, 32, 32}, {128, 64, 3, 3}, halving);
  AddSizes(&family.bench, "64x32x32 to 128, 1x1", {32, 64, 32, 32}, {128, 64, 1, 1},
           {.stride = {2, 2}});
  const Window depthwise = {.padding = {1, 1}, .groups = 96};
  AddSizes(&family.bench, "depthwise 96x32x32", {32, 96, 32, 32}, {96, 1, 3, 3}, depthwise);
  AddSizes(&family.bench, "depthwise 96x32x32, halving", {32, 96, 32, 32}, {96, 1, 3, 3},
           {.stride = {2, 2}, .padding = {1, 1}, .groups = 96});
  AddSizes(&family.bench, "depthwise 96x4x4", {32, 96, 4, 4}, {96, 1, 3, 3}, depthwise);
  AddSizes(&family.bench, "depthwise 96x16x16, 7x7", {32, 96, 16, 16}, {96, 1, 7, 7},
           {.padding = {3, 3}, .groups = 96});
  AddSizes(&family.bench, "depthwise 512x1x256", {8, 512, 1, 256}, {512, 1, 1, 4},
           {.padding = {0, 3}, .groups = 512});
  AddSizes(&family.bench, "depthwise 96x112x112", {2, 96, 112, 112}, {96, 1, 3, 3}, depthwise);
  return family;
}

}  // namespace zg::testing
