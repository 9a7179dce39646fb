// TrainState: what a checkpoint knows besides its tensors, train_state.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/base/status.h"

namespace zg {

inline constexpr int64_t kCheckpointFormatVersion = 1;

struct TrainState {
  std::string model;    // the graph's name
  int64_t step = 0;     // steps done
  int64_t updates = 0;  // of the parameters: less than steps where some were left out
  // What decides the bits of the steps to come, by the name the user knows it under: "seed",
  // "micro-batches", "optimizer", ...
  std::map<std::string, std::string> settings;
  // Of the device (train/device_kernels.h); where another one goes on, bits do not. "": not known,
  // from programs before it was written.
  std::string arithmetic = {};
};

std::string TrainStateAsJson(const TrainState& state);

// Errors: the file is missing or malformed, or of a newer format version than this program reads.
StatusOr<TrainState> ReadTrainState(const std::string& path);

// Whether a run with the settings `now` goes on as the one of the checkpoint at `path` would have.
// The error names every setting that differs.
Status CheckSameSettings(const std::string& path, const std::map<std::string, std::string>& then,
                         const std::map<std::string, std::string>& now);

}  // namespace zg
