// What demos of language models do with a model once it is made: train it to predict the next token,
// print its validation loss, and let it write.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/nn/nn.h"
#include "framework/optim/optimizer.h"
#include "models/text/sample.h"
#include "models/text/text.h"
#include "models/text/text_flags.h"

namespace zg::models {

struct LanguageTask {
  std::string name;                             // of the graph
  std::string description;                      // of the model, for the user
  std::map<std::string, std::string> settings;  // that no tensor's shape implies
  optim::AdamW optimizer;
  int64_t context = 0;  // tokens of a sample in training
  int64_t longest_prompt = 0;
  std::string from;  // --from of hugging_face/from_flag.h; "": none
  // Is added to the loss in training; called after the model.
  std::function<Var()> penalty = nullptr;
};

// `model`: tokens (B, T) i64 -> logits (B, T, V), for any T.
Status TrainLanguage(Job& job, const LanguageTask& task, const Text& text,
                     const TextFlags& text_flags, const SampleFlags& sample_flags,
                     const std::function<Var(Var)>& model);

}  // namespace zg::models
