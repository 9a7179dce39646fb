#include "framework/io/shard_layout.h"

#include <utility>

#include "framework/io/checkpoint_names.h"
#include "framework/io/safetensors_header.h"

namespace zg {

StatusOr<ShardLayout> MakeShardLayout(std::string_view part,
                                      const std::vector<TensorOfFile>& tensors,
                                      uint64_t max_shard_bytes) {
  std::vector<std::vector<TensorOfFile>> shards;
  uint64_t shard_bytes = 0;
  for (const TensorOfFile& tensor : tensors) {
    ZG_ASSIGN_OR_RETURN(const uint64_t bytes, SafetensorsByteSize(tensor.dtype, tensor.shape));
    if (shards.empty() || (shard_bytes > 0 && bytes > max_shard_bytes - shard_bytes)) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    shards.back().push_back(tensor);
    shard_bytes = bytes > max_shard_bytes - shard_bytes ? max_shard_bytes : shard_bytes + bytes;
  }
  ShardLayout result;
  const int num_shards = static_cast<int>(shards.size());
  for (int shard = 0; shard < num_shards; ++shard) {
    ShardFile file;
    file.name = ShardName(part, shard, num_shards);
    ZG_ASSIGN_OR_RETURN(file.layout, MakeSafetensorsLayout(shards[shard], {}));
    const SafetensorsLayout& layout = file.layout;
    for (size_t i = 0; i < shards[shard].size(); ++i) {
      result.places.push_back({shard, layout.prefix.size() + layout.begin_bytes[i]});
      result.index.file_by_name[shards[shard][i].name] = file.name;
      result.index.total_bytes += layout.end_bytes[i] - layout.begin_bytes[i];
    }
    result.files.push_back(std::move(file));
  }
  return result;
}

}  // namespace zg
