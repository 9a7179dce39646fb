// Saving: the contents of the directory afterwards, also after a failed or killed save.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/io/checkpoint_reader.h"
#include "framework/io/checkpoint_store.h"
#include "framework/job/process_memory.h"
#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/zero/saved_checkpoints.h"
#include "tests/zero/small_trainer.h"

namespace zg::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointSaveTest : public DirectoryTest {
 protected:
  CheckpointSaveTest() { std::signal(SIGXFSZ, SIG_IGN); }  // as every program with a Job has it
};

TEST_F(CheckpointSaveTest, KeepsTheNewestAndLatestNamesIt) {
  const Status status = OnSmallTrainer({}, [&](Trainer& trainer) -> Status {
    for (int i = 0; i < 4; ++i) {
      ZG_RETURN_IF_ERROR(SmallStep(trainer));
      SaveOptions options;
      options.keep = 2;
      ZG_RETURN_IF_ERROR(trainer.save(root_, options));
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "step-00000003", "step-00000004"));
  EXPECT_EQ(ReadTestFile(root_ + "/latest"), "step-00000004\n");
  EXPECT_EQ(DigestAfter(4, root_), DigestAfter(4));
}

TEST_F(CheckpointSaveTest, ReplacesACheckpointOfTheSameStepWhole) {
  SaveSteps({}, root_, 3);
  const std::string of_seed_1 = ReadTestFile(root_ + "/step-00000002/checksums.json");
  const std::string stray = WriteTestFile("stray", "x");
  fs::rename(stray, root_ + "/step-00000002/stray");
  SmallTrainerConfig other;
  other.seed = 2;
  SaveSteps(other, root_, 2);
  EXPECT_THAT(NamesIn(root_),
              ElementsAre("latest", "step-00000001", "step-00000002", "step-00000003"));
  EXPECT_NE(ReadTestFile(root_ + "/step-00000002/checksums.json"), of_seed_1);
  EXPECT_FALSE(fs::exists(root_ + "/step-00000002/stray"));
  EXPECT_EQ(ReadTestFile(root_ + "/latest"), "step-00000002\n");
  EXPECT_TRUE(OpenAndCheck(root_).ok());
}

TEST_F(CheckpointSaveTest, AFileInItsPlaceIsReplacedWhole) {
  SaveSteps({}, root_, 1);
  fs::rename(WriteTestFile("in_its_place", "x"), root_ + "/step-00000002");
  SaveSteps({}, root_, 2);
  EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "step-00000001", "step-00000002"));
  ExpectOnlyWholeCheckpoints(root_);
}

// If `latest` is a directory, it cannot be replaced; the checkpoints are complete nevertheless.
TEST_F(CheckpointSaveTest, ADirectoryInThePlaceOfLatest) {
  SaveSteps({}, root_, 1);
  fs::remove(root_ + "/latest");
  fs::create_directories(root_ + "/latest/x");
  for (const Status& status :
       OnSmallTrainers(SmallConfig(2), [&](Trainer& trainer) { return trainer.save(root_); })) {
    EXPECT_THAT(status.message(), HasSubstr(root_ + "/latest"));
  }
  ExpectOnlyWholeCheckpoints(root_);
}

TEST_F(CheckpointSaveTest, RemovingOlderOnesSparesLaterStepsOfAnotherRun) {
  SaveSteps({}, root_, 3);
  StatusOr<CheckpointStore> store = CheckpointStore::Open(root_);
  ASSERT_TRUE(store.ok());
  EXPECT_TRUE(store->RemoveOlder(2, 1).ok());
  EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "step-00000002", "step-00000003"));
}

TEST_F(CheckpointSaveTest, ADirectoryBelongsToOneJob) {
  std::optional<StatusOr<CheckpointStore>> first = CheckpointStore::Open(root_);
  ASSERT_TRUE((*first).ok());
  EXPECT_THAT(CheckpointStore::Open(root_).status().message(),
              HasSubstr(root_ + ": another job saves into it"));
  const auto statuses = OnSmallTrainers(
      SmallConfig(2), [&](Trainer& trainer) { return trainer.prepare_saving(root_); });
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(), HasSubstr("another job saves into it"));
  }
  first.reset();
  EXPECT_TRUE(CheckpointStore::Open(root_).ok());
}

TEST_F(CheckpointSaveTest, OpeningRemovesWhatKilledSavesLeftAndNothingElse) {
  SaveSteps({}, root_, 1);
  fs::create_directories(root_ + "/step-00000002.tmp/x");
  fs::create_directories(root_ + "/mine.tmp");
  fs::rename(WriteTestFile("left", "x"), root_ + "/latest.tmp-12-0");
  EXPECT_TRUE(CheckpointStore::Open(root_).ok());
  EXPECT_THAT(NamesIn(root_), ElementsAre("latest", "mine.tmp", "step-00000001"));
}

TEST_F(CheckpointSaveTest, ADirectoryThatCannotBe) {
  const std::string file = WriteTestFile("checkpoint_save_file", "x");
  for (const std::string& path : {std::string("/proc/none/a"), file, file + "/a"}) {
    for (const int ranks : {1, 2}) {
      const auto statuses =
          OnSmallTrainers(SmallConfig(ranks), [&](Trainer& trainer) { return trainer.save(path); });
      for (const Status& status : statuses) {
        EXPECT_THAT(status.message(), HasSubstr(path + ": the checkpoint of step 0 was not saved"));
        EXPECT_THAT(status.message(), HasSubstr("there is no older one in the directory"));
      }
    }
  }
  fs::remove(file);
}

// For this thread and those that it starts, because permissions do not restrict the superuser.
void GiveUpPassingPermissions() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
  constexpr uint32_t kPass = 1u << CAP_DAC_OVERRIDE;
  data[0].effective &= ~kPass;
  data[0].permitted &= ~kPass;
  ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

TEST_F(CheckpointSaveTest, AReadOnlyDirectory) {
  SaveSteps({}, root_, 1);
  ASSERT_EQ(chmod(root_.c_str(), 0555), 0);
  Status status;
  std::thread([&] {
    GiveUpPassingPermissions();
    status = OnSmallTrainer({}, [&](Trainer& trainer) { return trainer.save(root_); });
  }).join();
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  EXPECT_THAT(status.message(), HasSubstr("Permission denied"));
  EXPECT_TRUE(OpenAndCheck(root_).ok());
}

// After the failure the older checkpoint is complete, the temporary files are gone, and training
// and saving go on.
void ExpectFailedSaveIsHarmless(const std::string& root, int ranks, const SaveOptions& failing,
                                const std::function<void()>& before,
                                const std::function<void()>& after, std::vector<Status>* statuses) {
  SaveSteps({}, root, 1);
  *statuses = OnSmallTrainers(SmallConfig(ranks, 1), [&](Trainer& trainer) -> Status {
    Communicator& communicator = trainer.executor().communicator();
    ZG_RETURN_IF_ERROR(trainer.resume(root));
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    if (communicator.rank() == 0) before();
    ZG_RETURN_IF_ERROR(communicator.Barrier("before"));
    const Status failed = trainer.save(root, failing);
    ZG_RETURN_IF_ERROR(communicator.Barrier("after"));
    if (communicator.rank() == 0) {
      after();
      EXPECT_TRUE(OpenAndCheck(root).ok()) << OpenAndCheck(root).message();
      EXPECT_THAT(NamesIn(root), ElementsAre("latest", "step-00000001"));
    }
    EXPECT_THAT(failed.message(), HasSubstr(root + ": the checkpoint of step 2 was not saved: "));
    EXPECT_THAT(failed.message(), HasSubstr("step-00000001 is whole and can be resumed"));
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    const Status saved = trainer.save(root);
    EXPECT_TRUE(saved.ok()) << saved.message();
    return failed;
  });
  EXPECT_EQ(ReadTestFile(root + "/latest"), "step-00000003\n");
  EXPECT_EQ(DigestAfter(4, root), DigestAfter(4));
}

TEST_F(CheckpointSaveTest, NoSpaceForTheShards) {
  for (const int ranks : {1, 2}) {
    std::optional<FileSizeLimit> limit;
    std::vector<Status> statuses;
    ExpectFailedSaveIsHarmless(
        root_, ranks, {}, [&] { limit.emplace(600); }, [&] { limit.reset(); }, &statuses);
    for (const Status& status : statuses) {
      EXPECT_THAT(status.message(), HasSubstr("bytes cannot be reserved: File too large"));
    }
    fs::remove_all(root_);
  }
}

TEST_F(CheckpointSaveTest, NoSpaceForTheSmallFiles) {
  SaveOptions options;
  options.max_shard_bytes = 100;  // small shards, long indexes
  std::optional<FileSizeLimit> limit;
  std::vector<Status> statuses;
  ExpectFailedSaveIsHarmless(
      root_, 2, options, [&] { limit.emplace(620); }, [&] { limit.reset(); }, &statuses);
  EXPECT_THAT(statuses[0].message(),
              HasSubstr("checksums.json: cannot be written: File too large"));
  EXPECT_THAT(statuses[1].message(),
              HasSubstr("checksums.json: cannot be written: File too large"));
}

TEST_F(CheckpointSaveTest, AnErrorOnOneRankIsAnErrorOnAll) {
  SaveOptions options;
  options.max_shard_bytes = 1;  // one tensor per file
  // Only rank 1 writes into the third shard of the model: the tensors are whole on both ranks, and
  // the first two are most of them.
  options.at_point = [&](std::string_view point) {
    if (point == "created") {
      fs::remove(root_ + "/step-00000002.tmp/model-00003-of-00004.safetensors");
    }
  };
  std::vector<Status> statuses;
  ExpectFailedSaveIsHarmless(
      root_, 2, options, [] {}, [] {}, &statuses);
  EXPECT_THAT(statuses[0].message(), HasSubstr("save: rank 1 failed: "));
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(),
                HasSubstr("model-00003-of-00004.safetensors: cannot be opened for writing"));
  }
}

TEST_F(CheckpointSaveTest, AFullDisk) {
  // NoSpaceForTheShards shows the same without a separate disk.
  if (geteuid() != 0) GTEST_SKIP() << "it mounts a disk of its own, which takes root";
  fs::create_directories(root_);
  if (mount("none", root_.c_str(), "tmpfs", 0, "size=96k") != 0) {
    GTEST_SKIP() << "no disk can be mounted here";
  }
  std::vector<Status> statuses;
  const std::string filler = root_ + "/filler";
  ExpectFailedSaveIsHarmless(
      root_ + "/run", 2, {},
      [&] {
        std::string bytes(4096, 'x');
        FILE* file = std::fopen(filler.c_str(), "wb");
        while (std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
               std::fflush(file) == 0) {
        }
        std::fclose(file);
      },
      [&] { fs::remove(filler); }, &statuses);
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
  }
  fs::remove_all(root_ + "/run");
  ASSERT_EQ(umount2(root_.c_str(), MNT_DETACH), 0);
}

TEST_F(CheckpointSaveTest, NeedsHardlyAnyMemoryBeyondTheArena) {
  constexpr int64_t kMegabyte = 1000 * 1000;
  SmallTrainerConfig config;
  config.hidden = 800 * 1000;  // 48 MB of parameters, and as much of momentum
  const Status status = OnSmallTrainer(config, [&](Trainer& trainer) -> Status {
    ZG_ASSIGN_OR_RETURN(const ProcessMemory before, ReadProcessMemory());
    int64_t most_bytes = 0;
    SaveOptions options;
    options.at_point = [&](std::string_view) {
      const StatusOr<ProcessMemory> now = ReadProcessMemory();
      ASSERT_TRUE(now.ok());
      most_bytes = std::max(most_bytes, now->resident_bytes - before.resident_bytes);
    };
    ZG_RETURN_IF_ERROR(trainer.save(root_, options));
    EXPECT_GT(fs::file_size(root_ + "/step-00000000/model-00001-of-00001.safetensors"),
              40 * kMegabyte);
    EXPECT_LT(most_bytes, 4 * kMegabyte);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(CheckpointSaveTest, MemoryForACopyIsAllocatedOnce) {
  constexpr int64_t kMegabyte = 1000 * 1000;
#if defined(__SANITIZE_ADDRESS__)
  constexpr int64_t kLittle = 32 * kMegabyte;  // the allocator keeps freed memory for a while
#else
  constexpr int64_t kLittle = 4 * kMegabyte;
#endif
  SmallTrainerConfig config;
  config.hidden = 800 * 1000;  // 48 MB of parameters, and as much of momentum
  const Status status = OnSmallTrainer(config, [&](Trainer& trainer) -> Status {
    EXPECT_EQ(trainer.reserved_for_saving_bytes(), 0);
    ZG_ASSIGN_OR_RETURN(const ProcessMemory at_first, ReadProcessMemory());
    ZG_RETURN_IF_ERROR(trainer.reserve_for_saving());
    ZG_ASSIGN_OR_RETURN(const ProcessMemory before, ReadProcessMemory());
    const int64_t reserved = trainer.reserved_for_saving_bytes();
    EXPECT_GT(reserved, 100 * kMegabyte);
    EXPECT_GE(before.resident_bytes - at_first.resident_bytes, reserved - kMegabyte);
    for (int i = 0; i < 2; ++i) {
      ZG_RETURN_IF_ERROR(trainer.start_saving(root_));
      ZG_ASSIGN_OR_RETURN(const ProcessMemory during, ReadProcessMemory());
      ZG_RETURN_IF_ERROR(trainer.finish_saving());
      ZG_ASSIGN_OR_RETURN(const ProcessMemory after, ReadProcessMemory());
      EXPECT_LT(during.resident_bytes - before.resident_bytes, kLittle);
      EXPECT_LT(after.resident_bytes - before.resident_bytes, kLittle);
    }
    EXPECT_EQ(trainer.reserved_for_saving_bytes(), reserved);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// --- Killed saves --------------------------------------------------------------------------------

TEST_F(CheckpointSaveTest, KilledAtAnyPointItIsThereWholeOrNotAtAll) {
  const std::string expected = DigestAfter(4);
  for (const char* point : {"created", "written", "hashed", "described", "published"}) {
    for (const int victim : {0, 1}) {
      SCOPED_TRACE(fmt::format("rank {} at '{}'", victim, point));
      fs::remove_all(root_);
      SaveSteps({}, root_, 1);
      const pid_t child = Fork([&] {
        OnSmallTrainers(SmallConfig(2, 3), [&](Trainer& trainer) -> Status {
          ZG_RETURN_IF_ERROR(trainer.resume(root_));
          ZG_RETURN_IF_ERROR(SmallStep(trainer));
          SaveOptions options;
          const bool is_victim = trainer.executor().communicator().rank() == victim;
          options.at_point = [&](std::string_view now) {
            if (is_victim && now == point) std::raise(SIGKILL);
          };
          return trainer.save(root_, options);
        });
      });
      ExpectKilled(child);
      ExpectOnlyWholeCheckpoints(root_);
      if (std::string(point) == "published") {
        EXPECT_EQ(ReadTestFile(root_ + "/latest"), "step-00000002\n");
      } else if (std::string(point) != "described") {  // then the other rank may publish
        EXPECT_EQ(ReadTestFile(root_ + "/latest"), "step-00000001\n");
      }
      EXPECT_EQ(DigestAfter(4, root_), expected);
      EXPECT_TRUE(CheckpointStore::Open(root_).ok());
      for (const std::string& name : NamesIn(root_)) EXPECT_EQ(name.find("tmp"), name.npos);
    }
  }
}

TEST_F(CheckpointSaveTest, KilledAtRandomMoments) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  SaveSteps({}, root_, 1);
  const Clock::duration one_save = Clock::now() - start;  // with a start of the ranks
  fs::remove_all(root_);
  std::mt19937 random(1);
  int num_with_checkpoint = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = Fork([&] {
      OnSmallTrainers(SmallConfig(2, 1 + i % 3), [&](Trainer& trainer) -> Status {
        while (true) {
          ZG_RETURN_IF_ERROR(SmallStep(trainer));
          SaveOptions options;
          options.keep = 2;
          ZG_RETURN_IF_ERROR(trainer.save(root_, options));
        }
      });
    });
    std::this_thread::sleep_for(one_save * (50 + random() % 350) / 100);
    kill(child, SIGKILL);
    ExpectKilled(child);
    if (!fs::exists(root_)) continue;
    ExpectOnlyWholeCheckpoints(root_);
    const StatusOr<CheckpointReader> latest = CheckpointReader::Open(root_);
    if (!fs::exists(root_ + "/latest")) continue;
    ASSERT_TRUE(latest.ok()) << latest.status().message();
    ++num_with_checkpoint;
    const int step = static_cast<int>(latest->state().step);
    EXPECT_EQ(DigestAfter(step, root_), DigestAfter(step));
    if (i % 4 == 3) fs::remove_all(root_);
  }
  EXPECT_GT(num_with_checkpoint, 5);
}

}  // namespace
}  // namespace zg::testing
