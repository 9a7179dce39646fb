#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

using Pair = std::vector<int64_t>;
using Matrix = std::vector<std::vector<double>>;

// The interpolating cubic convolution as its second form: the cubic Hermite spline whose slopes are
// 0.75 times the difference of the two neighbours.
std::vector<double> CubicRow(double at, int64_t in) {
  const double floor = std::floor(at), t = at - floor;
  const double of_start = (2 * t - 3) * t * t + 1, of_end = 1 - of_start;
  const double of_first_slope = ((t - 2) * t + 1) * t, of_last_slope = (t - 1) * t * t;
  const double weights[4] = {-0.75 * of_first_slope, of_start - 0.75 * of_last_slope,
                             of_end + 0.75 * of_first_slope, 0.75 * of_last_slope};
  std::vector<double> row(in, 0.0);
  for (int64_t i = 0; i < 4; ++i) {
    row[std::clamp<int64_t>(static_cast<int64_t>(floor) + i - 1, 0, in - 1)] += weights[i];
  }
  return row;
}

// The map of one dim, from `in` to `out` elements.
Matrix MapOf(const ir::Attributes& attributes, int dim, int64_t in, int64_t out) {
  const std::string& method = attributes.String("method");
  Matrix map(out, std::vector<double>(in, 0.0));
  for (int64_t i = 0; i < out; ++i) {
    if (method == "average") {
      const int64_t kernel = attributes.Ints("kernel")[dim];
      const int64_t first = i * attributes.Ints("stride")[dim] - attributes.Ints("padding")[dim];
      const int64_t begin = std::max<int64_t>(0, first), end = std::min(in, first + kernel);
      const int64_t counted = std::min(kernel, in + attributes.Ints("padding")[dim] - first);
      const double count =
          static_cast<double>(attributes.Bool("counts_padding") ? counted : end - begin);
      for (int64_t h = begin; h < end; ++h) map[i][h] = 1.0 / count;
    } else if (method == "adaptive") {
      const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
      for (int64_t h = begin; h < end; ++h) map[i][h] = 1.0 / static_cast<double>(end - begin);
    } else if (method == "nearest") {
      map[i][i * in / out] = 1.0;
    } else {
      double at =
          (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
      if (attributes.Bool("align_corners")) {
        at = out == 1 ? 0.0 : static_cast<double>(i * (in - 1)) / static_cast<double>(out - 1);
      }
      if (method == "cubic") {
        map[i] = CubicRow(at, in);
        continue;
      }
      at = std::max(0.0, at);
      const auto below = std::min(static_cast<int64_t>(at), in - 1);
      const double share = at - static_cast<double>(below);
      if (below + 1 == in) {
        map[i][below] = 1.0;
      } else {
        map[i][below] = 1.0 - share;
        map[i][below + 1] = share;
      }
    }
  }
  return map;
}

template <bool kIsGradient>
ReferenceOutputs Resample(const ReferenceCall& call) {
  const Shape& from = call.inputs[0].shape;
  const Pair& size = call.attributes.Ints("size");
  Matrix maps[2];
  for (int i = 0; i < 2; ++i) {
    maps[i] = kIsGradient ? MapOf(call.attributes, i, size[i], from.dim(2 + i))
                          : MapOf(call.attributes, i, from.dim(2 + i), size[i]);
  }
  std::vector<double> result;
  for (int64_t plane = 0; plane < from.dim(0) * from.dim(1); ++plane) {
    for (int64_t i = 0; i < size[0]; ++i) {
      for (int64_t j = 0; j < size[1]; ++j) {
        double sum = 0.0;
        for (int64_t h = 0; h < from.dim(2); ++h) {
          for (int64_t w = 0; w < from.dim(3); ++w) {
            const double weight =
                kIsGradient ? maps[0][h][i] * maps[1][w][j] : maps[0][i][h] * maps[1][j][w];
            sum += weight * call.inputs[0].values[(plane * from.dim(2) + h) * from.dim(3) + w];
          }
        }
        result.push_back(sum);
      }
    }
  }
  return {result};
}

void AddCases(std::vector<OpCase>* cases, const std::string& label, const Shape& x,
              const Pair& size, ir::Attributes attributes, bool has_reference = true) {
  OpCase forward;
  forward.op = "resample2d";
  forward.label = label;
  forward.inputs = {F32(x)};
  attributes.Set("size", size);
  forward.attributes = attributes;
  OpCase backward = forward;
  backward.op = "resample2d_grad";
  backward.inputs = {F32({x.dim(0), x.dim(1), size[0], size[1]})};
  backward.attributes.Set("size", Pair{x.dim(2), x.dim(3)});
  if (has_reference) {
    forward.reference = Resample<false>;
    backward.reference = Resample<true>;
  }
  cases->insert(cases->end(), {forward, backward});
}

ir::Attributes Average(Pair kernel, Pair stride, Pair padding = {0, 0},
                       bool counts_padding = true) {
  return {{"method", std::string("average")},
          {"kernel", std::move(kernel)},
          {"stride", std::move(stride)},
          {"padding", std::move(padding)},
          {"counts_padding", counts_padding}};
}

ir::Attributes Method(const char* name, bool align_corners = false) {
  return {{"method", std::string(name)}, {"align_corners", align_corners}};
}

}  // namespace

FamilyCases ResampleCases() {
  FamilyCases family;
  std::vector<OpCase>* const cases = &family.cases;
  AddCases(cases, "average 2x2", {2, 3, 4, 6}, {2, 3}, Average({2, 2}, {2, 2}));
  AddCases(cases, "average, padded", {2, 1, 5, 7}, {3, 4}, Average({3, 3}, {2, 2}, {1, 1}));
  AddCases(cases, "average, a last window in part", {2, 1, 6, 8}, {4, 3},
           Average({3, 4}, {2, 4}, {1, 1}));
  AddCases(cases, "average of what is inside", {2, 1, 5, 7}, {3, 4},
           Average({3, 3}, {2, 2}, {1, 1}, false));
  AddCases(cases, "average with gaps", {1, 2, 7, 8}, {3, 2}, Average({1, 2}, {3, 5}));
  AddCases(cases, "adaptive, to one", {2, 2, 5, 3}, {1, 1}, Method("adaptive"));
  AddCases(cases, "adaptive, overlapping", {1, 2, 7, 5}, {3, 2}, Method("adaptive"));
  AddCases(cases, "adaptive, larger", {1, 2, 3, 2}, {5, 4}, Method("adaptive"));
  AddCases(cases, "nearest, larger", {2, 2, 3, 4}, {6, 10}, Method("nearest"));
  AddCases(cases, "nearest, smaller", {1, 2, 7, 5}, {3, 2}, Method("nearest"));
  AddCases(cases, "linear, larger", {2, 2, 3, 4}, {6, 9}, Method("linear"));
  AddCases(cases, "linear, smaller", {1, 2, 9, 8}, {4, 3}, Method("linear"));
  AddCases(cases, "linear, corners", {2, 2, 3, 4}, {7, 9}, Method("linear", true));
  AddCases(cases, "linear, of one", {1, 2, 1, 4}, {3, 1}, Method("linear", true));
  AddCases(cases, "cubic, larger", {2, 2, 3, 4}, {6, 9}, Method("cubic"));
  AddCases(cases, "cubic, smaller", {1, 2, 9, 8}, {4, 3}, Method("cubic"));
  AddCases(cases, "cubic, corners", {2, 2, 5, 6}, {7, 9}, Method("cubic", true));
  AddCases(cases, "cubic, of one", {1, 2, 1, 4}, {3, 1}, Method("cubic", true));
  AddCases(cases, "splits", {6, 6, 4, 4}, {2, 2}, Average({2, 2}, {2, 2}));
  AddCases(&family.large, "linear", {3, 7, 31, 40}, {62, 77}, Method("linear"), false);
  AddCases(&family.bench, "adaptive, to one", {32, 512, 4, 4}, {1, 1}, Method("adaptive"), false);
  AddCases(&family.large, "cubic", {3, 7, 31, 40}, {62, 77}, Method("cubic"), false);
  AddCases(&family.bench, "cubic, twice", {8, 64, 32, 32}, {64, 64}, Method("cubic"), false);
  AddCases(&family.bench, "linear, twice", {8, 64, 32, 32}, {64, 64}, Method("linear"), false);
  const auto with_size = [](ir::Attributes attributes, Pair size) {
    attributes.Set("size", std::move(size));
    return attributes;
  };
  family.rejections = {
      {"resample2d",
       {F32({3, 4, 4})},
       with_size(Method("nearest"), {2, 2}),
       "resample2d: x has not 4 dims: x f32[3,4,4]"},
      {"resample2d",
       {F32({2, 3, 0, 4})},
       with_size(Method("nearest"), {2, 2}),
       "resample2d: x has no rows or columns: x f32[2,3,0,4]"},
      {"resample2d",
       {F32({2, 3, 4, 4})},
       with_size(Method("lanczos"), {2, 2}),
       "resample2d: got the method 'lanczos', expected average, adaptive, nearest, linear or cubic"},
      {"resample2d",
       {F32({2, 3, 4, 4})},
       with_size(Method("nearest"), {0, 2}),
       "resample2d: size is [0,2], expected two numbers from 1 to 2147483648"},
      {"resample2d",
       {F32({2, 3, 4, 4})},
       with_size(Average({2, 2}, {2, 2}), {2, 3}),
       "resample2d: got a result of size 3, expected 2: x f32[2,3,4,4]"},
      {"resample2d_grad",
       {F32({2, 3, 2, 2})},
       with_size(Average({2, 2}, {2, 2}, {2, 0}), {4, 4}),
       "resample2d_grad: the padding is 2, expected at most half of the window's 2: "
       "dy f32[2,3,2,2]"},
  };
  return family;
}

}  // namespace zg::testing
