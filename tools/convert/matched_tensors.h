// Matches the tensors of a model's files with those of a known model, and reports all mismatches
// together.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_writer.h"
#include "framework/io/weights.h"
#include "tools/checkpoint/foreign_names.h"
#include "tools/convert/known_model.h"

namespace zg::convert_tool {

using checkpoint_tool::Side;

struct MatchedTensors {
  // In the model's order; from the first element of the part, where ours has a part of theirs.
  std::vector<Weights::Tensor> tensors;
  std::vector<std::string> left_out;  // names of copies, and of tensors that ours lacks
};

// `weights` have the names of `side`. Error: all tensors that are missing, unexpected, misshapen or
// not floating-point; a copy that differs.
StatusOr<MatchedTensors> Match(const KnownModel& model, Side side, const Weights& weights);

// `from` as the tensor `name` of the other side's file, with its two dims swapped if the known
// tensor says so.
TensorToWrite AsOtherSide(const KnownTensor& known, const Weights::Tensor& from,
                          const std::string& name, SafetensorsDType dtype);

}  // namespace zg::convert_tool
