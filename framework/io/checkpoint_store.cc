#include "framework/io/checkpoint_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/io/atomic_file.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_reader.h"
#include "framework/io/durable_file.h"

namespace zg {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporarySuffix = ".tmp";

std::string TemporaryName(int64_t step) {
  return StepDirectoryName(step) + std::string(kTemporarySuffix);
}

bool IsLeftover(const std::string& name) {
  if (name.rfind(std::string(kLatestName) + ".tmp-", 0) == 0) return true;  // made by AtomicFile
  if (name.size() <= kTemporarySuffix.size()) return false;
  const size_t stem = name.size() - kTemporarySuffix.size();
  return name.substr(stem) == kTemporarySuffix &&
         ParseStepDirectoryName(std::string_view(name).substr(0, stem));
}

}  // namespace

StatusOr<CheckpointStore> CheckpointStore::Open(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return FailedPrecondition("{}: cannot be created: {}", directory, error.message());
  const int lock = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) {
    return FailedPrecondition("{}: cannot be opened: {}", directory, std::strerror(errno));
  }
  CheckpointStore store(directory, lock);
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return FailedPrecondition("{}: cannot be written: {}", directory, std::strerror(errno));
  }
  // File systems without locks return other errors: there, nothing keeps two jobs apart.
  if (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return FailedPrecondition("{}: another job saves into it; give each job a directory of its own",
                              directory);
  }
  ZG_RETURN_IF_ERROR(store.RemoveLeftovers());
  return store;
}

CheckpointStore::CheckpointStore(CheckpointStore&& other) noexcept
    : directory_(std::move(other.directory_)), lock_(std::exchange(other.lock_, -1)) {}

CheckpointStore& CheckpointStore::operator=(CheckpointStore&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(lock_, other.lock_);
  return *this;
}

CheckpointStore::~CheckpointStore() {
  if (lock_ >= 0) close(lock_);
}

Status CheckpointStore::RemoveLeftovers() {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (IsLeftover(entry.path().filename().string())) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) {
    fs::remove_all(path, error);
    if (error) {
      return FailedPrecondition("{}: cannot be removed: {}", path.string(), error.message());
    }
  }
  return Status::Ok();
}

StatusOr<std::string> CheckpointStore::Begin(int64_t step) {
  const std::string path = PathOf(TemporaryName(step));
  Discard(step);  // left by a failed save that could not be removed then
  std::error_code error;
  if (!fs::create_directory(path, error)) {
    return FailedPrecondition("{}: cannot be created: {}", path,
                              error ? error.message() : "it exists");
  }
  return path;
}

Status CheckpointStore::Publish(int64_t step) {
  const std::string name = StepDirectoryName(step);
  const std::string from = PathOf(TemporaryName(step));
  const std::string to = PathOf(name);
  ZG_RETURN_IF_ERROR(SyncDirectory(from));
  std::error_code error;
  if (fs::exists(to, error)) {
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
      return FailedPrecondition("{}: is there already and cannot be replaced: {}; remove it", to,
                                std::strerror(errno));
    }
  } else if (rename(from.c_str(), to.c_str()) != 0) {
    return FailedPrecondition("{}: cannot be renamed to {}: {}", from, name, std::strerror(errno));
  }
  ZG_RETURN_IF_ERROR(SyncDirectory(directory_));
  Discard(step);  // the older one, if there was one
  return WriteFileAtomically(PathOf(kLatestName), name + "\n");
}

void CheckpointStore::Discard(int64_t step) {
  std::error_code ignored;
  fs::remove_all(PathOf(TemporaryName(step)), ignored);
}

Status CheckpointStore::RemoveOlder(int64_t step, int keep) {
  std::error_code error;
  std::vector<int64_t> steps;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const auto found = ParseStepDirectoryName(entry.path().filename().string());
    if (found && *found <= step) steps.push_back(*found);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  for (size_t i = keep; i < steps.size(); ++i) {
    // Renamed to the temporary name first: a half-removed one must not look like a checkpoint.
    const std::string from = PathOf(StepDirectoryName(steps[i]));
    if (rename(from.c_str(), PathOf(TemporaryName(steps[i])).c_str()) != 0) {
      return FailedPrecondition("{}: cannot be removed: {}", from, std::strerror(errno));
    }
    Discard(steps[i]);
  }
  return Status::Ok();
}

std::optional<std::string> LatestCheckpoint(const std::string& directory) {
  const StatusOr<std::string> found = FindCheckpoint(directory);
  if (!found.ok()) return std::nullopt;
  return fs::path(*found).filename().string();
}

}  // namespace zg
