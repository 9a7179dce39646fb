// Saving and resuming: what of a trainer is in a checkpoint.

#include <fmt/format.h>

#include <cstring>

#include "framework/base/check.h"
#include "framework/io/checkpoint_reader.h"
#include "framework/passes/scale_loss.h"
#include "zero/trainer.h"

namespace zg::zero {
namespace {

constexpr int kScalerElements = 4;
constexpr int kScalerUpdates = 2;  // its element that counts updates (ops/loss_scaling.h)

std::string OptimizerText(const optim::UpdateRule& rule) {
  std::string text = rule.op;
  for (const auto& [name, value] : rule.attributes.items()) {
    text += fmt::format(" {}={}", name, ToString(value));
  }
  return text;
}

// The training inputs of one micro-batch: "x: i64[8,256], y: i64[8,256]".
std::string InputsText(const zg::Graph& graph) {
  std::string text;
  for (const Node* node : graph.section(SectionKind::kForward)->nodes) {
    if (node->op->name != "input") continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", node->attributes.String("name"),
                        graph.LocalType(*node->outputs[0]).ToString());
  }
  return text;
}

}  // namespace

Status Trainer::FillSettings(const nn::Graph& graph, uint64_t seed) {
  if (!graph.optimizer()) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const optim::UpdateRule rule, optim::MakeUpdateRule(*graph.optimizer()));
  settings_["seed"] = fmt::to_string(seed);
  settings_["optimizer"] = OptimizerText(rule);
  settings_["micro-batches"] = fmt::to_string(config_.micro_batches);
  settings_["clip-norm"] = fmt::to_string(config_.max_grad_norm);
  settings_["reduce-every"] =
      config_.reduce_every == nn::ReduceEvery::kStep ? "step" : "micro-batch";
  settings_["inputs"] = InputsText(graph.ir());
  return Status::Ok();
}

int64_t Trainer::NumUpdates() const {
  const StoredTensor* scaler = executor_->graph().FindTensor(kLossScaler);
  if (scaler == nullptr) return step_;
  const Executor::LocalPart part = executor_->LocalPartOf(*scaler);
  if (part.count != kScalerElements) return 0;  // another rank holds it
  float state[kScalerElements];
  const Status status = ReadLocalPart(
      *executor_, *scaler, [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) {
        std::memcpy(reinterpret_cast<std::byte*>(state) + offset_bytes, data, size_bytes);
        return Status::Ok();
      });
  ZG_CHECK(status.ok(), "reading memory fails: {}", status.message());
  return static_cast<int64_t>(state[kScalerUpdates]);
}

Status Trainer::PrepareSaving(const std::string& directory) {
  if (save_directory_ == directory) return Status::Ok();
  Communicator& communicator = executor_->communicator();
  Status status;
  if (communicator.rank() == 0) {
    store_.reset();  // unlocks the one before
    StatusOr<CheckpointStore> store = CheckpointStore::Open(directory);
    if (store.ok()) store_ = std::move(*store);
    status = store.status();
  }
  save_directory_.clear();
  ZG_RETURN_IF_ERROR(ExchangeStatus(communicator, "prepare saving", status));
  save_directory_ = directory;
  return Status::Ok();
}

Status Trainer::Save(const std::string& directory, const SaveOptions& options) {
  Status status = PrepareSaving(directory);
  if (status.ok()) {
    const TrainState state = {executor_->graph().name(), step_, NumUpdates(), settings_};
    status = SaveCheckpoint(*executor_, store_ ? &*store_ : nullptr, state, options);
  }
  if (status.ok()) return status;
  const std::optional<std::string> latest = LatestCheckpoint(directory);
  return Status(status.code(), fmt::format("{}: the checkpoint of step {} was not saved: {}\n  {}",
                                           directory, step_, status.message(),
                                           latest ? *latest + " is whole and can be resumed"
                                                  : "there is no older one in the directory"));
}

Status Trainer::Resume(const std::string& path) {
  Communicator& communicator = executor_->communicator();
  const auto agree = [&](const Status& mine) {
    return ExchangeStatus(communicator, "resume", mine);
  };
  StatusOr<CheckpointReader> opened = CheckpointReader::Open(path);
  ZG_RETURN_IF_ERROR(agree(opened.status()));
  const CheckpointReader& checkpoint = *opened;
  const TrainState& state = checkpoint.state();
  std::map<std::string, std::string> then = state.settings;
  std::map<std::string, std::string> now = settings_;
  then["model"] = state.model;
  now["model"] = executor_->graph().name();
  ZG_RETURN_IF_ERROR(agree(CheckSameSettings(checkpoint.directory(), then, now)));
  ZG_RETURN_IF_ERROR(agree(checkpoint.CheckData(communicator.rank(), communicator.size())));

  TensorsInFile tensors;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    tensors[name] = {tensor.entry, tensor.data};
  }
  // The loss scaler belongs to the number type, which may be another one now.
  SafetensorsEntry fresh_entry;
  fresh_entry.shape = {kScalerElements};
  float fresh_scaler[kScalerElements] = {};
  fresh_scaler[kScalerUpdates] = static_cast<float>(state.updates);
  if (executor_->graph().FindTensor(kLossScaler) == nullptr) {
    tensors.erase(kLossScaler);
  } else if (tensors.count(kLossScaler) == 0) {
    tensors[kLossScaler] = {&fresh_entry, reinterpret_cast<const uint8_t*>(fresh_scaler)};
  }
  ZG_RETURN_IF_ERROR(
      agree(LoadTensors(*executor_, checkpoint.directory(),
                        {TensorRole::kParameter, TensorRole::kOptimizerState}, tensors)));
  step_ = state.step;
  return Status::Ok();
}

}  // namespace zg::zero
