// The models and modules that run both eagerly and in a graph, each with its data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "framework/nn/nn.h"

namespace zg::testing {

// A model with the data of one micro-batch, which every step sees.
struct Subject {
  std::shared_ptr<nn::Module> model;
  TensorType x;  // f32, or i64 below `vocabulary`
  int64_t vocabulary = 0;
  int64_t classes = 0;  // cross entropy of logits (..., classes); 0: the mean square of the results
  std::shared_ptr<nn::Lora> lora = nullptr;
};

const std::map<std::string, std::function<Subject()>>& Subjects();

}  // namespace zg::testing
