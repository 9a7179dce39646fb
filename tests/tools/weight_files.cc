#include "tests/tools/weight_files.h"

#include <cstring>
#include <fstream>

#include "framework/base/check.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/float_values.h"
#include "framework/io/safetensors.h"
#include "framework/io/safetensors_writer.h"
#include "framework/io/tensor_index.h"

namespace zg::testing {

StoredTensors ReadStored(const std::string& path) {
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ZG_CHECK(file.ok(), "{}", file.status().message());
  StoredTensors tensors;
  for (const SafetensorsEntry& entry : file->entries()) {
    const auto* data = reinterpret_cast<const char*>(file->Data(entry));
    tensors[entry.name] = {entry.dtype, entry.shape, std::string(data, entry.size_bytes())};
  }
  return tensors;
}

void WriteStored(const std::string& path, const StoredTensors& tensors) {
  std::vector<TensorToWrite> to_write;
  for (const auto& [name, tensor] : tensors) {
    to_write.push_back({name, tensor.dtype, tensor.shape, tensor.bytes.data()});
  }
  const Status status = WriteSafetensors(path, to_write);
  ZG_CHECK(status.ok(), "{}", status.message());
}

void WriteSharded(const std::string& directory, const StoredTensors& tensors) {
  StoredTensors shards[2];
  TensorIndex index;
  int next = 0;
  for (const auto& [name, tensor] : tensors) {
    const int shard = next++ % 2;
    shards[shard][name] = tensor;
    index.file_by_name[name] = ShardName(kModelPart, shard, 2);
    index.total_bytes += tensor.bytes.size();
  }
  for (int shard : {0, 1}) {
    WriteStored(directory + "/" + ShardName(kModelPart, shard, 2), shards[shard]);
  }
  std::ofstream(directory + "/" + IndexName(kModelPart)) << TensorIndexAsJson(index);
}

StoredTensor Counting(std::vector<int64_t> shape, float first) {
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  std::vector<float> values(elements);
  for (int64_t i = 0; i < elements; ++i) values[i] = first + static_cast<float>(i);
  return {SafetensorsDType::kF32, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), elements * sizeof(float))};
}

StoredTensor Widened(const StoredTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / 2);
  ReadFloatValues(tensor.dtype, reinterpret_cast<const uint8_t*>(tensor.bytes.data()),
                  values.size(), values.data());
  return {SafetensorsDType::kF32, tensor.shape,
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
}

StoredTensor Rounded(const StoredTensor& tensor, SafetensorsDType dtype) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  StoredTensor rounded = {dtype, tensor.shape, std::string(values.size() * 2, '\0')};
  const Status status = WriteFloatValues(dtype, values.data(), values.size(),
                                         reinterpret_cast<uint8_t*>(rounded.bytes.data()));
  ZG_CHECK(status.ok(), "{}", status.message());
  return rounded;
}

}  // namespace zg::testing
