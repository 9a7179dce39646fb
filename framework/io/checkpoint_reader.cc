#include "framework/io/checkpoint_reader.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "framework/io/checkpoint_names.h"
#include "framework/io/mapped_file.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/tensor_index.h"

namespace zg {
namespace {

constexpr uint64_t kMaxLatestBytes = 100;

StatusOr<std::string> ReadLatest(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::string_view name(reinterpret_cast<const char*>(file.data()),
                        std::min(file.size(), kMaxLatestBytes));
  const std::string_view whole = name;
  if (!name.empty() && name.back() == '\n') name.remove_suffix(1);
  if (!ParseStepDirectoryName(name)) {
    return DataLoss("{}: got {}, expected the name of a checkpoint such as {}", path,
                    QuoteForMessage(whole), StepDirectoryName(100));
  }
  return std::string(name);
}

}  // namespace

StatusOr<std::string> FindCheckpoint(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return NotFound("{}: {}; expected the directory of a checkpoint", path,
                    error ? error.message() : "not a directory");
  }
  for (const char* name : {kTrainStateName, kChecksumsName}) {
    if (std::filesystem::exists(path + "/" + name, error)) return path;
  }
  const std::string latest = path + "/" + kLatestName;
  if (!std::filesystem::exists(latest, error)) {
    return NotFound(
        "{}: there is no checkpoint; expected {} in it, as in a checkpoint's own directory, or "
        "{}, as in the directory of `save`",
        path, kTrainStateName, kLatestName);
  }
  ZG_ASSIGN_OR_RETURN(const std::string name, ReadLatest(latest));
  if (!std::filesystem::is_directory(path + "/" + name, error)) {
    return NotFound("{}: names {}, which is not there; give the directory of another checkpoint",
                    latest, name);
  }
  return path + "/" + name;
}

StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& path) {
  CheckpointReader reader;
  ZG_ASSIGN_OR_RETURN(reader.directory_, FindCheckpoint(path));
  // Before anything else, because everything else may differ in a newer version.
  ZG_ASSIGN_OR_RETURN(reader.state_, ReadTrainState(reader.PathOf(kTrainStateName)));
  ZG_ASSIGN_OR_RETURN(reader.checksums_, ReadChecksums(reader.PathOf(kChecksumsName)));
  ZG_RETURN_IF_ERROR(reader.CheckSmallFile(kTrainStateName));
  for (const char* part : {kModelPart, kOptimizerPart}) ZG_RETURN_IF_ERROR(reader.OpenPart(part));
  return reader;
}

Status CheckpointReader::CheckSmallFile(const std::string& name) const {
  const auto checksum = checksums_.find(name);
  if (checksum == checksums_.end()) {
    return DataLoss("{}: it has no checksum of {}", PathOf(kChecksumsName), name);
  }
  return CheckFile(PathOf(name), checksum->second);
}

Status CheckpointReader::OpenPart(std::string_view part) {
  const std::string index_name = IndexName(part);
  ZG_RETURN_IF_ERROR(CheckSmallFile(index_name));
  ZG_ASSIGN_OR_RETURN(const TensorIndex index, ReadTensorIndex(PathOf(index_name)));
  std::set<std::string> files;
  for (const auto& [tensor, file] : index.file_by_name) files.insert(file);
  size_t num_tensors = 0;
  uint64_t total_bytes = 0;
  for (const std::string& name : files) {
    const auto checksum = checksums_.find(name);
    if (checksum == checksums_.end()) {
      return DataLoss("{}: names {}, of which {} has no checksum", PathOf(index_name), name,
                      kChecksumsName);
    }
    ZG_ASSIGN_OR_RETURN(SafetensorsFile shard, SafetensorsFile::Open(PathOf(name)));
    for (const SafetensorsEntry& entry : shard.entries()) {
      const auto indexed = index.file_by_name.find(entry.name);
      if (indexed == index.file_by_name.end() || indexed->second != name) {
        return DataLoss("{}: tensor {} is not in {} under this file", PathOf(name),
                        QuoteForMessage(entry.name), index_name);
      }
      const Tensor tensor = {&entry, shard.Data(entry), checksum->first, part == kOptimizerPart};
      if (!tensors_.emplace(entry.name, tensor).second) {
        return DataLoss("{}: tensor {} is in another file already", PathOf(name),
                        QuoteForMessage(entry.name));
      }
      ++num_tensors;
      total_bytes += entry.size_bytes();
    }
    shard_names_.push_back(name);
    shards_.push_back(std::move(shard));  // entries and data do not move
  }
  if (num_tensors == index.file_by_name.size()) {
    if (total_bytes == index.total_bytes) return Status::Ok();
    return DataLoss("{}: \"total_size\" is {}, but the tensors have {} bytes", PathOf(index_name),
                    index.total_bytes, total_bytes);
  }
  for (const auto& [tensor, file] : index.file_by_name) {
    if (tensors_.count(tensor) != 0) continue;
    return DataLoss("{}: tensor {} is not in {}", PathOf(index_name), QuoteForMessage(tensor),
                    file);
  }
  return DataLoss("{}: tensors are in {} already", PathOf(index_name), IndexName(kModelPart));
}

Status CheckpointReader::CheckData(int first, int stride) const {
  for (size_t i = first; i < shard_names_.size(); i += stride) {
    ZG_RETURN_IF_ERROR(CheckFile(PathOf(shard_names_[i]), checksums_.at(shard_names_[i])));
  }
  return Status::Ok();
}

}  // namespace zg
