#include <fmt/format.h>

#include <utility>
#include <vector>

#include "framework/io/safetensors_writer.h"
#include "tools/checkpoint/target.h"
#include "tools/convert/commands.h"
#include "tools/convert/matched_tensors.h"

namespace zg::convert_tool {

StatusOr<std::string> ConvertFrom(const FromOptions& options) {
  ZG_RETURN_IF_ERROR(checkpoint_tool::CheckTargetFile(options.to, options.may_replace));
  ZG_ASSIGN_OR_RETURN(const KnownModel model, ReadKnownModel(options.from));
  ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(options.from));
  ZG_ASSIGN_OR_RETURN(const MatchedTensors matched, Match(model, Side::kTheirs, weights));
  std::vector<TensorToWrite> tensors;
  uint64_t elements = 0;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const Weights::Tensor& from = matched.tensors[i];
    tensors.push_back(AsOtherSide(model.tensors[i], from, model.tensors[i].ours,
                                  options.dtype.value_or(from.entry->dtype)));
    elements += from.entry->size_bytes() * 8 / BitsOf(from.entry->dtype);
  }
  std::string said = fmt::format("{}: {}, {} tensors, {} parameters; a file for --init\n",
                                 options.to, model.type, tensors.size(), elements);
  if (!matched.left_out.empty()) {
    said += fmt::format("left out, as our model has them once or has nothing for them: {}\n",
                        fmt::join(matched.left_out, ", "));
  }
  ZG_RETURN_IF_ERROR(WriteSafetensors(options.to, std::move(tensors)));
  return said;
}

}  // namespace zg::convert_tool
