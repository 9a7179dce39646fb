// Small models and modules with the parameters and data of tests/reference/models
// (make_models.py).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/io/safetensors.h"
#include "framework/nn/nn.h"
#include "framework/train/trainer.h"

namespace zg::testing {

inline constexpr int64_t kReferenceBatch = 6;  // per step, over all ranks

// The results of a model for inputs of `batch` samples.
struct SmallModel {
  std::shared_ptr<nn::Module> module;
  std::function<Var(Inputs&, int64_t batch)> result;
  std::function<Var(Var result, Inputs&, int64_t batch)> loss;
};

const std::map<std::string, SmallModel (*)()>& SmallModels();

std::string ReferenceFolder(const std::string& model);

// The inputs of every step. Inputs of an eval program do not include the targets.
class ReferenceData {
 public:
  explicit ReferenceData(const std::string& model);

  // Part `part` of `parts` of the step's batch; `program` is "" for training.
  Status Feed(Trainer& trainer, const std::string& program, int64_t step, int64_t part,
              int64_t parts) const;
  std::vector<float> Floats(const std::string& name) const;  // empty if there are none

 private:
  SafetensorsFile file_;
};

}  // namespace zg::testing
