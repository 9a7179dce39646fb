#include "tests/zero/saved_checkpoints.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_reader.h"

namespace zg::testing {

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Status OpenAndCheck(const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(path));
  return reader.CheckData();
}

SmallTrainerConfig SmallConfig(int ranks, int stage) {
  SmallTrainerConfig config;
  config.ranks = ranks;
  config.stage = stage;
  return config;
}

std::string DigestAfter(int steps, const std::string& resume) {
  std::string digest;
  const Status status = OnSmallTrainer({}, [&](Trainer& trainer) -> Status {
    if (!resume.empty()) ZG_RETURN_IF_ERROR(trainer.resume(resume));
    while (trainer.steps_done() < steps) ZG_RETURN_IF_ERROR(SmallStep(trainer));
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer.digest_optimizer_state());
    digest = parameters.sha256 + state.sha256;
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return digest;
}

FileSizeLimit::FileSizeLimit(rlim_t bytes) {
  getrlimit(RLIMIT_FSIZE, &before_);
  rlimit limit = before_;
  limit.rlim_cur = bytes;
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

FileSizeLimit::~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

pid_t Fork(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

void ExpectKilled(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void ExpectOnlyWholeCheckpoints(const std::string& root) {
  for (const std::string& name : NamesIn(root)) {
    if (!ParseStepDirectoryName(name)) continue;
    const Status status = OpenAndCheck(root + "/" + name);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace zg::testing
