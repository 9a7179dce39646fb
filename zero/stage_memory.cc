#include "zero/stage_memory.h"

#include <fmt/core.h>

namespace zg::zero {
namespace {

std::string Gibibytes(int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace

int64_t EstimateArenaBytes(const StageMemory& memory, int stage) {
  struct Divided {
    MemoryCategory category;
    int from_stage;
  };
  int64_t bytes = memory.arena_bytes;
  for (const auto [category, from_stage] :
       {Divided{MemoryCategory::kOptimizerState, 1}, Divided{MemoryCategory::kGradients, 2},
        Divided{MemoryCategory::kParameters, 3}}) {
    const int64_t now = memory.category_bytes[static_cast<int>(category)];
    const int64_t whole = memory.stage >= from_stage ? now * memory.ranks : now;
    bytes += (stage >= from_stage ? whole / memory.ranks : whole) - now;
  }
  const auto buckets = [](int of_stage) { return of_stage >= 2 ? of_stage - 1 : 0; };
  return bytes + (buckets(stage) - buckets(memory.stage)) * memory.bucket_bytes;
}

std::string StageHint(const StageMemory& memory, int64_t available_bytes) {
  if (memory.arena_bytes <= available_bytes) return "";
  for (int stage = memory.stage + 1; memory.ranks > 1 && stage <= 3; ++stage) {
    const int64_t bytes = EstimateArenaBytes(memory, stage);
    if (bytes > available_bytes) continue;
    return fmt::format("stage {} needs about {} per rank, which would fit", stage,
                       Gibibytes(bytes));
  }
  if (memory.ranks == 1) {
    return "a stage divides memory among ranks, and this is one rank; smaller micro-batches or "
           "--recompute need less";
  }
  return fmt::format(
      "no stage would fit: stage 3 needs about {} per rank; more ranks, smaller micro-batches or "
      "--recompute need less",
      Gibibytes(EstimateArenaBytes(memory, 3)));
}

}  // namespace zg::zero
