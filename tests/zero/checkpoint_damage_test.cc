// Checkpoints that are damaged, incomplete or from another program: each gives a clear error, and
// nothing is loaded.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "framework/io/checkpoint_checksums.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_reader.h"
#include "tests/io/directory_test.h"
#include "tests/io/test_file.h"
#include "tests/zero/saved_checkpoints.h"
#include "tests/zero/small_trainer.h"

namespace zg::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Shards hold at most 300 bytes: model-00002 is hidden.weight (12 x 8 floats) alone.
constexpr char kHiddenShard[] = "model-00002-of-00003.safetensors";

void Overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  ASSERT_TRUE(file.good());
}

// Replaces the first `from` in a file by `to`.
void Edit(const std::string& path, const std::string& from, const std::string& to) {
  std::string bytes = ReadTestFile(path);
  const size_t position = bytes.find(from);
  ASSERT_NE(position, bytes.npos) << path << " has no " << from;
  Overwrite(path, bytes.replace(position, from.size(), to));
}

// Updates the checksums to the current files, so that only errors in their content remain.
void Seal(const std::string& directory) {
  StatusOr<Checksums> checksums = ReadChecksums(directory + "/" + kChecksumsName);
  ASSERT_TRUE(checksums.ok()) << checksums.status().message();
  for (auto& [name, checksum] : *checksums) {
    const StatusOr<FileChecksum> found = ChecksumOfFile(directory + "/" + name);
    if (found.ok()) checksum = *found;
  }
  Overwrite(directory + "/" + kChecksumsName, ChecksumsAsJson(*checksums));
}

class CheckpointDamageTest : public DirectoryTest {
 protected:
  static void SetUpTestSuite() {
    pristine_ = TestPath("checkpoint_damage_pristine");
    fs::remove_all(pristine_);
    SaveSteps({}, pristine_, 2);
  }
  static void TearDownTestSuite() { fs::remove_all(pristine_); }
  void SetUp() override {
    fs::remove_all(root_);  // a test may begin again
    fs::copy(pristine_, root_, fs::copy_options::recursive);
    directory_ = root_ + "/" + StepDirectoryName(2);
    ASSERT_TRUE(OpenAndCheck(root_).ok()) << OpenAndCheck(root_).message();
  }

  std::string PathInStep(const std::string& name) const { return directory_ + "/" + name; }

  void ExpectError(const std::string& text) const {
    EXPECT_THAT(OpenAndCheck(root_).message(), HasSubstr(text));
  }

  static std::string pristine_;
  std::string directory_;
};

std::string CheckpointDamageTest::pristine_;

TEST_F(CheckpointDamageTest, AFlippedBitAnywhereInAnyFile) {
  std::vector<std::string> paths = {root_ + "/" + kLatestName};
  for (const auto& entry : fs::directory_iterator(directory_)) paths.push_back(entry.path());
  ASSERT_GT(paths.size(), 10u);
  for (const std::string& path : paths) {
    const std::string bytes = ReadTestFile(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int bit : {0, 5}) {
        file.seekp(static_cast<std::streamoff>(i));
        file.put(static_cast<char>(bytes[i] ^ (1 << bit)));
        file.flush();
        ASSERT_FALSE(OpenAndCheck(root_).ok()) << path << ", bit " << bit << " of byte " << i;
      }
      file.seekp(static_cast<std::streamoff>(i));
      file.put(bytes[i]);
      file.flush();
    }
    ASSERT_TRUE(OpenAndCheck(root_).ok()) << path;
  }
}

TEST_F(CheckpointDamageTest, AnyFileTruncatedOrMissing) {
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string path = entry.path();
    const std::string bytes = ReadTestFile(path);
    for (const size_t length : {size_t{0}, size_t{7}, bytes.size() / 2, bytes.size() - 1}) {
      fs::resize_file(path, length);
      EXPECT_THAT(OpenAndCheck(root_).message(), HasSubstr(path)) << length;
      Overwrite(path, bytes);
    }
    fs::remove(path);
    EXPECT_THAT(OpenAndCheck(root_).message(), HasSubstr(path));
    Overwrite(path, bytes);
  }
  EXPECT_TRUE(OpenAndCheck(root_).ok());
}

TEST_F(CheckpointDamageTest, AMissingShardIsNamed) {
  fs::remove(PathInStep(kHiddenShard));
  ExpectError(std::string(kHiddenShard) + ": no such file");
}

TEST_F(CheckpointDamageTest, AShardOfAnotherStep) {
  fs::copy_file(root_ + "/" + StepDirectoryName(1) + "/" + kHiddenShard, PathInStep(kHiddenShard),
                fs::copy_options::overwrite_existing);
  ExpectError("its sha256 is ");
  ExpectError(kHiddenShard);
}

TEST_F(CheckpointDamageTest, AnIndexThatPointsOutside) {
  for (const char* file :
       {"../step-00000001/model.safetensors", "/etc/passwd", "..", "a\\\\b", ""}) {
    SetUp();
    Edit(PathInStep("model.safetensors.index.json"), kHiddenShard, file);
    Seal(directory_);
    ExpectError("expected the name of one in the same directory");
  }
}

TEST_F(CheckpointDamageTest, AnIndexThatNamesAFileWithoutChecksum) {
  Edit(PathInStep("model.safetensors.index.json"), kHiddenShard, "other.safetensors");
  Seal(directory_);
  ExpectError("names other.safetensors, of which checksums.json has no checksum");
}

TEST_F(CheckpointDamageTest, AnIndexThatNamesATensorThatIsNotThere) {
  Edit(PathInStep("model.safetensors.index.json"), "\"hidden.weight\"", "\"hidden.height\"");
  Seal(directory_);
  ExpectError("tensor \"hidden.weight\" is not in model.safetensors.index.json");
}

TEST_F(CheckpointDamageTest, ATensorUnderAnotherFileThanItsOwn) {
  Edit(PathInStep("model.safetensors.index.json"), kHiddenShard,
       "model-00001-of-00003.safetensors");
  Seal(directory_);
  ExpectError("tensor \"hidden.weight\" is not in model-00001-of-00003.safetensors");
}

TEST_F(CheckpointDamageTest, DuplicateNamesInAnIndex) {
  Edit(PathInStep("model.safetensors.index.json"), "\"hidden.bias\"", "\"hidden.weight\"");
  Seal(directory_);
  ExpectError("the key \"hidden.weight\" is there twice");
}

TEST_F(CheckpointDamageTest, AnIndexWithAnotherSize) {
  Edit(PathInStep("model.safetensors.index.json"), "\"total_size\": 524", "\"total_size\": 525");
  Seal(directory_);
  ExpectError("\"total_size\" is 525, but the tensors have 524 bytes");
}

TEST_F(CheckpointDamageTest, AHeaderOfTwoToThe63Bytes) {
  std::string bytes = ReadTestFile(PathInStep(kHiddenShard));
  bytes.replace(0, 8, std::string(7, '\0') + '\x80');
  Overwrite(PathInStep(kHiddenShard), bytes);
  Seal(directory_);
  ExpectError("got a header of 9223372036854775808 bytes");
}

TEST_F(CheckpointDamageTest, RangesThatOverlapOrLeaveGaps) {
  for (const char* offsets : {"[0,380]", "[4,384]", "[0,388]"}) {
    SetUp();
    Edit(PathInStep(kHiddenShard), "[0,384]", offsets);
    Seal(directory_);
    ExpectError("tensor \"hidden.weight\"");
  }
}

TEST_F(CheckpointDamageTest, AnUnknownDtype) {
  Edit(PathInStep(kHiddenShard), "\"F32\"", "\"F99\"");
  Seal(directory_);
  ExpectError("got dtype \"F99\"");
}

TEST_F(CheckpointDamageTest, ANewerFormatVersion) {
  Edit(PathInStep("train_state.json"), "\"format_version\": 1", "\"format_version\": 2");
  ExpectError("the checkpoint has format version 2, this program reads 1");
}

TEST_F(CheckpointDamageTest, JsonThatIsNotTheFormats) {
  const struct {
    const char* file;
    const char* content;
    const char* error;
  } cases[] = {
      {"train_state.json", "[]", "expected one JSON object"},
      {"train_state.json", "{} {}", "not valid JSON"},
      {"train_state.json", "{\"format_version\": -1}", "expected a whole number"},
      {"train_state.json", "{\"format_version\": 1e400}", "not valid JSON"},
      {"train_state.json", "{\"format_version\": 1, \"format_version\": 1}", "is there twice"},
      {"train_state.json", "{\"format_version\": 1, \"extra\": 1}", "\"extra\" is not known"},
      {"train_state.json", "{\"a\": [[[[[[[[[[1]]]]]]]]]]}", "nested more than"},
      {"train_state.json", "\xef\xbb\xbf{}", "byte order mark"},
      {"train_state.json", "{\"a\": \"\xff\"}", "not valid JSON"},
      {"model.safetensors.index.json", "{}", "\"metadata\": expected"},
      {"model.safetensors.index.json", "{\"metadata\": {\"total_size\": 1}}", "\"weight_map\""},
      {"model.safetensors.index.json",
       "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {\"a\": 1}}", "tensor \"a\": got"},
      {"checksums.json", "{\"files\": {\"a\": {\"bytes\": 1}}}", "expected its \"bytes\""},
      {"checksums.json", "{\"files\": {}}", "not as it was written"},
      {"checksums.json", "{\n  \"files\": {}\n}\n", "it has no checksum of train_state.json"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.content);
    SetUp();
    Overwrite(PathInStep(test.file), test.content);
    if (std::string(test.file) != kChecksumsName) Seal(directory_);
    ExpectError(test.file);
    ExpectError(test.error);
  }
}

// Reading them whole would take hours, or not end.
TEST_F(CheckpointDamageTest, FilesThatAreFarTooLongOrHaveNoEndAreNotRead) {
  const std::string index = PathInStep(IndexName(kModelPart));
  fs::resize_file(index, uintmax_t{1} << 40);
  ExpectError("model.safetensors.index.json: got 1099511627776 bytes, expected ");
  fs::remove(index);
  fs::create_symlink("/dev/zero", index);
  ExpectError("model.safetensors.index.json: got a device or pipe, expected a regular file");
}

TEST_F(CheckpointDamageTest, WhereThereIsNoCheckpoint) {
  EXPECT_THAT(OpenAndCheck(root_ + "/none").message(), HasSubstr("No such file or directory"));
  EXPECT_THAT(OpenAndCheck(root_ + "/latest").message(), HasSubstr("not a directory"));
  fs::remove(root_ + "/latest");
  ExpectError("there is no checkpoint; expected train_state.json in it");
  Overwrite(root_ + "/latest", "step-00000009\n");
  ExpectError("names step-00000009, which is not there");
  for (const char* text : {"", "\n", "../x\n", "step-2\n", "step-00000002\n\n"}) {
    Overwrite(root_ + "/latest", text);
    ExpectError("expected the name of a checkpoint such as step-00000100");
  }
  EXPECT_TRUE(OpenAndCheck(directory_).ok());
}

// The trainer's error; the file itself is fine.
TEST_F(CheckpointDamageTest, AnotherModelsTensorsAreListedAtOnce) {
  SmallTrainerConfig config;
  config.hidden = 9;
  const Status status =
      OnSmallTrainer(config, [&](Trainer& trainer) { return trainer.resume(root_); });
  EXPECT_THAT(status.message(), HasSubstr("'hidden.weight': got f32[8,12], expected f32[9,12]"));
  EXPECT_THAT(status.message(), HasSubstr("'hidden.weight.momentum_buffer': got f32[8,12]"));
}

TEST_F(CheckpointDamageTest, DamagedDataChangesNothingInTheTrainer) {
  std::string bytes = ReadTestFile(PathInStep(kHiddenShard));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Overwrite(PathInStep(kHiddenShard), bytes);
  for (const int ranks : {1, 2}) {
    SmallTrainerConfig config;
    config.ranks = ranks;
    const auto statuses = OnSmallTrainers(config, [&](Trainer& trainer) -> Status {
      ZG_ASSIGN_OR_RETURN(const TensorDigest before, trainer.digest_parameters());
      const Status status = trainer.resume(root_);
      EXPECT_EQ(trainer.steps_done(), 0);
      ZG_ASSIGN_OR_RETURN(const TensorDigest after, trainer.digest_parameters());
      EXPECT_EQ(before.sha256, after.sha256);
      return status;
    });
    for (const Status& status : statuses) {
      EXPECT_THAT(status.message(), HasSubstr(kHiddenShard));
      EXPECT_THAT(status.message(), HasSubstr("the file is damaged"));
    }
  }
}

TEST_F(CheckpointDamageTest, SettingsThatDifferAreNamed) {
  const auto resume = [&](const SmallTrainerConfig& config) {
    return OnSmallTrainer(config, [&](Trainer& trainer) { return trainer.resume(root_); });
  };
  EXPECT_TRUE(resume({}).ok());
  SmallTrainerConfig other;
  other.seed = 5;
  other.micro_batches = 4;
  EXPECT_THAT(resume(other).message(), HasSubstr("\n  seed: got \"5\", expected \"1\""));
  EXPECT_THAT(resume(other).message(), HasSubstr("\n  micro-batches: got \"4\", expected \"2\""));
  other = {};
  other.lr = 0.2;
  EXPECT_THAT(resume(other).message(),
              HasSubstr("\n  optimizer: got \"sgd_momentum_update lr=0.2"));
  other = {};
  other.has_momentum = false;
  EXPECT_THAT(resume(other).message(), HasSubstr("\n  optimizer: got \"sgd_update lr=0.1"));
}

}  // namespace
}  // namespace zg::testing
