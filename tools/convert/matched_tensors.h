// Which tensor of a model's files is which of a known model, with all that does not fit told at once.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_writer.h"
#include "tools/checkpoint/foreign_names.h"
#include "tools/checkpoint/weights.h"
#include "tools/convert/known_model.h"

namespace zg::convert_tool {

using checkpoint_tool::Side;
using checkpoint_tool::Weights;

struct MatchedTensors {
  std::vector<Weights::Tensor> tensors;  // as the model's
  std::vector<std::string> left_out;     // names of copies, and of what ours has nothing for
};

// `weights` have the names of `side`. Error: everything that is missing, unexpected, misshapen or not
// of floating-point numbers; a copy that is not one.
StatusOr<MatchedTensors> Match(const KnownModel& model, Side side, const Weights& weights);

// `from` as the tensor `name` of the other side's file: its two dims in the other order, if the known
// tensor says so.
TensorToWrite AsOtherSide(const KnownTensor& known, const Weights::Tensor& from,
                          const std::string& name, SafetensorsDType dtype);

}  // namespace zg::convert_tool
