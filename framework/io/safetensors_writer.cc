#include "framework/io/safetensors_writer.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "framework/io/atomic_file.h"
#include "framework/io/safetensors_header.h"

namespace zg {
namespace {

struct Layout {
  std::string prefix;                // the header's length and its text: what comes before the data
  std::vector<uint64_t> size_bytes;  // of each tensor
};

// nullopt when a name or a value is not UTF-8.
std::optional<std::string> ToText(const nlohmann::ordered_json& json) {
  try {
    return json.dump();
  } catch (const nlohmann::json::type_error&) {
    return std::nullopt;
  }
}

StatusOr<Layout> MakeLayout(const std::vector<TensorToWrite>& tensors,
                            const std::map<std::string, std::string>& metadata) {
  Layout layout;
  nlohmann::ordered_json header;
  header[std::string(kSafetensorsMetadataKey)] = metadata;
  header[std::string(kSafetensorsMetadataKey)]["format"] = "pt";
  std::unordered_set<std::string> names{std::string(kSafetensorsMetadataKey)};
  uint64_t begin = 0;
  // Not operator[] of the JSON: it searches all earlier keys.
  auto& members = header.get_ref<nlohmann::ordered_json::object_t&>();
  for (const TensorToWrite& tensor : tensors) {
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
    if (*size > 0 && tensor.data == nullptr && tensor.source == nullptr) {
      return InvalidArgument("{}: got neither data nor a source for its {} bytes", who, *size);
    }
    layout.size_bytes.push_back(*size);
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

Status Append(const void* data, size_t size_bytes, AtomicFile& file, Sha256* digest) {
  if (digest != nullptr) digest->Update(data, size_bytes);
  return file.Write(data, size_bytes);
}

Status AppendTensor(const TensorToWrite& tensor, uint64_t size_bytes, uint8_t* buffer,
                    AtomicFile& file, Sha256* digest) {
  for (uint64_t offset = 0; offset < size_bytes; offset += kSafetensorsChunkBytes) {
    const size_t chunk_bytes = std::min<uint64_t>(kSafetensorsChunkBytes, size_bytes - offset);
    const uint8_t* chunk = buffer;
    if (tensor.data != nullptr) {
      chunk = static_cast<const uint8_t*>(tensor.data) + offset;
    } else {
      ZG_RETURN_IF_ERROR(
          tensor.source(offset, buffer, chunk_bytes)
              .WithContext(file.path() + ": tensor " + QuoteForMessage(tensor.name)));
    }
    ZG_RETURN_IF_ERROR(Append(chunk, chunk_bytes, file, digest));
  }
  return Status::Ok();
}

}  // namespace

Status WriteSafetensors(const std::string& path, std::vector<TensorToWrite> tensors,
                        const SafetensorsWriteOptions& options) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    return std::make_tuple(-BitsOf(a.dtype), std::string_view(a.name)) <
           std::make_tuple(-BitsOf(b.dtype), std::string_view(b.name));
  });
  StatusOr<Layout> layout = MakeLayout(tensors, options.metadata);
  if (!layout.ok()) return layout.status().WithContext(path);
  ZG_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ZG_RETURN_IF_ERROR(Append(layout->prefix.data(), layout->prefix.size(), file, options.digest));
  const auto buffer = std::make_unique<uint8_t[]>(kSafetensorsChunkBytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    ZG_RETURN_IF_ERROR(
        AppendTensor(tensors[i], layout->size_bytes[i], buffer.get(), file, options.digest));
  }
  return file.Commit();
}

}  // namespace zg
