#include "framework/train/lora_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "framework/io/atomic_file.h"
#include "framework/io/float_values.h"
#include "framework/io/safetensors.h"
#include "framework/io/safetensors_writer.h"
#include "framework/io/strict_json.h"
#include "framework/state/gather_tensor.h"
#include "framework/state/tensor_state.h"

namespace zg {
namespace {

constexpr char kWeightsName[] = "adapter_model.safetensors";
constexpr char kConfigName[] = "adapter_config.json";

// A matrix of an adapter, and where it is.
struct Matrix {
  std::string name;  // in the graph
  const ir::StoredTensor* tensor = nullptr;
  std::string name_in_file() const { return "base_model.model." + name; }
};

StatusOr<std::vector<Matrix>> MatricesOf(const Trainer& trainer, const nn::Lora& lora) {
  const ir::Graph& graph = trainer.program().graph;
  std::vector<Matrix> matrices;
  for (const auto& adapter : lora.adapters()) {
    for (const std::string& path : {adapter->a_path(), adapter->b_path()}) {
      const ir::StoredTensor* const tensor = graph.FindTensor(path);
      if (tensor == nullptr) {
        return NotFound("graph {}: it has no '{}'; use the layer in the graph's functions",
                        graph.name(), path);
      }
      matrices.push_back({path, tensor});
    }
  }
  return matrices;
}

std::string ConfigText(const nn::Lora& lora) {
  nlohmann::ordered_json json;
  json["peft_type"] = "LORA";
  json["base_model_name_or_path"] = nullptr;
  json["bias"] = "none";
  json["fan_in_fan_out"] = false;
  json["inference_mode"] = true;
  json["lora_alpha"] = lora.options().alpha;
  json["lora_dropout"] = 0.0;
  json["r"] = lora.options().rank;
  json["target_modules"] = nlohmann::ordered_json::array();
  for (const auto& adapter : lora.adapters()) json["target_modules"].push_back(adapter->path());
  json["task_type"] = nullptr;
  return json.dump(2) + "\n";
}

// Whether loaded adapters compute the same without the field, whose kind may be of a later version. Most
// fields turn on another kind of adapter, and do nothing if they are false or empty.
bool SaysNothingOfResults(const std::string& key, const nlohmann::json& value) {
  static const std::set<std::string> known = {"auto_mapping",
                                              "base_model_name_or_path",
                                              "bias",
                                              "corda_config",
                                              "ensure_weight_tying",
                                              "eva_config",
                                              "exclude_modules",
                                              "inference_mode",
                                              "layers_pattern",
                                              "layers_to_transform",
                                              "loftq_config",
                                              "lora_alpha",
                                              "lora_dropout",
                                              "megatron_config",
                                              "megatron_core",
                                              "modules_to_save",
                                              "peft_type",
                                              "peft_version",
                                              "qalora_group_size",
                                              "r",
                                              "revision",
                                              "runtime_config",
                                              "target_modules",
                                              "target_parameters",
                                              "task_type"};
  // The others change the weights of the model below the adapters.
  static const std::set<std::string> initializations = {"gaussian", "eva", "orthogonal"};
  if (known.count(key) != 0) return true;
  if (key == "init_lora_weights" && value.is_string()) {
    return initializations.count(value.get<std::string>()) != 0;
  }
  if (key == "init_lora_weights") return value.is_boolean() || value.is_null();
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

Status CheckConfig(const nn::Lora& lora, const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const nlohmann::json json, ReadStrictJson(path));
  const auto text_of = [&](const char* key) {
    const auto found = json.find(key);
    return found == json.end() ? std::string("nothing") : found->dump();
  };
  if (text_of("peft_type") != "\"LORA\"") {
    return InvalidArgument("{}: \"peft_type\": got {}, expected \"LORA\"", path,
                           text_of("peft_type"));
  }
  const auto check_number = [&](const char* key, double expected) -> Status {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number() && found->get<double>() == expected) {
      return Status::Ok();
    }
    return InvalidArgument("{}: \"{}\": got {}, expected {}, as nn::LoraOptions say", path, key,
                           text_of(key), expected);
  };
  ZG_RETURN_IF_ERROR(check_number("r", static_cast<double>(lora.options().rank)));
  ZG_RETURN_IF_ERROR(check_number("lora_alpha", lora.options().alpha));
  for (const auto& [key, value] : json.items()) {
    if (!SaysNothingOfResults(key, value)) {
      return InvalidArgument(
          "{}: \"{}\": got {}, expected plain LoRA of one rank and alpha, without this field or with {}",
          path, key, value.dump(), key == "init_lora_weights" ? "true" : "null");
    }
  }
  return Status::Ok();
}

Status CheckMatrices(const std::vector<Matrix>& matrices, const SafetensorsFile& file) {
  std::set<std::string> known;
  for (const Matrix& matrix : matrices) {
    known.insert(matrix.name_in_file());
    const SafetensorsEntry* const entry = file.Find(matrix.name_in_file());
    if (entry == nullptr) {
      return InvalidArgument("{}: '{}' is missing", file.path(), matrix.name_in_file());
    }
    if (!IsFloatValue(entry->dtype) || Shape(entry->shape) != matrix.tensor->type.shape) {
      return InvalidArgument("{}: '{}': got {}{}, expected {}", file.path(), matrix.name_in_file(),
                             SafetensorsDTypeName(entry->dtype), Shape(entry->shape).ToString(),
                             matrix.tensor->type.ToString());
    }
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    if (known.count(entry.name) != 0) continue;
    return InvalidArgument("{}: '{}' belongs to no adapter of the model", file.path(), entry.name);
  }
  return Status::Ok();
}

Status Load(Trainer& trainer, const nn::Lora& lora, const std::string& directory,
            const std::function<Status(Status)>& agree) {
  const StatusOr<std::vector<Matrix>> matrices = MatricesOf(trainer, lora);
  ZG_RETURN_IF_ERROR(agree(matrices.status()));
  ZG_RETURN_IF_ERROR(agree(CheckConfig(lora, directory + "/" + kConfigName)));
  const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(directory + "/" + kWeightsName);
  ZG_RETURN_IF_ERROR(agree(file.status()));
  ZG_RETURN_IF_ERROR(agree(CheckMatrices(*matrices, *file)));
  for (const Matrix& matrix : *matrices) {
    const SafetensorsEntry& entry = *file->Find(matrix.name_in_file());
    const int64_t element_bytes = BitsOf(entry.dtype) / 8;
    ZG_RETURN_IF_ERROR(
        SetElements(trainer.executor(), matrix.name, 0, matrix.tensor->type.shape.num_elements(),
                    [&](int64_t begin, int64_t end, float* values) {
                      ReadFloatValues(entry.dtype, file->Data(entry) + begin * element_bytes,
                                      end - begin, values);
                    }));
  }
  return Status::Ok();
}

}  // namespace

Status save_lora(Trainer& trainer, const nn::Lora& lora, const std::string& directory) {
  ZG_ASSIGN_OR_RETURN(const std::vector<Matrix> matrices, MatricesOf(trainer, lora));
  Executor& executor = trainer.executor();
  const bool is_main = executor.communicator().rank() == 0;
  std::vector<std::vector<float>> values(matrices.size());
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < matrices.size(); ++i) {
    ZG_RETURN_IF_ERROR(ForEachChunk(executor, *matrices[i].tensor, "gather adapter",
                                    [&](int64_t, const float* chunk, int64_t count) {
                                      if (!is_main) return;
                                      values[i].insert(values[i].end(), chunk, chunk + count);
                                    }));
    tensors.push_back({matrices[i].name_in_file(), SafetensorsDType::kF32,
                       matrices[i].tensor->type.shape.dims(), values[i].data()});
  }
  Status status;
  if (is_main) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    status = WriteSafetensors(directory + "/" + kWeightsName, std::move(tensors));
    if (status.ok()) {
      status = WriteFileAtomically(directory + "/" + kConfigName, ConfigText(lora));
    }
  }
  return ExchangeStatus(executor.communicator(), "save adapters", status);
}

Status load_lora(Trainer& trainer, const nn::Lora& lora, const std::string& directory) {
  return Load(trainer, lora, directory, [&](const Status& mine) {
    return ExchangeStatus(trainer.executor().communicator(), "load adapters", mine);
  });
}

}  // namespace zg
