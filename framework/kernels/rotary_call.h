// RotaryCall: the sizes and frequencies of a call of rotary (framework/ops/rotary.cc), for the kernels
// of both devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "framework/kernels/kernel.h"
#include "framework/ops/rotary_frequencies.h"

namespace zg {

struct RotaryCall {
  TensorType x;
  int64_t batch, time, heads, head_size;
  int64_t rotated;  // channels of a head, R
  float scale;      // of cosines and sines
  bool interleaved;
  bool inverse;
  // positions[b * batch_stride + t * time_stride], plus t where that stride is 0.
  bool has_positions;
  int64_t batch_stride, time_stride;
  std::vector<float> frequencies;  // (R / 2), angles for each position; negative for the inverse

  explicit RotaryCall(const ir::OpCall& call)
      : x(call.inputs[0]),
        batch(x.shape.dim(0)),
        time(x.shape.dim(1)),
        heads(x.shape.dim(2) / call.attributes.Int("head_size")),
        head_size(call.attributes.Int("head_size")),
        rotated(call.attributes.Int("rotated")),
        scale(static_cast<float>(call.attributes.Float("scale"))),
        interleaved(call.attributes.Bool("interleaved")),
        inverse(call.attributes.Bool("inverse")),
        has_positions(call.inputs.size() == 2),
        batch_stride(0),
        time_stride(0) {
    if (has_positions) {
      const Shape& positions = call.inputs[1].shape;
      time_stride = positions.num_dims() == 2 ? 1 : 0;
      batch_stride = time_stride == 1 ? time : positions.dim(0) == 1 ? 0 : 1;
    }
    if (rotated == 0) rotated = head_size;
    const auto given = ParseFrequencies(call.attributes.String("frequencies"));
    for (int64_t i = 0; i < rotated / 2; ++i) {
      const double frequency = given ? (*given)[i] : Frequency(call.attributes, i);
      frequencies.push_back(static_cast<float>(inverse ? -frequency : frequency));
    }
  }

 private:
  // Scaled like rope_type "llama3" in transformers' modeling_rope_utils.py.
  double Frequency(const ir::Attributes& attributes, int64_t pair) const {
    const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(rotated);
    const double frequency = std::pow(attributes.Float("theta"), exponent);
    const double factor = attributes.Float("factor");
    const double low = attributes.Float("low_frequency");
    const double high = attributes.Float("high_frequency");
    if (factor == 1.0) return frequency;
    const double turns =  // within the original context
        static_cast<double>(attributes.Int("original_context")) * frequency /
        (2.0 * std::acos(-1.0));
    if (turns < low) return frequency / factor;
    if (turns > high) return frequency;
    const double share = (turns - low) / (high - low);
    return (1.0 - share) * frequency / factor + share * frequency;
  }
};

}  // namespace zg
