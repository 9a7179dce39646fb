#include "framework/io/safetensors_layout.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "framework/io/safetensors_header.h"

namespace zg {
namespace {

// nullopt if a name or a value is not UTF-8.
std::optional<std::string> ToText(const nlohmann::ordered_json& json) {
  try {
    return json.dump();
  } catch (const nlohmann::json::type_error&) {
    return std::nullopt;
  }
}

}  // namespace

StatusOr<SafetensorsLayout> MakeSafetensorsLayout(
    const std::vector<TensorOfFile>& tensors, const std::map<std::string, std::string>& metadata) {
  SafetensorsLayout layout;
  nlohmann::ordered_json header;
  header[std::string(kSafetensorsMetadataKey)] = metadata;
  header[std::string(kSafetensorsMetadataKey)]["format"] = "pt";
  std::unordered_set<std::string> names{std::string(kSafetensorsMetadataKey)};
  uint64_t begin = 0;
  // operator[] of the JSON is not used, because it searches all earlier keys.
  auto& members = header.get_ref<nlohmann::ordered_json::object_t&>();
  for (const TensorOfFile& tensor : tensors) {
    const std::string who = "tensor " + QuoteForMessage(tensor.name);
    if (!names.insert(tensor.name).second) {
      return InvalidArgument("{}: the name is there twice or reserved", who);
    }
    StatusOr<uint64_t> size = SafetensorsByteSize(tensor.dtype, tensor.shape);
    if (!size.ok()) return size.status().WithContext(who);
    uint64_t end = 0;
    if (__builtin_add_overflow(begin, *size, &end)) {
      return InvalidArgument("{}: the file's size overflows 64 bits", who);
    }
    layout.begin_bytes.push_back(begin);
    layout.end_bytes.push_back(end);
    nlohmann::ordered_json record;
    record["dtype"] = std::string(SafetensorsDTypeName(tensor.dtype));
    record["shape"] = tensor.shape;
    record["data_offsets"] = {begin, end};
    members.push_back({tensor.name, std::move(record)});
    begin = end;
  }
  const std::optional<std::string> text = ToText(header);
  if (!text) return InvalidArgument("a tensor's name or a metadata value is not UTF-8");
  const uint64_t length = (text->size() + 7) / 8 * 8;
  if (length > kMaxSafetensorsHeaderBytes) {
    return InvalidArgument(
        "the header would have {} bytes, expected at most {}; write fewer tensors", length,
        kMaxSafetensorsHeaderBytes);
  }
  for (int i = 0; i < 8; ++i) layout.prefix += static_cast<char>(length >> (8 * i) & 0xff);
  layout.prefix += *text;
  layout.prefix.append(length - text->size(), ' ');
  return layout;
}

}  // namespace zg
