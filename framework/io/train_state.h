// TrainState: the contents of a checkpoint besides its tensors, train_state.json.
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
  int64_t updates = 0;  // of the parameters: less than steps if some updates were skipped
  // The settings that determine the bits of later steps, by the name that the user knows: "seed",
  // "micro-batches", "optimizer", ...
  std::map<std::string, std::string> settings;
  // The device's (kernels/device_kernels.h); a run that resumes with another one gets other bits.
  // "": unknown, from programs that did not write it yet.
  std::string arithmetic = {};
  // By name, the parameter groups that some steps did not update, and how many.
  std::map<std::string, int64_t> skipped_steps = {};
  // What the program keeps with its checkpoints (Trainer::set_note).
  std::map<std::string, std::string> notes = {};
};

std::string TrainStateAsJson(const TrainState& state);

// Errors: the file is missing or malformed, or of a newer format version than this program reads.
StatusOr<TrainState> ReadTrainState(const std::string& path);

// Whether a run with the settings `now` continues exactly like the one of the checkpoint at `path`.
// The error names every setting that differs.
Status CheckSameSettings(const std::string& path, const std::map<std::string, std::string>& then,
                         const std::map<std::string, std::string>& now);

}  // namespace zg
