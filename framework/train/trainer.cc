#include "framework/train/trainer.h"

#include <fmt/format.h>

#include <cstring>

#include "framework/base/stopwatch.h"
#include "framework/state/eval_result.h"
#include "framework/train/device_kernels.h"

namespace zg {

ExecutorOptions Trainer::ExecutorOptionsFor(const TrainerOptions& options) const {
  ExecutorOptions executor_options;
  executor_options.seed = options.seed;
  executor_options.measure_memory = options.measure_memory;
  // Overflow is an everyday thing in f16: the loss scaler deals with it.
  executor_options.stop_on_non_finite =
      program_.options.dtype != DType::kF16 && program_.options.on_non_finite == OnNonFinite::kStop;
  executor_options.detect_anomaly = options.detect_anomaly;
  if (options.profile || options.trace_steps > 0) {
    executor_options.profile_clock = SteadyNanoseconds;
    executor_options.timeline_steps = options.trace_steps;
  }
  executor_options.gradient_histograms_every = options.gradient_histograms_every;
  executor_options.record = options.record;
  return executor_options;
}

StatusOr<std::unique_ptr<Trainer>> Trainer::create(Program program, Communicator& communicator,
                                                   const TrainerOptions& options) {
  const Stopwatch stopwatch;
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(program)));
  const ir::Graph& graph = trainer->program_.graph;
  const KernelRegistry* kernels = options.kernels;
  if (kernels == nullptr) {
    ZG_ASSIGN_OR_RETURN(kernels, DeviceKernels(communicator.device(), options.tf32));
  }
  ZG_ASSIGN_OR_RETURN(trainer->executor_, Executor::Create(&graph, *kernels, &communicator,
                                                           trainer->ExecutorOptionsFor(options)));
  trainer->has_grad_norm_ = trainer->executor_->HasOutput("grad_norm");
  trainer->settings_ = trainer->program_.settings;
  if (!trainer->settings_.empty()) trainer->settings_["seed"] = fmt::to_string(options.seed);
  ZG_RETURN_IF_ERROR(InitializeTensors(*trainer->executor_, options.seed));
  trainer->detect_anomaly_ = options.detect_anomaly;
  ZG_RETURN_IF_ERROR(trainer->CheckFirstValues());
  trainer->create_ms_ = stopwatch.ms();
  return trainer;
}

Status Trainer::CheckFirstValues() {
  if (!detect_anomaly_) return Status::Ok();
  return ExchangeStatus(executor_->communicator(), "check initial values",
                        CheckFiniteTensors(*executor_));
}

Status Trainer::load_parameters(const std::string& path) {
  ZG_RETURN_IF_ERROR(LoadParameters(*executor_, path));
  return CheckFirstValues();
}

StatusOr<float> Trainer::Scalar(std::string_view name) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::byte>* bytes, executor_->Output(name));
  float value = 0;
  std::memcpy(&value, bytes->data(), sizeof(value));
  return value;
}

StatusOr<float> Trainer::step(const std::function<Status(int64_t micro_batch)>& feed) {
  ++step_;
  ZG_RETURN_IF_ERROR(executor_->RunStep(step_, lr_factor_, feed));
  // Where the program needs it: to clip, for the scale of f16, to skip updates.
  if (has_grad_norm_) {
    ZG_ASSIGN_OR_RETURN(grad_norm_, Scalar("grad_norm"));
  }
  return Scalar("loss");
}

int64_t Trainer::micro_batches_per_rank() const { return executor_->micro_batches_per_rank(); }

StatusOr<float> Trainer::step(std::initializer_list<NamedData> data) {
  if (micro_batches_per_rank() != 1) {
    return InvalidArgument(
        "a step has {} micro-batches per rank: give step() a function that feeds each of them",
        micro_batches_per_rank());
  }
  return step([&](int64_t) { return feed(data); });
}

Status Trainer::feed(std::initializer_list<NamedData> data) {
  for (const NamedData& item : data)
    ZG_RETURN_IF_ERROR(executor_->SetInput("", item.name, item.data, item.bytes));
  return Status::Ok();
}

Status Trainer::eval(std::string_view name, std::initializer_list<NamedData> data) {
  for (const NamedData& item : data)
    ZG_RETURN_IF_ERROR(executor_->SetInput(name, item.name, item.data, item.bytes));
  return executor_->RunEval(name);
}

StatusOr<std::vector<float>> Trainer::local_result(std::string_view eval,
                                                   std::string_view result) const {
  return ReadLocalResult(*executor_, eval, result);
}

StatusOr<std::vector<float>> Trainer::result(std::string_view eval, std::string_view result,
                                             int to) const {
  return GatherResult(*executor_, eval, result, to);
}

}  // namespace zg
