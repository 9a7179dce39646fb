#include "zero/trainer.h"

#include <chrono>
#include <cstring>

#include "framework/comm/available_memory.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"
#include "framework/passes/pass_manager.h"
#include "framework/runtime/plan_program.h"
#include "zero/pipeline.h"
#include "zero/stage_memory.h"

namespace zg::zero {

StatusOr<ResolvedConfig> CompileGraph(Graph& graph, const std::string& dump_directory) {
  ZG_ASSIGN_OR_RETURN(const ResolvedConfig config, graph.Finish());
  PipelineOptions options;
  options.train = graph.optimizer().has_value();
  options.stage = config.zero.stage;
  options.dtype = config.dtype;
  options.recompute = config.recompute;
  options.bucketing = {config.zero.bucket_bytes, config.zero.shard_min_elements};
  options.accumulation = {config.reduce_every == ReduceEvery::kStep};
  options.max_grad_norm = config.max_grad_norm;
  options.skip_non_finite = config.on_non_finite == OnNonFinite::kSkip;
  options.update_early = config.update_early;
  if (options.train) {
    ZG_ASSIGN_OR_RETURN(options.update, optim::MakeUpdateRule(*graph.optimizer()));
  }
  PassManagerOptions manager_options;
  manager_options.dump_directory = dump_directory;
  PassManager manager(MakePipeline(options), manager_options);
  ZG_RETURN_IF_ERROR(manager.Run(graph.ir()));
  return config;
}

namespace {

// Adds to the error of an arena that does not fit with which stage it would, if any.
Status WithStageThatFits(const Status& error, const ir::Graph& graph, const KernelRegistry& kernels,
                         const ZeroConfig& zero, Communicator& communicator) {
  const StatusOr<ProgramPlan> plan = PlanProgram(graph, kernels, communicator.arena().workspace_bytes());
  const StatusOr<DeviceMemoryUse> use = communicator.device().MemoryUse();
  if (!plan.ok() || !use.ok()) return error;
  StageMemory memory;
  memory.stage = zero.stage;
  memory.ranks = communicator.size();
  memory.arena_bytes = plan->memory.arena_bytes;
  memory.category_bytes = plan->memory.category_bytes;
  memory.bucket_bytes = zero.bucket_bytes;
  int64_t available_bytes = use->free_bytes;
  if (communicator.device().is_host()) {  // as if all ranks were on this one
    const StatusOr<AvailableMemory> available = ReadAvailableMemory();
    if (!available.ok()) return error;
    available_bytes = available->bytes / communicator.size();
  }
  const std::string hint = StageHint(memory, available_bytes);
  if (hint.empty()) return error;
  return Status(error.code(), error.message() + "\n  hint: " + hint);
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Compile(Graph& graph, Communicator& communicator,
                                                    const TrainerOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Trainer> trainer(new Trainer());
  // One rank's dumps are enough: the program is the same everywhere.
  ZG_ASSIGN_OR_RETURN(trainer->config_,
                      CompileGraph(graph, communicator.rank() == 0 ? options.dump_directory : ""));
  ExecutorOptions executor_options;
  executor_options.seed = options.seed;
  executor_options.measure_memory = options.measure_memory;
  // Overflow is an everyday thing in f16: the loss scaler deals with it.
  executor_options.stop_on_non_finite =
      trainer->config_.dtype != DType::kF16 && trainer->config_.on_non_finite == OnNonFinite::kStop;
  executor_options.detect_anomaly = options.detect_anomaly;
  if (options.profile) executor_options.profile_clock = SteadyNanoseconds;
  executor_options.record = options.record;
  const KernelRegistry* kernels = options.kernels;
  if (options.tf32 && communicator.device().is_host()) {
    return InvalidArgument(
        "graph {}: --tf32 is for the tensor cores of a GPU; leave it out, or run with --device "
        "cuda",
        graph.ir().name());
  }
  if (kernels == nullptr) {
    kernels = communicator.device().is_host() ? &CpuKernels() : &CudaKernels(options.tf32);
  }
  StatusOr<std::unique_ptr<Executor>> executor =
      Executor::Create(&graph.ir(), *kernels, &communicator, executor_options);
  if (!executor.ok()) {
    return WithStageThatFits(executor.status(), graph.ir(), *kernels, trainer->config_.zero,
                             communicator);
  }
  trainer->executor_ = std::move(*executor);
  ZG_RETURN_IF_ERROR(trainer->FillSettings(graph, options.seed));
  ZG_RETURN_IF_ERROR(InitializeTensors(*trainer->executor_, options.seed));
  if (!options.init_path.empty()) {
    ZG_RETURN_IF_ERROR(LoadParameters(*trainer->executor_, options.init_path));
  }
  if (options.detect_anomaly) {
    ZG_RETURN_IF_ERROR(ExchangeStatus(communicator, "check initial values",
                                      CheckFiniteTensors(*trainer->executor_)));
  }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  trainer->compile_ms_ = elapsed.count();
  return trainer;
}

StatusOr<float> Trainer::Scalar(std::string_view name) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::byte>* bytes, executor_->Output("", name));
  float value = 0;
  std::memcpy(&value, bytes->data(), sizeof(value));
  return value;
}

StatusOr<float> Trainer::Step(const std::function<Status(int64_t micro_batch)>& feed) {
  const Communicator& communicator = executor_->communicator();
  ++step_;
  ZG_RETURN_IF_ERROR(executor_->RunStep(step_, lr_factor_, [&](int64_t micro_step) {
    return feed(micro_step * communicator.size() + communicator.rank());
  }));
  // Where the program needs it: to clip, for the scale of f16, to skip updates.
  if (config_.max_grad_norm > 0 || config_.dtype == DType::kF16 ||
      config_.on_non_finite == OnNonFinite::kSkip) {
    ZG_ASSIGN_OR_RETURN(grad_norm_, Scalar("grad_norm"));
  }
  return Scalar("loss");
}

StatusOr<float> Trainer::Step(std::initializer_list<NamedData> data) {
  if (config_.micro_batches != executor_->communicator().size()) {
    return InvalidArgument(
        "a step has {} micro-batches per rank: give Step a function that feeds each of them",
        config_.micro_batches / executor_->communicator().size());
  }
  return Step([&](int64_t) { return Feed(data); });
}

Status Trainer::Feed(std::initializer_list<NamedData> data) {
  for (const NamedData& item : data)
    ZG_RETURN_IF_ERROR(executor_->SetInput("", item.name, item.data, item.bytes));
  return Status::Ok();
}

Status Trainer::Eval(std::string_view name, std::initializer_list<NamedData> data) {
  for (const NamedData& item : data)
    ZG_RETURN_IF_ERROR(executor_->SetInput(name, item.name, item.data, item.bytes));
  return executor_->RunEval(name);
}

StatusOr<std::vector<float>> Trainer::Result(std::string_view eval, std::string_view result) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::byte>* bytes, executor_->Output(eval, result));
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

}  // namespace zg::zero
