#include "tools/convert/matched_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "framework/base/problems.h"
#include "framework/io/float_values.h"
#include "framework/io/safetensors_header.h"
#include "tools/checkpoint/stored_values.h"

namespace zg::convert_tool {
namespace {

bool AreSameBytes(const Weights::Tensor& a, const Weights::Tensor& b) {
  return a.entry->dtype == b.entry->dtype && a.entry->shape == b.entry->shape &&
         (a.entry->size_bytes() == 0 || std::memcmp(a.data, b.data, a.entry->size_bytes()) == 0);
}

// The shape of the tensor in the file.
std::vector<int64_t> ShapeOn(Side side, const KnownTensor& known) {
  if (side == Side::kOurs && !known.whole.empty()) return known.whole;
  std::vector<int64_t> shape = known.shape;
  if (side == Side::kTheirs && known.is_transposed) std::reverse(shape.begin(), shape.end());
  return shape;
}

// Empty if there is no problem.
std::string ProblemOf(const SafetensorsEntry& entry, const std::vector<int64_t>& expected) {
  if (!IsFloatValue(entry.dtype)) {
    return fmt::format("{}: got {}, expected F32, F16 or BF16", entry.name,
                       SafetensorsDTypeName(entry.dtype));
  }
  if (entry.shape != expected) {
    return fmt::format("{}: got the shape [{}], expected [{}]", entry.name,
                       fmt::join(entry.shape, ","), fmt::join(expected, ","));
  }
  return "";
}

}  // namespace

StatusOr<MatchedTensors> Match(const KnownModel& model, Side side, const Weights& weights) {
  MatchedTensors matched;
  Problems problems;
  std::set<std::string> used;
  for (const KnownTensor& known : model.tensors) {
    const std::vector<std::string> names =
        side == Side::kOurs ? std::vector<std::string>{known.ours} : known.theirs;
    Weights::Tensor first;
    for (const std::string& name : names) {
      const auto found = weights.tensors().find(name);
      if (found == weights.tensors().end() || found->second.is_optimizer_state) continue;
      used.insert(name);
      if (first.entry == nullptr) {
        first = found->second;
      } else if (AreSameBytes(first, found->second)) {
        matched.left_out.push_back(name);
      } else {
        problems.Add("{}: differs from {}, but our model has one tensor for both", name,
                     first.entry->name);
      }
    }
    const bool is_told = side == Side::kOurs && known.begin > 0;  // by the first part
    if (first.entry == nullptr) {
      if (!is_told) problems.Add("{}: is missing", names.front());
    } else if (const std::string problem = ProblemOf(*first.entry, ShapeOn(side, known));
               !problem.empty()) {
      if (!is_told) problems.Add("{}", problem);
    } else if (side == Side::kOurs) {
      first.data += known.begin * BitsOf(first.entry->dtype) / 8;
    }
    matched.tensors.push_back(first);
  }
  for (const auto& [name, tensor] : weights.tensors()) {
    if (tensor.is_optimizer_state || used.count(name) != 0) continue;
    const bool is_known =
        side == Side::kTheirs &&
        std::any_of(model.unused.begin(), model.unused.end(), [&](std::string_view pattern) {
          return checkpoint_tool::MatchPattern(pattern, name).has_value();
        });
    if (is_known) {
      matched.left_out.push_back(name);
    } else {
      problems.Add("{}: is not expected", QuoteForMessage(name));
    }
  }
  ZG_RETURN_IF_ERROR(problems.AsStatus(
      weights.path(), fmt::format("the tensors are not those of this config.json ({})", model.type),
      "give weights and the config.json of one model"));
  return matched;
}

TensorToWrite AsOtherSide(const KnownTensor& known, const Weights::Tensor& from,
                          const std::string& name, SafetensorsDType dtype) {
  std::vector<int64_t> shape = known.whole.empty() ? from.entry->shape : known.shape;
  checkpoint_tool::StoredValues values = {from.entry->dtype, from.data, 1, 1};
  const size_t first_column = known.is_transposed ? 1 : 0;
  if (known.is_transposed) values.rows = shape[0];
  for (size_t i = first_column; i < shape.size(); ++i) values.columns *= shape[i];
  if (known.is_transposed) std::reverse(shape.begin(), shape.end());
  return {name, dtype, shape, nullptr,
          checkpoint_tool::SourceOf(values, known.is_transposed, dtype)};
}

}  // namespace zg::convert_tool
