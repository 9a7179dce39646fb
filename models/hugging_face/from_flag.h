// --from DIR of the demos: the sizes and the weights of a model of transformers.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/train/trainer.h"

namespace zg::models {

// Error if --init gives first values as well.
Status CheckFromAlone(const Job& job, const std::string& from);

// The sizes in the config.json of `from`, which `read` reads.
template <typename Config>
StatusOr<Config> ConfigFrom(const Job& job, const std::string& from,
                            StatusOr<Config> (*read)(const std::string& directory)) {
  ZG_RETURN_IF_ERROR(CheckFromAlone(job, from));
  StatusOr<Config> config = read(from);
  ZG_RETURN_IF_ERROR(config.status().WithContext("--from"));
  return config;
}

// Loads the weights of `from`, unless it is empty or the job resumes.
Status LoadFrom(const Job& job, const std::string& from, Trainer& trainer);

}  // namespace zg::models
