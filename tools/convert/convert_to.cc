#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "framework/io/atomic_directory.h"
#include "framework/io/atomic_file.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/mapped_file.h"
#include "framework/io/safetensors.h"
#include "framework/io/safetensors_writer.h"
#include "framework/io/tensor_index.h"
#include "tools/checkpoint/target.h"
#include "tools/command/inputs.h"
#include "tools/convert/commands.h"
#include "tools/convert/matched_tensors.h"

namespace zg::convert_tool {
namespace {

constexpr char kConfigName[] = "config.json";
constexpr char kModelName[] = "model.safetensors";

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

StatusOr<std::string> ReadText(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.size() == 0) return std::string();
  return std::string(reinterpret_cast<const char*>(file.data()), file.size());
}

// A file to write, and its contents.
struct TargetFile {
  std::string name;
  std::vector<TensorToWrite> tensors;
  std::map<std::string, std::string> metadata;
};

class Conversion {
 public:
  explicit Conversion(const ToOptions& options) : options_(options) {}

  StatusOr<std::string> Run() {
    ZG_RETURN_IF_ERROR(CheckOptions());
    ZG_ASSIGN_OR_RETURN(model_, options_.preset.empty() ? ReadKnownModel(options_.like)
                                                        : KnownModelOfPreset(options_.preset));
    ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(options_.from));
    ZG_ASSIGN_OR_RETURN(matched_, Match(model_, Side::kOurs, weights));
    ZG_RETURN_IF_ERROR(has_files_ ? PlanAsLike() : PlanOneFile());
    std::vector<std::string> names = {kConfigName};
    for (const TargetFile& file : files_) names.push_back(file.name);
    if (!index_.empty()) names.push_back(IndexName(kModelPart));
    ZG_RETURN_IF_ERROR(
        checkpoint_tool::CheckTargetDirectory(options_.to, names, options_.may_replace));
    ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options_.to, weights.inputs()));
    size_t tensors = 0;
    for (const TargetFile& file : files_) tensors += file.tensors.size();
    said_ +=
        fmt::format("{}: {}, {} tensors in {}\n", options_.to, model_.type, tensors,
                    files_.size() == 1 ? files_[0].name : fmt::format("{} files", files_.size()));
    ZG_RETURN_IF_ERROR(Write());
    return said_;
  }

 private:
  Status CheckOptions() {
    if (options_.like.empty() == options_.preset.empty()) {
      return InvalidArgument(
          "--to: got {} --like and --preset, expected one of them: a directory with the model's "
          "config.json, or sizes by name",
          options_.like.empty() ? "neither of" : "both of");
    }
    has_files_ = !options_.like.empty() && (IsFile(options_.like + "/" + kModelName) ||
                                            IsFile(options_.like + "/" + IndexName(kModelPart)));
    if (has_files_ && options_.dtype.has_value()) {
      return InvalidArgument(
          "--dtype: got {}, but {} has weights, whose dtypes are taken; leave it out, or give a "
          "directory with nothing but the config.json",
          SafetensorsDTypeName(*options_.dtype), options_.like);
    }
    return Status::Ok();
  }

  Status PlanOneFile() {
    TargetFile file = {kModelName, {}, {}};
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      const KnownTensor& known = model_.tensors[i];
      file.tensors.push_back(
          AsOtherSide(known, matched_.tensors[i], known.theirs.front(),
                      options_.dtype.value_or(matched_.tensors[i].entry->dtype)));
    }
    files_.push_back(std::move(file));
    return Status::Ok();
  }

  Status PlanAsLike() {
    ZG_ASSIGN_OR_RETURN(like_, Weights::Open(options_.like));
    ZG_RETURN_IF_ERROR(Match(model_, Side::kTheirs, *like_).status());
    std::set<std::string> names = {kModelName};
    if (const std::string index = options_.like + "/" + IndexName(kModelPart); IsFile(index)) {
      ZG_ASSIGN_OR_RETURN(index_, ReadText(index));
      ZG_ASSIGN_OR_RETURN(const TensorIndex read, ReadTensorIndex(index));
      names.clear();
      for (const auto& [tensor, file] : read.file_by_name) names.insert(file);
    }
    std::vector<std::string> copied;
    for (const std::string& name : names) {
      ZG_ASSIGN_OR_RETURN(const SafetensorsFile theirs,
                          SafetensorsFile::Open(options_.like + "/" + name));
      TargetFile file = {name, {}, theirs.metadata()};
      for (const SafetensorsEntry& entry : theirs.entries()) {
        const auto known = std::find_if(
            model_.tensors.begin(), model_.tensors.end(), [&](const KnownTensor& tensor) {
              return std::count(tensor.theirs.begin(), tensor.theirs.end(), entry.name) != 0;
            });
        if (known == model_.tensors.end()) {
          copied.push_back(entry.name);
          file.tensors.push_back(
              {entry.name, entry.dtype, entry.shape, like_->tensors().at(entry.name).data});
          continue;
        }
        file.tensors.push_back(AsOtherSide(*known, matched_.tensors[known - model_.tensors.begin()],
                                           entry.name, entry.dtype));
      }
      files_.push_back(std::move(file));
    }
    if (!copied.empty()) {
      said_ += fmt::format("as they are in {}, since our model has nothing for them: {}\n",
                           options_.like, fmt::join(copied, ", "));
    }
    return Status::Ok();
  }

  Status Write() {
    ZG_ASSIGN_OR_RETURN(AtomicDirectory directory, AtomicDirectory::Create(options_.to));
    const std::string path = directory.temporary_path() + "/";
    for (TargetFile& file : files_) {
      SafetensorsWriteOptions options;
      options.metadata = file.metadata;
      ZG_RETURN_IF_ERROR(WriteSafetensors(path + file.name, std::move(file.tensors), options));
    }
    if (!index_.empty()) {
      ZG_RETURN_IF_ERROR(WriteFileAtomically(path + IndexName(kModelPart), index_));
    }
    ZG_RETURN_IF_ERROR(WriteFileAtomically(path + kConfigName, model_.config));
    return directory.Commit(options_.may_replace);
  }

  const ToOptions& options_;
  bool has_files_ = false;  // `like` has weights
  std::string index_;       // its index's text
  KnownModel model_;
  MatchedTensors matched_;
  std::optional<Weights> like_;
  std::vector<TargetFile> files_;
  std::string said_;
};

}  // namespace

StatusOr<std::string> ConvertTo(const ToOptions& options) { return Conversion(options).Run(); }

}  // namespace zg::convert_tool
