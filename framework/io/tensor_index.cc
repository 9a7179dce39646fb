#include "framework/io/tensor_index.h"

#include "framework/io/checkpoint_names.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/strict_json.h"

namespace zg {

std::string TensorIndexAsJson(const TensorIndex& index) {
  nlohmann::ordered_json json;
  json["metadata"]["total_size"] = index.total_bytes;
  json["weight_map"] = index.file_by_name;
  return json.dump(2) + "\n";
}

StatusOr<TensorIndex> ReadTensorIndex(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const nlohmann::json json, ReadStrictJson(path));
  TensorIndex index;
  const auto metadata = json.find("metadata");
  if (metadata == json.end() || !metadata->is_object() || !metadata->contains("total_size") ||
      !(*metadata)["total_size"].is_number_unsigned()) {
    return DataLoss("{}: \"metadata\": expected an object with the number \"total_size\"", path);
  }
  index.total_bytes = (*metadata)["total_size"].get<uint64_t>();
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) {
    return DataLoss("{}: \"weight_map\": expected an object", path);
  }
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || !IsPlainFileName(file.get_ref<const std::string&>())) {
      return DataLoss(
          "{}: tensor {}: got the file {}, expected the name of one in the same "
          "directory",
          path, QuoteForMessage(name), QuoteForMessage(file.dump()));
    }
    index.file_by_name[name] = file.get<std::string>();
  }
  return index;
}

}  // namespace zg
