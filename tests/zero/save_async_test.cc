// Saving while training goes on: the bytes of the files, and failures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/state/save_memory.h"
#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/zero/saved_checkpoints.h"
#include "tests/zero/small_trainer.h"

namespace zg::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SaveAsyncTest : public DirectoryTest {
 protected:
  SaveAsyncTest() { std::signal(SIGXFSZ, SIG_IGN); }  // as every program with a Job has it
};

void ExpectAllOk(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

void ExpectSameFiles(const std::string& expected, const std::string& directory) {
  EXPECT_EQ(NamesIn(directory), NamesIn(expected));
  for (const std::string& name : NamesIn(expected)) {
    EXPECT_EQ(ReadTestFile(directory + "/" + name), ReadTestFile(expected + "/" + name)) << name;
  }
}

TEST_F(SaveAsyncTest, TheFilesAreThoseOfASaveThatTrainingWaitsFor) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int ranks : {1, 2, 3}) {
      for (const int stage : {0, 1, 3}) {
        fs::remove_all(root_);
        SmallTrainerConfig config = SmallConfig(ranks, stage);
        config.micro_batches = 6;
        config.dtype = dtype;
        SaveOptions options;
        options.max_shard_bytes = 300;
        ExpectAllOk(OnSmallTrainers(config, [&](Trainer& trainer) -> Status {
          for (int i = 0; i < 2; ++i) ZG_RETURN_IF_ERROR(SmallStep(trainer));
          ZG_RETURN_IF_ERROR(trainer.save(root_ + "/sync", options));
          ZG_RETURN_IF_ERROR(trainer.start_saving(root_ + "/async", options));
          EXPECT_EQ(trainer.saving_step(), 2);
          ZG_RETURN_IF_ERROR(StepUntilSaved(trainer));
          EXPECT_EQ(trainer.saving_step(), std::nullopt);
          EXPECT_GE(trainer.steps_done(), 2 + 5);  // a step between the phases
          // Another one from the same memory, which waits.
          ZG_RETURN_IF_ERROR(trainer.start_saving(root_ + "/async", options));
          return trainer.finish_saving();
        }));
        ExpectSameFiles(root_ + "/sync/step-00000002", root_ + "/async/step-00000002");
        EXPECT_TRUE(OpenAndCheck(root_ + "/async").ok());
        EXPECT_EQ(NamesIn(root_ + "/async").size(), 3);
      }
    }
  }
}

TEST_F(SaveAsyncTest, TrainingIsNotChangedByIt) {
  std::string digest;
  ExpectAllOk(OnSmallTrainers(SmallConfig(2, 3), [&](Trainer& trainer) -> Status {
    for (int i = 0; i < 6; ++i) {
      ZG_RETURN_IF_ERROR(SmallStep(trainer));
      ZG_RETURN_IF_ERROR(trainer.finish_saving());
      ZG_RETURN_IF_ERROR(trainer.start_saving(root_));
    }
    ZG_RETURN_IF_ERROR(trainer.finish_saving());
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer.digest_optimizer_state());
    if (trainer.executor().communicator().rank() == 0) digest = parameters.sha256 + state.sha256;
    return Status::Ok();
  }));
  EXPECT_EQ(digest, DigestAfter(6));
  EXPECT_EQ(DigestAfter(6, root_ + "/step-00000003"), digest);
}

TEST_F(SaveAsyncTest, OneAtATime) {
  ExpectAllOk(OnSmallTrainers(SmallConfig(2), [&](Trainer& trainer) -> Status {
    ZG_ASSIGN_OR_RETURN(const bool has_ended, trainer.continue_saving());
    EXPECT_TRUE(has_ended);  // there was none
    ZG_RETURN_IF_ERROR(trainer.finish_saving());
    ZG_RETURN_IF_ERROR(trainer.start_saving(root_));
    for (const Status& status : {trainer.start_saving(root_), trainer.save(root_)}) {
      EXPECT_THAT(status.message(), HasSubstr("the checkpoint of step 0 is still being saved"));
    }
    EXPECT_THAT(trainer.prepare_saving(root_ + "/other").message(), HasSubstr("still being saved"));
    return trainer.finish_saving();
  }));
  EXPECT_TRUE(OpenAndCheck(root_).ok());
}

TEST_F(SaveAsyncTest, WhatIsNotFinishedIsGone) {
  SaveSteps({}, root_, 1);
  ExpectAllOk(OnSmallTrainers(SmallConfig(2), [&](Trainer& trainer) -> Status {
    ZG_RETURN_IF_ERROR(trainer.resume(root_));
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    ZG_RETURN_IF_ERROR(trainer.start_saving(root_));
    return trainer.continue_saving().status();
  }));
  EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "step-00000001"));
  EXPECT_TRUE(OpenAndCheck(root_).ok());
}

// As with a synchronous save: the older checkpoint is complete, the temporary files are gone, and
// training and saving go on.
TEST_F(SaveAsyncTest, AnErrorOfOneRanksThreadIsToldOnAll) {
  SaveSteps({}, root_, 1);
  SaveOptions failing;
  failing.max_shard_bytes = 1;  // one tensor per file
  // Only rank 1 writes into the third shard of the model.
  failing.at_point = [&](std::string_view point) {
    if (point == "created")
      fs::remove(root_ + "/step-00000002.tmp/model-00003-of-00004.safetensors");
  };
  const auto statuses = OnSmallTrainers(SmallConfig(2, 1), [&](Trainer& trainer) -> Status {
    ZG_RETURN_IF_ERROR(trainer.resume(root_));
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    ZG_RETURN_IF_ERROR(trainer.start_saving(root_, failing));
    const Status failed = StepUntilSaved(trainer);
    EXPECT_EQ(trainer.saving_step(), std::nullopt);
    ZG_RETURN_IF_ERROR(trainer.executor().communicator().Barrier("failed"));
    EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "step-00000001"));
    EXPECT_TRUE(OpenAndCheck(root_).ok());
    ZG_RETURN_IF_ERROR(trainer.executor().communicator().Barrier("looked"));
    ZG_RETURN_IF_ERROR(trainer.start_saving(root_));
    const Status saved = StepUntilSaved(trainer);
    EXPECT_TRUE(saved.ok()) << saved.message();
    return failed;
  });
  EXPECT_THAT(statuses[0].message(), HasSubstr("save: rank 1 failed: "));
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(), HasSubstr(root_ + ": the checkpoint of step 2 was not saved: "));
    EXPECT_THAT(status.message(), HasSubstr("model-00003-of-00004.safetensors: cannot be opened"));
    EXPECT_THAT(status.message(), HasSubstr("step-00000001 is whole and can be resumed"));
  }
  EXPECT_TRUE(OpenAndCheck(root_).ok());
  EXPECT_NE(ReadTestFile(root_ + "/latest"), "step-00000001\n");
}

TEST_F(SaveAsyncTest, NoSpace) {
  SaveSteps({}, root_, 1);
  for (const int ranks : {1, 2}) {
    std::optional<FileSizeLimit> limit;
    const auto statuses = OnSmallTrainers(SmallConfig(ranks, 2), [&](Trainer& trainer) -> Status {
      Communicator& communicator = trainer.executor().communicator();
      ZG_RETURN_IF_ERROR(trainer.resume(root_));
      ZG_RETURN_IF_ERROR(SmallStep(trainer));
      if (communicator.rank() == 0) limit.emplace(600);
      ZG_RETURN_IF_ERROR(communicator.Barrier("no space"));
      ZG_RETURN_IF_ERROR(trainer.start_saving(root_));
      const Status failed = trainer.finish_saving();
      ZG_RETURN_IF_ERROR(communicator.Barrier("failed"));
      if (communicator.rank() == 0) limit.reset();
      ZG_RETURN_IF_ERROR(SmallStep(trainer));
      return failed;
    });
    for (const Status& status : statuses) {
      EXPECT_THAT(status.message(), HasSubstr("bytes cannot be reserved: File too large"));
    }
    EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "step-00000001"));
    EXPECT_TRUE(OpenAndCheck(root_).ok());
  }
}

TEST_F(SaveAsyncTest, TooLittleMemoryForIt) {
  const AvailableMemory available = {1000, "a test"};
  EXPECT_TRUE(CheckSaveMemory(1000, available).ok());
  EXPECT_EQ(CheckSaveMemory(1001, available).message(),
            "a copy of the checkpoint takes 1001 bytes on this host, but a test leaves 1000; leave "
            "`save_async` out, or use more hosts");
}

}  // namespace
}  // namespace zg::testing
