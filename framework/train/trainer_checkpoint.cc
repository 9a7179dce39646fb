// Saving and resuming: the parts of a trainer that a checkpoint holds.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <iterator>

#include "framework/base/check.h"
#include "framework/base/format.h"
#include "framework/io/checkpoint_reader.h"
#include "framework/passes/control_tensors.h"
#include "framework/state/save_checkpoint.h"
#include "framework/state/tensor_state.h"
#include "framework/train/trainer.h"

namespace zg {
namespace {

void LogFiles(const CheckpointReader& checkpoint) {
  if (!spdlog::should_log(spdlog::level::debug)) return;
  struct Content {
    int64_t num_tensors = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string_view, Content> files;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    Content& content = files[tensor.file];
    ++content.num_tensors;
    content.bytes += tensor.entry->size_bytes();
  }
  for (const auto& [file, content] : files) {
    spdlog::debug("`resume`: {}/{}: {}, {}", checkpoint.directory(), file,
                  Counted(content.num_tensors, "tensor"),
                  FormatBytes(static_cast<int64_t>(content.bytes)));
  }
}

// There are no f32 masters of parameters that are not trained and read in 16 bits, unless they may be
// unfrozen (CompileOptions::round_frozen).
void WarnOfRoundedParameters(const Executor& executor) {
  if (executor.communicator().rank() != 0) return;
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), TensorRole::kParameter)) {
    if (tensor->type.dtype == DType::kF32) continue;
    const std::string_view dtype = DTypeName(tensor->type.dtype);
    spdlog::warn(
        "graph {}: the checkpoint has parameters rounded to {}, such as '{}', since that is how the "
        "graph, which does not train them, holds them; to save them in f32, set the graph's dtype to "
        "f32, or leave out round_frozen",
        executor.graph().name(), dtype, tensor->name);
    return;
  }
}

}  // namespace

int64_t Trainer::num_updates() const {
  for (const ControlTensor& counting : kControlTensors) {
    const ir::StoredTensor* tensor = executor_->graph().FindTensor(counting.name);
    if (tensor == nullptr) continue;
    const StatusOr<LocalPart> part = executor_->LocalPartOf(*tensor);
    if (part.ok() && part->count != counting.elements) return 0;  // another rank's
    float state[kMaxControlElements];
    const Status status = ReadLocalElements(
        *executor_, *tensor, 0, counting.elements,
        [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) {
          std::memcpy(reinterpret_cast<std::byte*>(state) + offset_bytes, data, size_bytes);
          return Status::Ok();
        });
    ZG_CHECK(status.ok(), "reading memory fails: {}", status.message());
    return static_cast<int64_t>(state[counting.updates]);
  }
  return step_;
}

Status Trainer::prepare_saving(const std::string& directory) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("prepare_saving"));
  if (directory.empty()) {
    return InvalidArgument("saving: got the directory \"\", expected the path of one");
  }
  if (save_directory_ == directory) return Status::Ok();
  ZG_RETURN_IF_ERROR(CheckNoneIsUnderWay());  // it holds the previous directory
  Communicator& communicator = executor_->communicator();
  Status status;
  if (communicator.rank() == 0) {
    store_.reset();  // unlocks the previous one
    StatusOr<CheckpointStore> store = CheckpointStore::Open(directory);
    if (store.ok()) store_ = std::move(*store);
    status = store.status();
  }
  save_directory_.clear();
  ZG_RETURN_IF_ERROR(ExchangeStatus(communicator, "prepare saving", status));
  save_directory_ = directory;
  return Status::Ok();
}

Status Trainer::NotSaved(const std::string& directory, int64_t step, const Status& status) {
  if (status.ok() || directory.empty()) return status;
  const std::optional<std::string> latest = LatestCheckpoint(directory);
  return Status(status.code(), fmt::format("{}: the checkpoint of step {} was not saved: {}\n  {}",
                                           directory, step, status.message(),
                                           latest ? *latest + " is whole and can be resumed"
                                                  : "there is no older one in the directory"));
}

std::unique_ptr<CheckpointSave> Trainer::MakeSave(const SaveOptions& options) {
  WarnOfRoundedParameters(*executor_);
  const TrainState state = {
      executor_->graph().name(), step_, num_updates(), settings_, arithmetic(),
      skipped_steps(),           notes_};
  return std::make_unique<CheckpointSave>(*executor_, store_ ? &*store_ : nullptr, state, options);
}

Status Trainer::save(const std::string& directory, const SaveOptions& options) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("save"));
  Status status = CheckNoneIsUnderWay();
  if (status.ok()) status = prepare_saving(directory);
  if (status.ok()) status = MakeSave(options)->Run();
  return NotSaved(directory, step_, status);
}

Status Trainer::reserve_for_saving() {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("reserve_for_saving"));
  if (save_memory_.data != nullptr) return Status::Ok();
  Communicator& communicator = executor_->communicator();
  ZG_ASSIGN_OR_RETURN(
      save_memory_,
      AllocateSaveMemory(communicator, CheckpointBytesOf(executor_->graph(), communicator.rank())));
  return Status::Ok();
}

Status Trainer::CheckNoneIsUnderWay() const {
  if (const std::optional<int64_t> step = saving_step(); step.has_value()) {
    return FailedPrecondition("the checkpoint of step {} is still being saved; call finish_saving",
                              *step);
  }
  return Status::Ok();
}

void Trainer::AwaitSave() {
  if (save_ == nullptr) return;
  ended_save_ = EndedSave{save_->step(), save_->Finish()};
  save_.reset();
}

Status Trainer::start_saving(const std::string& directory, const SaveOptions& options) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("start_saving"));
  Status status = CheckNoneIsUnderWay();
  if (status.ok()) status = prepare_saving(directory);
  if (status.ok()) status = reserve_for_saving();
  if (status.ok()) {
    save_ = MakeSave(options);
    status = save_->Start(save_memory_.data.get());
    if (!status.ok()) save_.reset();
  }
  return NotSaved(directory, step_, status);
}

StatusOr<bool> Trainer::continue_saving() {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("continue_saving"));
  if (save_ == nullptr) {
    ZG_RETURN_IF_ERROR(finish_saving());
    return true;
  }
  const StatusOr<bool> has_ended = save_->Continue();
  const int64_t step = save_->step();
  if (!has_ended.ok() || *has_ended) save_.reset();
  ZG_RETURN_IF_ERROR(NotSaved(save_directory_, step, has_ended.status()));
  return *has_ended;
}

Status Trainer::finish_saving() {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("finish_saving"));
  AwaitSave();
  const std::optional<EndedSave> ended = std::exchange(ended_save_, std::nullopt);
  return ended ? NotSaved(save_directory_, ended->step, ended->status) : Status::Ok();
}

std::optional<int64_t> Trainer::saving_step() const {
  if (ended_save_) return ended_save_->step;
  if (save_ == nullptr) return std::nullopt;
  return save_->step();
}

Status Trainer::resume(const std::string& path, const std::vector<optim::ParameterGroup>& groups) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("resume"));
  Communicator& communicator = executor_->communicator();
  const auto agree = [&](const Status& mine) {
    return ExchangeStatus(communicator, "resume", mine);
  };
  StatusOr<CheckpointReader> opened = CheckpointReader::Open(path);
  ZG_RETURN_IF_ERROR(agree(opened.status()));
  const CheckpointReader& checkpoint = *opened;
  LogFiles(checkpoint);
  const TrainState& state = checkpoint.state();
  ZG_RETURN_IF_ERROR(RepeatChanges(state.settings, groups));
  std::map<std::string, std::string> then = state.settings;
  std::map<std::string, std::string> now = settings_;
  then["model"] = state.model;
  now["model"] = executor_->graph().name();
  ZG_RETURN_IF_ERROR(agree(CheckSameSettings(checkpoint.directory(), then, now)));
  ZG_RETURN_IF_ERROR(agree(checkpoint.CheckData(communicator.rank(), communicator.size())));

  TensorsInFile tensors;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    tensors[name] = {tensor.entry, tensor.data, /*is_mapped=*/true};
  }
  SafetensorsEntry fresh_entries[std::size(kControlTensors)];
  float fresh_values[std::size(kControlTensors)][kMaxControlElements] = {};
  for (size_t i = 0; i < std::size(kControlTensors); ++i) {
    const ControlTensor& counting = kControlTensors[i];
    fresh_entries[i].shape = {counting.elements};
    fresh_values[i][counting.updates] = static_cast<float>(state.updates);
    if (executor_->graph().FindTensor(counting.name) == nullptr) {
      tensors.erase(counting.name);
    } else if (tensors.count(counting.name) == 0) {
      tensors[counting.name] = {&fresh_entries[i],
                                reinterpret_cast<const uint8_t*>(fresh_values[i]),
                                /*is_mapped=*/false};
    }
  }
  ZG_RETURN_IF_ERROR(
      agree(LoadTensors(*executor_, checkpoint.directory(),
                        {TensorRole::kParameter, TensorRole::kOptimizerState}, tensors)));
  step_ = state.step;
  eval_runs_.clear();
  notes_ = state.notes;
  ZG_RETURN_IF_ERROR(set_skipped_steps(state.skipped_steps));
  const bool is_other = !state.arithmetic.empty() && state.arithmetic != arithmetic();
  if (is_other && communicator.rank() == 0) {
    spdlog::warn("{} was computed by {}, this run goes on by {}: with other bits than that run's",
                 checkpoint.directory(), state.arithmetic, arithmetic());
  }
  return Status::Ok();
}

}  // namespace zg
