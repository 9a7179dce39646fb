// Which rank writes which part of a checkpoint.

#include "framework/state/checkpoint_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/zero/small_trainer.h"

namespace zg::testing {
namespace {

TEST(CheckpointSlices, EveryElementIsWrittenOnceAndThePlanKnowsTheMost) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const int stage : {0, 1, 2, 3}) {
      SmallTrainerConfig config;
      config.ranks = ranks;
      config.stage = stage;
      config.micro_batches = ranks;
      const auto check = [&](const ir::Graph& graph) {
        int64_t total_bytes = 0;
        for (const TensorRole role : {TensorRole::kParameter, TensorRole::kOptimizerState}) {
          const std::vector<const ir::StoredTensor*> tensors = TensorsByName(graph, role);
          std::vector<std::vector<int>> written;
          for (const ir::StoredTensor* tensor : tensors) {
            written.emplace_back(tensor->type.shape.num_elements());
            total_bytes += tensor->type.bytes();
          }
          for (int rank = 0; rank < ranks; ++rank) {
            for (const CheckpointSlice& slice : CheckpointSlicesOf(graph, tensors, rank)) {
              EXPECT_GT(slice.elements.count, 0);
              slice.elements.ForEachRun([&](int64_t element, int64_t, int64_t length) {
                for (int64_t i = 0; i < length; ++i) ++written[slice.index][element + i];
              });
            }
          }
          for (const std::vector<int>& elements : written) {
            EXPECT_EQ(std::count(elements.begin(), elements.end(), 1),
                      static_cast<int64_t>(elements.size()));
          }
        }
        int64_t sum = 0;
        int64_t most = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const int64_t bytes = CheckpointBytesOf(graph, rank);
          sum += bytes;
          most = std::max(most, bytes);
        }
        EXPECT_EQ(sum, total_bytes);
        EXPECT_EQ(MostCheckpointBytes(graph), most);
        if (stage == 0) {
          EXPECT_LE(most, total_bytes / ranks + 8);  // rounded up, twice
        }
      };
      for (const Status& status : OnSmallTrainers(config, [&](Trainer& trainer) -> Status {
             const ir::Graph& compiled = trainer.executor().graph();
             if (trainer.executor().communicator().rank() == 0) check(compiled);
             ZG_RETURN_IF_ERROR(trainer.reserve_for_saving());
             EXPECT_EQ(trainer.reserved_for_saving_bytes(), MostCheckpointBytes(compiled));
             return Status::Ok();
           })) {
        EXPECT_TRUE(status.ok()) << status.message();
      }
    }
  }
}

}  // namespace
}  // namespace zg::testing
