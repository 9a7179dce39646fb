// model_logits DIR WEIGHTS INPUTS LOGITS: runs our model of DIR/config.json, with the parameters of
// the file WEIGHTS, on the tensors x (and mask, types) of the file INPUTS, and writes a file with
// the tensor logits. For check_convert_with_transformers.py.

#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/io/safetensors.h"
#include "framework/io/safetensors_writer.h"
#include "framework/job/console.h"
#include "models/bert/hugging_face.h"
#include "models/gpt/model.h"
#include "models/hugging_face/config_file.h"
#include "models/llama/hugging_face.h"
#include "models/mamba/hugging_face.h"
#include "models/vit/hugging_face.h"

namespace zg {
namespace {

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  const auto* const values = reinterpret_cast<const T*>(file.Data(entry));
  return std::vector<T>(values, values + entry.size_bytes() / sizeof(T));
}

Tensor Integers(Eager& eager, const SafetensorsFile& file, const std::string& name) {
  const SafetensorsEntry* const entry = file.Find(name);
  if (entry == nullptr) return Tensor();
  return eager.i64(Shape(entry->shape), Values<int64_t>(file, *entry));
}

Status Run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4) return InvalidArgument("expected DIR WEIGHTS INPUTS LOGITS");
  const std::string& directory = arguments[0];
  ZG_ASSIGN_OR_RETURN(models::ConfigFile config, models::ConfigFile::Open(directory));
  ZG_ASSIGN_OR_RETURN(const SafetensorsFile inputs, SafetensorsFile::Open(arguments[2]));
  EagerOptions options;
  options.init = arguments[1];
  Eager eager(options);
  const models::ConfigFile::Json type = *config.Find("model_type");
  Tensor logits;
  if (type == "bert") {
    ZG_ASSIGN_OR_RETURN(const models::BertConfig bert, models::ReadBertConfig(directory));
    logits = models::Bert(bert)(Integers(eager, inputs, "x"), Integers(eager, inputs, "types"),
                                Integers(eager, inputs, "mask"));
  } else if (type == "vit") {
    ZG_ASSIGN_OR_RETURN(const models::VitConfig vit, models::ReadVitConfig(directory));
    const SafetensorsEntry& x = *inputs.Find("x");
    logits = models::Vit(vit)(eager.f32(Shape(x.shape), Values<float>(inputs, x)));
  } else if (type == "gpt2") {
    const models::GptConfig gpt = {config.Size("n_layer"), config.Size("n_head"),
                                   config.Size("n_embd"), config.Size("n_positions"),
                                   config.Size("vocab_size")};
    ZG_RETURN_IF_ERROR(config.status());
    logits = models::Gpt(gpt)(Integers(eager, inputs, "x"));
  } else if (type == "mamba") {
    ZG_ASSIGN_OR_RETURN(const models::MambaConfig mamba, models::ReadMambaConfig(directory));
    logits = models::Mamba(mamba)(Integers(eager, inputs, "x"));
  } else {
    ZG_ASSIGN_OR_RETURN(const models::LlamaConfig llama, models::ReadLlamaConfig(directory));
    logits = models::Llama(llama)(Integers(eager, inputs, "x"));
  }
  const std::vector<float> values = logits.values();
  return WriteSafetensors(
      arguments[3], {{"logits", SafetensorsDType::kF32, logits.shape().dims(), values.data()}});
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) {
  const zg::Status status = zg::Run({argv + 1, argv + argc});
  if (!status.ok()) zg::print_error("error: " + status.message() + "\n");
  return status.ok() ? 0 : 1;
}
