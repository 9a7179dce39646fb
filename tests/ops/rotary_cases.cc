#include <cmath>
#include <sstream>
#include <string>

#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

int64_t RotatedOf(const ir::Attributes& attributes) {
  const int64_t rotated = attributes.Int("rotated");
  return rotated == 0 ? attributes.Int("head_size") : rotated;
}

double Frequency(const ir::Attributes& attributes, int64_t pair) {
  if (!attributes.String("frequencies").empty()) {
    std::istringstream texts(attributes.String("frequencies"));
    std::string text;
    for (int64_t i = 0; i <= pair; ++i) std::getline(texts, text, ',');
    return std::stod(text);
  }
  const auto size = static_cast<double>(RotatedOf(attributes));
  const double frequency =
      std::pow(attributes.Float("theta"), -2.0 * static_cast<double>(pair) / size);
  const double factor = attributes.Float("factor");
  const double low = attributes.Float("low_frequency"), high = attributes.Float("high_frequency");
  const auto context = static_cast<double>(attributes.Int("original_context"));
  if (factor == 1.0) return frequency;
  const double wavelength = 2.0 * std::acos(-1.0) / frequency;
  if (wavelength > context / low) return frequency / factor;
  if (wavelength < context / high) return frequency;
  const double smooth = (context / wavelength - low) / (high - low);
  return (1.0 - smooth) * frequency / factor + smooth * frequency;
}

ReferenceOutputs Rotary(const ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0].values;
  const Shape& shape = call.inputs[0].shape;
  const int64_t size = call.attributes.Int("head_size");
  const int64_t rotated = RotatedOf(call.attributes);
  const double scale = call.attributes.Float("scale");
  const bool interleaved = call.attributes.Bool("interleaved");
  std::vector<double> y(x.size());
  for (int64_t b = 0; b < shape.dim(0); ++b) {
    for (int64_t t = 0; t < shape.dim(1); ++t) {
      auto position = static_cast<double>(t);
      if (call.inputs.size() == 2) {
        const ReferenceTensor& positions = call.inputs[1];
        if (positions.shape.num_dims() == 2) {
          position = positions.values[b * shape.dim(1) + t];
        } else {
          position += positions.values[positions.shape.dim(0) == 1 ? 0 : b];
        }
      }
      for (int64_t c = 0; c < shape.dim(2); ++c) {
        const int64_t in_head = c % size;
        const int64_t at = (b * shape.dim(1) + t) * shape.dim(2) + c;
        if (in_head >= rotated) {
          y[at] = x[at];
          continue;
        }
        const int64_t pair = interleaved ? in_head / 2 : in_head % (rotated / 2);
        const bool is_first = interleaved ? in_head % 2 == 0 : in_head < rotated / 2;
        const int64_t distance = interleaved ? 1 : rotated / 2;
        const double sign = call.attributes.Bool("inverse") ? -1.0 : 1.0;
        const double angle = sign * position * Frequency(call.attributes, pair);
        y[at] = scale * (is_first ? x[at] * std::cos(angle) - x[at + distance] * std::sin(angle)
                                  : x[at] * std::cos(angle) + x[at - distance] * std::sin(angle));
      }
    }
  }
  return {y};
}

OpCase Case(std::string label, std::vector<InputSpec> inputs, ir::Attributes attributes) {
  return {.op = "rotary",
          .label = std::move(label),
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .reference = Rotary};
}

}  // namespace

FamilyCases RotaryCases() {
  const ir::Attributes four = {{"head_size", int64_t{4}}};
  const ir::Attributes llama3 = {
      {"head_size", int64_t{16}}, {"theta", 500000.0},     {"factor", 8.0},
      {"low_frequency", 1.0},     {"high_frequency", 4.0}, {"original_context", int64_t{512}}};
  FamilyCases family;
  family.cases = {
      Case("halves", {F32({2, 5, 8})}, four),
      Case("interleaved", {F32({2, 5, 12})}, {{"head_size", int64_t{6}}, {"interleaved", true}}),
      Case("inverse", {F32({2, 5, 8})}, {{"head_size", int64_t{4}}, {"inverse", true}}),
      Case("long", {F32({1, 19, 96})}, {{"head_size", int64_t{48}}}),
      Case("offset", {F32({2, 3, 8}), I64({1}, 100)}, four),
      Case("offsets", {F32({2, 3, 8}), I64({2}, 100)}, four),
      Case("positions", {F32({2, 3, 8}), I64({2, 3}, 100)}, four),
      Case("llama 3", {F32({1, 4, 32}), I64({1}, 200)}, llama3),
      Case("rotated", {F32({2, 5, 16})}, {{"head_size", int64_t{8}}, {"rotated", int64_t{6}}}),
      Case("rotated interleaved", {F32({2, 5, 16}), I64({1}, 100)},
           {{"head_size", int64_t{8}}, {"rotated", int64_t{2}}, {"interleaved", true}}),
      Case("frequencies", {F32({2, 5, 12})},
           {{"head_size", int64_t{6}}, {"frequencies", std::string("1,0.5,-1.25e-1")}}),
      Case("frequencies", {F32({2, 5, 12}), I64({2}, 100)},
           {{"head_size", int64_t{6}},
            {"frequencies", std::string("0.25,3e-05")},
            {"rotated", int64_t{4}},
            {"scale", 1.5}}),
      Case("splits", {F32({6, 3, 4})}, four),
      Case("splits", {F32({6, 3, 4}), I64({1}, 100)}, four),
      Case("splits", {F32({6, 3, 4}), I64({6}, 100)}, four),
      Case("heads", {F32({1, 3, 24})}, four),
      Case("heads", {F32({1, 3, 24}), I64({1}, 100)}, four),
  };
  family.rejections = {
      {"rotary", {F32({5, 8})}, four, "rotary: x is not (B, T, H D): x f32[5,8]"},
      {"rotary",
       {F32({2, 5, 8})},
       {{"head_size", int64_t{3}}},
       "rotary: the last dim of x does not divide into heads of 3 channels, an even number: x "
       "f32[2,5,8]"},
      {"rotary",
       {F32({2, 5, 8}), I64({5}, 9)},
       four,
       "rotary: positions are neither i64 (1) or (B), those of the first elements, nor (B, T): x "
       "f32[2,5,8], positions i64[5]"},
      {"rotary",
       {F32({2, 5, 8})},
       {{"head_size", int64_t{4}}, {"theta", 0.0}},
       "rotary: got theta=0, factor=1, low_frequency=1, high_frequency=4, original_context=8192, "
       "expected positive numbers with low_frequency < high_frequency"}};
  family.rejections.push_back(
      {"rotary",
       {F32({2, 5, 8})},
       {{"head_size", int64_t{4}}, {"rotated", int64_t{6}}},
       "rotary: got 6 rotated channels, expected an even number up to 4, the head's"});
  family.rejections.push_back({"rotary",
                               {F32({2, 5, 8})},
                               {{"head_size", int64_t{4}}, {"scale", 0.0}},
                               "rotary: got scale=0, expected a positive number"});
  for (const std::string text : {"1", "1,two", "1,2,3", "1,inf"}) {
    family.rejections.push_back(
        {"rotary",
         {F32({2, 5, 8})},
         {{"head_size", int64_t{4}}, {"frequencies", text}},
         "rotary: got the frequencies '" + text + "', expected 2 finite numbers"});
  }
  family.large = {Sized("rotary", "odd", {F32({3, 65, 3 * 34})}, {{"head_size", int64_t{34}}}),
                  Sized("rotary", "offsets", {F32({3, 65, 256}), I64({3}, 5000)},
                        {{"head_size", int64_t{64}}})};
  family.bench = {Sized("rotary", "llama", {F32({8, 256, 384})}, {{"head_size", int64_t{64}}})};
  family.exact_on_gpu = {"rotary"};
  return family;
}

}  // namespace zg::testing
