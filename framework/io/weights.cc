#include "framework/io/weights.h"

#include <filesystem>
#include <set>
#include <utility>

#include "framework/base/problems.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/tensor_index.h"

namespace zg {
namespace {

namespace fs = std::filesystem;

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsIndex(std::string_view path) {
  constexpr std::string_view kEnd = ".json";
  return path.size() >= kEnd.size() && path.substr(path.size() - kEnd.size()) == kEnd;
}

}  // namespace

StatusOr<Weights> Weights::Open(const std::string& path) {
  Weights weights;
  weights.path_ = path;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    weights.directory_ = fs::path(path).parent_path().string();
    if (weights.directory_.empty()) weights.directory_ = ".";
    ZG_RETURN_IF_ERROR(IsIndex(path) ? weights.OpenIndex(path) : weights.OpenFile(path));
    return weights;
  }
  weights.directory_ = path;
  for (const char* name : {kTrainStateName, kChecksumsName, kLatestName}) {
    if (!IsFile(path + "/" + name)) continue;
    ZG_RETURN_IF_ERROR(weights.OpenCheckpoint());
    return weights;
  }
  const std::string index = path + "/" + IndexName(kModelPart);
  const std::string single = path + "/" + kModelPart + ".safetensors";
  if (IsFile(index) && IsFile(single)) {
    return InvalidArgument("{}: got both {} and model.safetensors; give the one that you mean",
                           path, IndexName(kModelPart));
  }
  if (IsFile(index)) {
    ZG_RETURN_IF_ERROR(weights.OpenIndex(index));
  } else if (IsFile(single)) {
    ZG_RETURN_IF_ERROR(weights.OpenFile(single));
  } else {
    return NotFound("{}: there are no weights; expected a checkpoint, {} or model.safetensors",
                    path, IndexName(kModelPart));
  }
  return weights;
}

std::vector<std::string> Weights::inputs() const {
  if (checkpoint_) return {directory_};
  std::vector<std::string> inputs;
  for (const SafetensorsFile& file : files_) inputs.push_back(file.path());
  if (!index_.empty()) inputs.push_back(index_);
  return inputs;
}

Status Weights::OpenCheckpoint() {
  ZG_ASSIGN_OR_RETURN(checkpoint_, CheckpointReader::Open(path_));
  ZG_RETURN_IF_ERROR(checkpoint_->CheckData());
  directory_ = checkpoint_->directory();
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    tensors_[name] = {tensor.entry, tensor.data, tensor.is_optimizer_state};
  }
  return Status::Ok();
}

Status Weights::OpenFile(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  for (const SafetensorsEntry& entry : file.entries()) {
    tensors_[entry.name] = {&entry, file.Data(entry), false};
  }
  files_.push_back(std::move(file));  // entries and data do not move
  return Status::Ok();
}

Status Weights::OpenIndex(const std::string& path) {
  index_ = path;
  ZG_ASSIGN_OR_RETURN(const TensorIndex index, ReadTensorIndex(path));
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.file_by_name) names.insert(file);
  Problems problems;
  std::map<std::string, std::string> found;  // the tensor's file
  for (const std::string& name : names) {
    const std::string shard = directory_ + "/" + name;
    ZG_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(shard));
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto indexed = index.file_by_name.find(entry.name);
      if (indexed == index.file_by_name.end() || indexed->second != name) {
        problems.Add("{}: is in {}, where the index does not have it", entry.name, name);
        continue;
      }
      found[entry.name] = name;
      tensors_[entry.name] = {&entry, file.Data(entry), false};
    }
    files_.push_back(std::move(file));
  }
  for (const auto& [tensor, file] : index.file_by_name) {
    if (found.count(tensor) == 0) problems.Add("{}: is not in {}", tensor, file);
  }
  return problems.AsStatus(path, "the index and its files differ",
                           "fetch the files again, all of one version");
}

}  // namespace zg
