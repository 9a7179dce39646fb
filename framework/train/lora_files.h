// The adapters of a model as files in the format of PEFT (huggingface/peft): a directory with
// adapter_model.safetensors, in which the matrices of the layer blocks.0.attention.qkv are
// "base_model.model.blocks.0.attention.qkv.lora_A.weight" and "... .lora_B.weight", and
// adapter_config.json.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/nn/lora.h"
#include "framework/train/trainer.h"

namespace zg {

// Rank 0 writes them. Every rank must call this, in the same order. Errors, on every rank: a file
// that cannot be written; a graph without the adapters.
Status save_lora(Trainer& trainer, const nn::Lora& lora, const std::string& directory);

// Sets the adapters' values. Every rank must call this; all of them read the files. Errors, on
// every rank, after which nothing has changed: files that are missing or malformed; another kind of
// adapter, rank or alpha; matrices that are missing, unknown or of another shape.
Status load_lora(Trainer& trainer, const nn::Lora& lora, const std::string& directory);

}  // namespace zg
