#include "framework/state/save_checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "framework/base/check.h"
#include "framework/io/atomic_file.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/durable_file.h"
#include "framework/io/sha256.h"
#include "framework/state/tensor_state.h"

namespace zg {
namespace {

// The longest time that a rank that waits for the end lets the others wait for a message.
constexpr std::chrono::milliseconds kMeetEvery(100);

// A rank's message at a synchronisation point: empty while it works, else its status and result.
constexpr char kWorked = '+';
constexpr char kFailed = '-';

// A checksum as one line, for exchange between ranks.
std::string Pack(const FileChecksum& checksum) {
  return fmt::format("{} {}\n", checksum.bytes, checksum.sha256);
}

FileChecksum Unpack(const std::string& line) {
  const size_t space = line.find(' ');
  return {std::stoull(line.substr(0, space)), line.substr(space + 1)};
}

// Writes bytes of a slice, from `offset_bytes` on, to the place of its elements in a tensor that
// begins at `tensor_bytes` of the file.
Status WriteRuns(DurableFile& file, uint64_t tensor_bytes, const LocalElements& slice,
                 uint64_t offset_bytes, const std::byte* data, size_t size_bytes) {
  constexpr int64_t kBytes = sizeof(float);
  const auto first = static_cast<int64_t>(offset_bytes) / kBytes;
  Status status;
  slice.Slice(first, static_cast<int64_t>(size_bytes) / kBytes)
      .ForEachRun([&](int64_t element, int64_t local, int64_t count) {
        if (!status.ok()) return;
        status =
            file.WriteAt(tensor_bytes + element * kBytes, data + local * kBytes, count * kBytes);
      });
  return status;
}

}  // namespace

const CheckpointSave::Phase CheckpointSave::kPhases[] = {
    {"created", &CheckpointSave::CreateFiles, &CheckpointSave::TakeDirectory},
    {"written", &CheckpointSave::WriteSlices, nullptr},
    {"hashed", &CheckpointSave::HashFiles, &CheckpointSave::TakeChecksums},
    {"described", &CheckpointSave::Describe, nullptr},
    {"published", &CheckpointSave::Publish, nullptr},
};
const size_t CheckpointSave::kNumPhases = std::size(kPhases);

CheckpointSave::CheckpointSave(Executor& executor, CheckpointStore* store, TrainState state,
                               SaveOptions options)
    : executor_(executor),
      communicator_(executor.communicator()),
      store_(store),
      state_(std::move(state)),
      options_(std::move(options)) {
  ZG_CHECK((store != nullptr) == (communicator_.rank() == 0), "the store belongs to rank 0");
}

CheckpointSave::~CheckpointSave() {
  if (!work_.valid()) return;
  work_.wait();
  if (is_main()) store_->Discard(state_.step);
}

Status CheckpointSave::Run() {
  Status status = LayOut();
  while (!has_ended()) {
    const Phase& phase = kPhases[phase_];
    if (status.ok()) status = (this->*phase.work)();
    ZG_RETURN_IF_ERROR(Meet(/*is_done=*/true, status).status());
  }
  return Status::Ok();
}

Status CheckpointSave::Start(std::byte* memory) {
  copy_ = memory;
  Status status = LayOut();
  if (status.ok()) status = CopySlices(memory);
  status = ExchangeStatus(communicator_, "save", status);
  if (!status.ok()) return End(status);
  StartPhase();
  return Status::Ok();
}

StatusOr<bool> CheckpointSave::Continue() {
  if (has_ended()) return true;
  // A thread that has not started is not done.
  const bool is_done = work_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  const Status status = is_done ? work_.get() : Status::Ok();
  ZG_ASSIGN_OR_RETURN(const bool all_were_done, Meet(is_done, status));
  if (!is_done) return false;
  if (!all_were_done) {
    // So that the result can be read again.
    std::promise<Status> again;
    again.set_value(status);
    work_ = again.get_future();
    return false;
  }
  if (has_ended()) return true;
  StartPhase();
  return false;
}

Status CheckpointSave::Finish() {
  bool is_saved = false;
  while (!is_saved) {
    if (work_.valid()) work_.wait_for(kMeetEvery);
    ZG_ASSIGN_OR_RETURN(is_saved, Continue());
  }
  return Status::Ok();
}

void CheckpointSave::StartPhase() {
  const auto work = kPhases[phase_].work;
  work_ = std::async(std::launch::async, [this, work] { return (this->*work)(); });
}

StatusOr<bool> CheckpointSave::Meet(bool is_done, const Status& status) {
  std::string mine;
  if (is_done) mine = status.ok() ? kWorked + result_ : kFailed + status.ToString();
  StatusOr<std::vector<std::string>> messages = communicator_.Exchange("save", mine);
  if (!status.ok() && !messages.ok()) return End(status);
  if (!messages.ok()) return End(messages.status());
  if (std::any_of(messages->begin(), messages->end(), [](const auto& m) { return m.empty(); })) {
    return false;
  }
  if (!status.ok()) return End(status);
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::string& message = (*messages)[rank];
    if (message[0] == kWorked) continue;
    return End(Aborted("save: rank {} failed: {}", rank, message.substr(1)));
  }
  for (std::string& message : *messages) message.erase(0, 1);
  const Phase& phase = kPhases[phase_];
  result_.clear();
  if (phase.take != nullptr) (this->*phase.take)(*messages);
  ++phase_;
  if (options_.at_point != nullptr) options_.at_point(phase.point);
  return true;
}

Status CheckpointSave::End(const Status& status) {
  phase_ = kNumPhases;
  if (is_main()) store_->Discard(state_.step);
  return status;
}

// Computes the same layout on every rank.
Status CheckpointSave::LayOut() {
  for (const auto& [name, role] : {std::pair(kModelPart, TensorRole::kParameter),
                                   std::pair(kOptimizerPart, TensorRole::kOptimizerState)}) {
    Part part;
    part.name = name;
    part.tensors = TensorsByName(executor_.graph(), role);
    part.slices = CheckpointSlicesOf(executor_.graph(), part.tensors, communicator_.rank());
    std::vector<TensorOfFile> described;
    for (const ir::StoredTensor* tensor : part.tensors) {
      described.push_back({tensor->name, SafetensorsDType::kF32, tensor->type.shape.dims()});
    }
    ZG_ASSIGN_OR_RETURN(part.layout, MakeShardLayout(name, described, options_.max_shard_bytes));
    parts_.push_back(std::move(part));
  }
  for (const Part& part : parts_) {
    for (const ShardFile& file : part.layout.files) files_.push_back(&file);
  }
  return Status::Ok();
}

Status CheckpointSave::CopySlices(std::byte* target) {
  for (const Part& part : parts_) {
    for (const CheckpointSlice& slice : part.slices) {
      ZG_RETURN_IF_ERROR(ReadLocalValues(
          executor_, *part.tensors[slice.index], slice.local, slice.elements.count,
          [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) -> Status {
            std::memcpy(target + offset_bytes, data, size_bytes);
            return Status::Ok();
          }));
      target += slice.bytes();
    }
  }
  return Status::Ok();
}

Status CheckpointSave::CreateFiles() {
  if (!is_main()) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(directory_, store_->Begin(state_.step));
  for (const ShardFile* file : files_) {
    const std::string& prefix = file->layout.prefix;
    ZG_ASSIGN_OR_RETURN(DurableFile created,
                        DurableFile::Create(PathOf(file->name), file->layout.file_bytes()));
    ZG_RETURN_IF_ERROR(created.WriteAt(0, prefix.data(), prefix.size()));
    ZG_RETURN_IF_ERROR(created.Sync());
  }
  result_ = directory_;
  return Status::Ok();
}

void CheckpointSave::TakeDirectory(const std::vector<std::string>& directories) {
  directory_ = directories[0];
}

Status CheckpointSave::WriteSlices() {
  const std::byte* copy = copy_;
  for (const Part& part : parts_) {
    std::optional<DurableFile> file;
    int shard = -1;  // index of `file`; tensors of one shard are consecutive
    for (const CheckpointSlice& slice : part.slices) {
      const TensorPlace& place = part.layout.places[slice.index];
      if (place.shard != shard) {
        if (file) ZG_RETURN_IF_ERROR(file->Sync());
        shard = place.shard;
        ZG_ASSIGN_OR_RETURN(file, DurableFile::Open(PathOf(part.layout.files[shard].name)));
      }
      const auto write = [&](uint64_t offset, const std::byte* data, size_t size_bytes) {
        return WriteRuns(*file, place.offset_bytes, slice.elements, offset, data, size_bytes);
      };
      if (copy_ == nullptr) {
        ZG_RETURN_IF_ERROR(ReadLocalValues(executor_, *part.tensors[slice.index], slice.local,
                                           slice.elements.count, write));
      } else {
        ZG_RETURN_IF_ERROR(write(0, copy, slice.bytes()));
        copy += slice.bytes();
      }
    }
    if (file) ZG_RETURN_IF_ERROR(file->Sync());
  }
  return Status::Ok();
}

// Each rank hashes some of the files.
Status CheckpointSave::HashFiles() {
  for (size_t i = communicator_.rank(); i < files_.size(); i += communicator_.size()) {
    ZG_ASSIGN_OR_RETURN(const FileChecksum checksum, ChecksumOfFile(PathOf(files_[i]->name)));
    result_ += Pack(checksum);
  }
  return Status::Ok();
}

void CheckpointSave::TakeChecksums(const std::vector<std::string>& lines) {
  std::vector<size_t> begins(lines.size());
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string& text = lines[i % lines.size()];
    size_t& begin = begins[i % lines.size()];
    const size_t end = text.find('\n', begin);
    checksums_[files_[i]->name] = Unpack(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

Status CheckpointSave::WriteDescribed(const std::string& name, const std::string& text) {
  checksums_[name] = {text.size(), Sha256Hex(text.data(), text.size())};
  return WriteFileAtomically(PathOf(name), text);
}

Status CheckpointSave::Describe() {
  if (!is_main()) return Status::Ok();
  for (const Part& part : parts_) {
    ZG_RETURN_IF_ERROR(WriteDescribed(IndexName(part.name), TensorIndexAsJson(part.layout.index)));
  }
  ZG_RETURN_IF_ERROR(WriteDescribed(kTrainStateName, TrainStateAsJson(state_)));
  return WriteFileAtomically(PathOf(kChecksumsName),
                             ChecksumsAsJson(checksums_));  // makes the checkpoint complete
}

Status CheckpointSave::Publish() {
  if (!is_main()) return Status::Ok();
  ZG_RETURN_IF_ERROR(store_->Publish(state_.step));
  return options_.keep == 0 ? Status::Ok() : store_->RemoveOlder(state_.step, options_.keep);
}

}  // namespace zg
