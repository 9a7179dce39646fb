// The names in a directory of checkpoints:
//
//   DIR/step-00000100/     one checkpoint, whole
//     model-00001-of-00002.safetensors, ..., model.safetensors.index.json
//     optimizer-00001-of-00002.safetensors, ..., optimizer.safetensors.index.json
//     train_state.json, checksums.json
//   DIR/latest             the name of the newest one, step-00000100
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zg {

inline constexpr char kLatestName[] = "latest";
inline constexpr char kTrainStateName[] = "train_state.json";
inline constexpr char kChecksumsName[] = "checksums.json";
inline constexpr char kModelPart[] = "model";
inline constexpr char kOptimizerPart[] = "optimizer";

std::string StepDirectoryName(int64_t step);                           // "step-00000100"
std::optional<int64_t> ParseStepDirectoryName(std::string_view name);  // exactly such a name

// `part` is kModelPart or kOptimizerPart; `shard` counts from 0.
std::string ShardName(std::string_view part, int shard, int num_shards);
std::string IndexName(std::string_view part);

// Whether `name` may appear in an index: a file of the same directory, not "..", "/" and the like.
bool IsPlainFileName(std::string_view name);

}  // namespace zg
