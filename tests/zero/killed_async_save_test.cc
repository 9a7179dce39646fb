// Processes that are killed while one of their threads saves: every existing checkpoint is
// complete.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "framework/io/checkpoint_reader.h"
#include "framework/io/checkpoint_store.h"
#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/zero/saved_checkpoints.h"
#include "tests/zero/small_trainer.h"

namespace zg::testing {
namespace {

namespace fs = std::filesystem;

using KilledAsyncSaveTest = DirectoryTest;

TEST_F(KilledAsyncSaveTest, AtAnyPointItIsThereWholeOrNotAtAll) {
  const std::string expected = DigestAfter(4);
  for (const char* point : {"created", "written", "hashed", "described", "published"}) {
    for (const int victim : {0, 1}) {
      SCOPED_TRACE(fmt::format("rank {} at '{}'", victim, point));
      fs::remove_all(root_);
      SaveSteps({}, root_, 1);
      ExpectKilled(Fork([&] {
        OnSmallTrainers(SmallConfig(2, 3), [&](Trainer& trainer) -> Status {
          ZG_RETURN_IF_ERROR(trainer.resume(root_));
          ZG_RETURN_IF_ERROR(SmallStep(trainer));
          SaveOptions options;
          const bool is_victim = trainer.executor().communicator().rank() == victim;
          options.at_point = [&](std::string_view now) {
            if (is_victim && now == point) std::raise(SIGKILL);
          };
          ZG_RETURN_IF_ERROR(trainer.start_saving(root_, options));
          return StepUntilSaved(trainer);
        });
      }));
      ExpectOnlyWholeCheckpoints(root_);
      if (std::string(point) == "published") {
        EXPECT_EQ(ReadTestFile(root_ + "/latest"), "step-00000002\n");
      } else if (std::string(point) != "described") {  // then rank 0's thread may publish
        EXPECT_EQ(ReadTestFile(root_ + "/latest"), "step-00000001\n");
      }
      EXPECT_EQ(DigestAfter(4, root_), expected);
      EXPECT_TRUE(CheckpointStore::Open(root_).ok());
      for (const std::string& name : NamesIn(root_)) EXPECT_EQ(name.find("tmp"), name.npos);
    }
  }
}

TEST_F(KilledAsyncSaveTest, AtRandomMoments) {
  std::mt19937 random(1);
  int num_with_checkpoint = 0;
  for (int i = 0; i < 12; ++i) {
    const pid_t child = Fork([&] {
      OnSmallTrainers(SmallConfig(2, 1 + i % 3), [&](Trainer& trainer) -> Status {
        SaveOptions options;
        options.keep = 2;
        while (true) {
          ZG_RETURN_IF_ERROR(SmallStep(trainer));
          ZG_RETURN_IF_ERROR(trainer.start_saving(root_, options));
          ZG_RETURN_IF_ERROR(StepUntilSaved(trainer));
        }
      });
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 400));
    kill(child, SIGKILL);
    ExpectKilled(child);
    if (!fs::exists(root_ + "/latest")) continue;
    ++num_with_checkpoint;
    ExpectOnlyWholeCheckpoints(root_);
    const StatusOr<CheckpointReader> latest = CheckpointReader::Open(root_);
    ASSERT_TRUE(latest.ok()) << latest.status().message();
    const int step = static_cast<int>(latest->state().step);
    EXPECT_EQ(DigestAfter(step, root_), DigestAfter(step));
    if (i % 4 == 3) fs::remove_all(root_);
  }
  EXPECT_GT(num_with_checkpoint, 3);
}

}  // namespace
}  // namespace zg::testing
