#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/io/safetensors_writer.h"
#include "tools/checkpoint/target.h"
#include "tools/command/inputs.h"
#include "tools/convert/commands.h"
#include "tools/convert/matched_tensors.h"

namespace zg::convert_tool {
namespace {

uint64_t BytesOf(const TensorToWrite& tensor) {
  uint64_t bytes = BitsOf(tensor.dtype) / 8;
  for (const int64_t size : tensor.shape) bytes *= size;
  return bytes;
}

// The bytes of `parts`, one after the other.
TensorSource Joined(std::vector<TensorToWrite> parts) {
  return [parts = std::move(parts)](uint64_t offset, uint8_t* chunk, size_t size) -> Status {
    for (const TensorToWrite& part : parts) {
      const uint64_t bytes = BytesOf(part);
      if (offset >= bytes) {
        offset -= bytes;
        continue;
      }
      const size_t own = std::min<uint64_t>(size, bytes - offset);
      ZG_RETURN_IF_ERROR(part.source(offset, chunk, own));
      offset = 0;
      chunk += own;
      size -= own;
      if (size == 0) break;
    }
    return Status::Ok();
  };
}

}  // namespace

StatusOr<std::string> ConvertFrom(const FromOptions& options) {
  ZG_RETURN_IF_ERROR(checkpoint_tool::CheckTargetFile(options.to, options.may_replace));
  ZG_ASSIGN_OR_RETURN(const KnownModel model, ReadKnownModel(options.from));
  ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(options.from));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options.to, weights.inputs()));
  ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options.to, {options.from + "/config.json"}));
  ZG_ASSIGN_OR_RETURN(const MatchedTensors matched, Match(model, Side::kTheirs, weights));
  std::vector<TensorToWrite> tensors;
  uint64_t elements = 0;
  for (size_t i = 0; i < model.tensors.size();) {
    const KnownTensor& first = model.tensors[i];
    const SafetensorsDType dtype = options.dtype.value_or(matched.tensors[i].entry->dtype);
    std::vector<TensorToWrite> parts;
    for (; i < model.tensors.size() && model.tensors[i].ours == first.ours; ++i) {
      const Weights::Tensor& from = matched.tensors[i];
      parts.push_back(AsOtherSide(model.tensors[i], from, first.ours, dtype));
      elements += from.entry->size_bytes() * 8 / BitsOf(from.entry->dtype);
    }
    if (first.whole.empty()) {
      tensors.push_back(std::move(parts.front()));
    } else {
      tensors.push_back({first.ours, dtype, first.whole, nullptr, Joined(std::move(parts))});
    }
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
