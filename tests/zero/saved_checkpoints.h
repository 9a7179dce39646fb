// Helpers for tests of saving: the contents of a directory, the bits after resuming from it, and
// processes that are killed while they save.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <set>
#include <string>

#include "framework/base/status.h"
#include "tests/zero/small_trainer.h"

namespace zg::testing {

std::set<std::string> NamesIn(const std::string& directory);

// Whether the checkpoint, or the latest one of a directory, is complete.
Status OpenAndCheck(const std::string& path);

SmallTrainerConfig SmallConfig(int ranks, int stage = 0);

// The digests after `steps` steps, from the start or from a checkpoint.
std::string DigestAfter(int steps, const std::string& resume = "");

// Limits the size of a file, which acts like a full disk: part of a write succeeds, then writes
// fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes);
  ~FileSizeLimit();

 private:
  rlimit before_;
};

// Runs `body` in a process of its own and returns it.
pid_t Fork(const std::function<void()>& body);
// Waits for its end, which must be a SIGKILL.
void ExpectKilled(pid_t child);

// Every directory with the name of a checkpoint is a complete one.
void ExpectOnlyWholeCheckpoints(const std::string& root);

}  // namespace zg::testing
