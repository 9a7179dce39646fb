#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "framework/base/format.h"
#include "framework/io/atomic_directory.h"
#include "framework/io/atomic_file.h"
#include "framework/io/safetensors_writer.h"
#include "tools/checkpoint/commands.h"
#include "tools/checkpoint/gpt2_config.h"
#include "tools/checkpoint/stored_values.h"
#include "tools/checkpoint/target.h"
#include "tools/checkpoint/translate.h"
#include "tools/command/inputs.h"

namespace zg::checkpoint_tool {
namespace {

constexpr char kModelName[] = "model.safetensors";
constexpr char kConfigName[] = "config.json";

// A number among a checkpoint's settings; nothing if there is none of that name.
template <typename T>
StatusOr<std::optional<T>> Setting(const Weights& weights, const std::string& name) {
  if (weights.state() == nullptr) return std::optional<T>();
  const auto& settings = weights.state()->settings;
  const auto found = settings.find(name);
  if (found == settings.end()) return std::optional<T>();
  const std::string& text = found->second;
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return DataLoss("{}: setting {}: got '{}', expected a number", weights.path(), name, text);
  }
  return std::optional<T>(value);
}

class Conversion {
 public:
  Conversion(const ForeignFormat& format, const ConvertOptions& options)
      : format_(format), options_(options) {}

  StatusOr<std::string> Run() {
    ZG_RETURN_IF_ERROR(CheckOptions());
    ZG_RETURN_IF_ERROR(
        WritesDirectory()
            ? CheckTargetDirectory(options_.to, {kModelName, kConfigName}, options_.may_replace)
            : CheckTargetFile(options_.to, options_.may_replace));
    ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(options_.from));
    ZG_RETURN_IF_ERROR(command::CheckIsNoInput(options_.to, weights.inputs()));
    ZG_ASSIGN_OR_RETURN(Translation translation, Translate(format_, options_.source, weights));
    if (format_.has_config) ZG_RETURN_IF_ERROR(FindConfig(weights, translation));
    ChangeVocabulary(&translation);
    std::vector<TensorToWrite> tensors = TensorsToWrite(translation);
    int64_t elements = 0;
    for (const TranslatedTensor& tensor : translation.tensors) {
      int64_t size = 1;
      for (const int64_t dim : tensor.shape) size *= dim;
      elements += size;
    }
    Say("{}: {} tensors, {} parameters in {}", options_.to, tensors.size(), elements,
        SafetensorsDTypeName(options_.dtype));
    if (!translation.skipped.empty()) {
      Say("left out, as our model computes them or has them once: {}",
          fmt::join(translation.skipped, ", "));
    }
    ZG_RETURN_IF_ERROR(Write(std::move(tensors)));
    if (format_.has_config && options_.source == Side::kTheirs) SayFlags();
    return said_;
  }

 private:
  bool WritesDirectory() const { return format_.has_config && options_.source == Side::kOurs; }

  template <typename... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    said_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  Status CheckOptions() const {
    if (options_.vocabulary != 0 && format_.rows.empty()) {
      return InvalidArgument("--vocab: got {}, but {} has no vocabulary; leave it out",
                             options_.vocabulary, format_.name);
    }
    if (options_.heads != 0 && !WritesDirectory()) {
      return InvalidArgument("--heads: got {}, but no config.json is written; leave it out",
                             options_.heads);
    }
    return Status::Ok();
  }

  // Sizes from the tensors, the rest from config.json or from the checkpoint's settings.
  Status FindConfig(const Weights& weights, const Translation& translation) {
    config_.dtype = options_.dtype;
    config_.layers = translation.count;
    config_.channels = translation.sizes.at('C');
    config_.context = translation.sizes.at('T');
    config_.vocabulary = translation.sizes.at('V');
    if (options_.source == Side::kTheirs) {
      const std::string path = weights.directory() + "/" + kConfigName;
      std::error_code error;
      if (std::filesystem::exists(path, error)) {
        ZG_ASSIGN_OR_RETURN(config_.heads, HeadsOfGpt2Config(path, config_));
      } else {
        Say("{} is not there: taken for granted are tanh GELU and epsilon 1e-5", path);
      }
      return Status::Ok();
    }
    ZG_ASSIGN_OR_RETURN(const auto heads, Setting<int64_t>(weights, "heads"));
    ZG_ASSIGN_OR_RETURN(const auto dropout, Setting<double>(weights, "dropout"));
    config_.heads = heads.value_or(options_.heads);
    config_.dropout = dropout.value_or(0.0);
    if (config_.heads == 0) {
      return InvalidArgument("{}: does not tell how many heads the model has; give --heads",
                             options_.from);
    }
    if (options_.heads != 0 && options_.heads != config_.heads) {
      return InvalidArgument("--heads: got {}, but {} was trained with {}", options_.heads,
                             options_.from, config_.heads);
    }
    if (config_.heads < 1 || config_.channels % config_.heads != 0) {
      return InvalidArgument("--heads: got {}, expected a divisor of the {} channels",
                             config_.heads, config_.channels);
    }
    return Status::Ok();
  }

  void ChangeVocabulary(Translation* translation) {
    if (options_.vocabulary == 0 || options_.vocabulary == config_.vocabulary) return;
    const int64_t before = std::exchange(config_.vocabulary, options_.vocabulary);
    const int64_t after = config_.vocabulary;
    for (TranslatedTensor& tensor : translation->tensors) {
      if (tensor.rule->shape.substr(0, 1) != format_.rows) continue;
      tensor.shape[0] = after;
      if (after > before) {
        Say("{}: {} rows of zeros follow the {} that were there; a token of theirs has the logit 0",
            tensor.name, after - before, before);
      } else {
        Say("{}: the last {} of {} rows are left out; tokens from {} on have none", tensor.name,
            before - after, before, after);
      }
    }
  }

  std::vector<TensorToWrite> TensorsToWrite(const Translation& translation) const {
    std::vector<TensorToWrite> tensors;
    for (const TranslatedTensor& tensor : translation.tensors) {
      const SafetensorsEntry& entry = *tensor.from.entry;
      StoredValues values = {entry.dtype, tensor.from.data, 1, 1};
      if (tensor.rule->is_transposed) values.rows = entry.shape[0];
      for (size_t i = tensor.rule->is_transposed ? 1 : 0; i < entry.shape.size(); ++i) {
        values.columns *= entry.shape[i];
      }
      tensors.push_back({tensor.name, options_.dtype, tensor.shape, nullptr,
                         SourceOf(values, tensor.rule->is_transposed, options_.dtype)});
    }
    return tensors;
  }

  Status Write(std::vector<TensorToWrite> tensors) const {
    if (!WritesDirectory()) return WriteSafetensors(options_.to, std::move(tensors));
    ZG_ASSIGN_OR_RETURN(AtomicDirectory directory, AtomicDirectory::Create(options_.to));
    const std::string& path = directory.temporary_path();
    ZG_RETURN_IF_ERROR(WriteSafetensors(path + "/" + kModelName, std::move(tensors)));
    const std::string config = Gpt2ConfigAsJson(config_);
    ZG_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path + "/" + kConfigName));
    ZG_RETURN_IF_ERROR(file.Write(config.data(), config.size()));
    ZG_RETURN_IF_ERROR(file.Commit());
    return directory.Commit(options_.may_replace);
  }

  void SayFlags() {
    Say("train it on with //models/gpt --init {} --layers {} --heads {} --embd {} --context {} "
        "--vocab {}",
        options_.to, config_.layers, config_.heads == 0 ? "N" : fmt::to_string(config_.heads),
        config_.channels, config_.context, config_.vocabulary);
  }

  const ForeignFormat& format_;
  const ConvertOptions& options_;
  Gpt2Config config_;
  std::string said_;
};

}  // namespace

StatusOr<std::string> Convert(const ConvertOptions& options) {
  ZG_ASSIGN_OR_RETURN(const ForeignFormat* format, FindForeignFormat(options.format));
  return Conversion(*format, options).Run();
}

}  // namespace zg::checkpoint_tool
