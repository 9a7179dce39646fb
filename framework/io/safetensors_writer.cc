#include "framework/io/safetensors_writer.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <tuple>

#include "framework/io/atomic_file.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/safetensors_layout.h"

namespace zg {
namespace {

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
  std::vector<TensorOfFile> described;
  for (const TensorToWrite& tensor : tensors) {
    described.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  StatusOr<SafetensorsLayout> layout = MakeSafetensorsLayout(described, options.metadata);
  if (!layout.ok()) return layout.status().WithContext(path);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t size_bytes = layout->end_bytes[i] - layout->begin_bytes[i];
    if (size_bytes == 0 || tensors[i].data != nullptr || tensors[i].source != nullptr) continue;
    return InvalidArgument("{}: tensor {}: got neither data nor a source for its {} bytes", path,
                           QuoteForMessage(tensors[i].name), size_bytes);
  }
  ZG_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ZG_RETURN_IF_ERROR(Append(layout->prefix.data(), layout->prefix.size(), file, options.digest));
  const auto buffer = std::make_unique<uint8_t[]>(kSafetensorsChunkBytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t size_bytes = layout->end_bytes[i] - layout->begin_bytes[i];
    ZG_RETURN_IF_ERROR(AppendTensor(tensors[i], size_bytes, buffer.get(), file, options.digest));
  }
  return file.Commit();
}

}  // namespace zg
