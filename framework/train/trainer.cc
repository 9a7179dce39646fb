#include "framework/train/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "framework/base/catch_exceptions.h"
#include "framework/base/format.h"
#include "framework/base/stopwatch.h"
#include "framework/kernels/device_kernels.h"
#include "framework/passes/category_sizes.h"
#include "framework/state/eval_result.h"
#include "framework/state/save_checkpoint.h"
#include "framework/state/step_result.h"
#include "framework/train/measured_gemms.h"
#include "framework/train/order_of_sums.h"

namespace zg {
namespace {

constexpr int64_t kMaxTraceSteps = 1000;  // all their events are kept

Status CheckOptions(const TrainerOptions& options) {
  if (options.trace_steps < 0 || options.trace_steps > kMaxTraceSteps) {
    return InvalidArgument("trace_steps: got {}, expected 0 to {}", options.trace_steps,
                           kMaxTraceSteps);
  }
  if (options.gradient_histograms_every >= 0) return Status::Ok();
  return InvalidArgument("gradient_histograms_every: got {}, expected a number of steps, or 0",
                         options.gradient_histograms_every);
}

void LogPlan(const std::string& graph, const MemoryPlan& plan) {
  if (!spdlog::should_log(spdlog::level::debug)) return;
  spdlog::debug("plan of {}: an arena of {} for {}, at most {}", graph,
                FormatBytes(plan.arena_bytes),
                Counted(static_cast<int64_t>(plan.buffers.size()), "buffer"), CategorySizes(plan));
}

}  // namespace

Trainer::Trainer(Program program) : program_(std::move(program)) {}
Trainer::~Trainer() = default;

void Trainer::set_compiler(std::unique_ptr<Graph> graph, Compiler compile) {
  graph_ = std::move(graph);
  compile_ = std::move(compile);
}

void Trainer::set_setting(const std::string& name, std::string value) {
  settings_[name] = std::move(value);
}

ExecutorOptions Trainer::ExecutorOptionsFor(const Program& program) const {
  ExecutorOptions options;
  options.seed = options_.seed;
  options.measure_memory = options_.measure_memory;
  // Overflow is normal in f16: the loss scaler handles it.
  options.stop_on_non_finite =
      program.options.dtype != DType::kF16 && program.options.on_non_finite == OnNonFinite::kStop;
  options.detect_anomaly = options_.detect_anomaly;
  if (options_.profile || options_.trace_steps > 0) {
    options.profile_clock = SteadyNanoseconds;
    options.timeline_steps = options_.trace_steps;
  }
  options.gradient_histograms_every = options_.gradient_histograms_every;
  options.record = options_.record;
  options.memory = &program.memory;
  options.variant = program.variant;
  options.unused_inputs = program.unused_inputs;
  options.arena_of = executor_.get();  // null for the first one
  return options;
}

StatusOr<std::unique_ptr<Trainer>> Trainer::create(Program program, Communicator& communicator,
                                                   const TrainerOptions& options) {
  const Stopwatch stopwatch;
  ZG_RETURN_IF_ERROR(CheckOptions(options));
  const Communicator::Call call(communicator);
  ZG_RETURN_IF_ERROR(call.status());
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(program)));
  trainer->options_ = options;
  trainer->communicator_ = &communicator;
  if (communicator.arena().is_used()) {
    StatusOr<std::unique_ptr<Communicator>> own = communicator.Duplicate();
    if (!own.ok()) return own.status().WithContext("a trainer beside another one");
    trainer->own_communicator_ = *std::move(own);
    trainer->communicator_ = trainer->own_communicator_.get();
  }
  trainer->kernels_ = options.kernels;
  if (options.measured_gemms != nullptr) {
    trainer->kernels_ = &options.measured_gemms->kernels();
  } else if (options.kernels == nullptr) {
    ZG_ASSIGN_OR_RETURN(trainer->kernels_,
                        DeviceKernels(communicator.device(), {options.tf32, options.threads}));
  }
  trainer->arithmetic_ = options.arithmetic.empty()
                             ? ArithmeticOf(communicator.device(), trainer->program_.options.dtype)
                             : options.arithmetic;
  ZG_RETURN_IF_ERROR(trainer->MakeExecutors());
  trainer->settings_ = trainer->program_.settings;
  trainer->skipped_.resize(trainer->program_.group_names.size());
  if (!trainer->settings_.empty()) trainer->settings_["seed"] = fmt::to_string(options.seed);
  ZG_RETURN_IF_ERROR(trainer->CheckFirstValues());
  trainer->create_ms_ = stopwatch.ms();
  return trainer;
}

StatusOr<std::unique_ptr<Executor>> Trainer::MakeExecutor(const Program& program) {
  ZG_ASSIGN_OR_RETURN(
      std::unique_ptr<Executor> executor,
      Executor::Create(&program.graph, *kernels_, communicator_, ExecutorOptionsFor(program)));
  LogPlan(program.graph.name(), executor->plan());
  return executor;
}

Status Trainer::MakeExecutors() {
  if (options_.measured_gemms != nullptr) options_.measured_gemms->ForgetFound();
  ZG_ASSIGN_OR_RETURN(executor_, MakeExecutor(program_));
  for (const Program& other : program_.other_variants) {
    ZG_ASSIGN_OR_RETURN(others_.emplace_back(), MakeExecutor(other));
  }
  if (options_.measured_gemms != nullptr) {
    ZG_RETURN_IF_ERROR(options_.measured_gemms->CheckComplete());
  }
  stepping_ = stepped_ = executor_.get();
  has_stepped_ = false;
  if (variant_.is_only()) variant_ = program_.variant;
  ZG_RETURN_IF_ERROR(SetVariant("", variant_));
  has_grad_norm_ = executor_->HasOutput("grad_norm");
  return ExchangeStatus(executor_->communicator(), "set initial values",
                        InitializeTensors(*executor_, options_.seed));
}

void Trainer::ForgetExecutors() {
  stepping_ = stepped_ = nullptr;
  others_.clear();
  executor_.reset();
}

std::vector<const Executor*> Trainer::executors() const {
  std::vector<const Executor*> all;
  for (const auto& executor : others_) all.push_back(executor.get());
  all.push_back(executor_.get());
  return all;
}

Status Trainer::CheckBetweenSteps(std::string_view function) const {
  if (!is_in_step_) return Status::Ok();
  return FailedPrecondition("{}: got a call within step {}; call it between steps", function,
                            step_);
}

Status Trainer::CheckHasStepped(std::string_view result) const {
  ZG_RETURN_IF_ERROR(stepped_->Output(result).status());
  if (has_stepped_) return Status::Ok();
  return FailedPrecondition(
      "graph {}: the result \"{}\" of training is not there: no step has run yet; take one first",
      program_.graph.name(), result);
}

Status Trainer::SetVariant(const char* function, const Variant& variant) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps(function));
  Executor* found = program_.variant == variant ? executor_.get() : nullptr;
  std::vector<std::string> known = {program_.variant.ToString()};
  for (size_t i = 0; i < others_.size(); ++i) {
    known.push_back(program_.other_variants[i].variant.ToString());
    if (program_.other_variants[i].variant == variant) found = others_[i].get();
  }
  if (found == nullptr) {
    return InvalidArgument("{}: got {}, but the graph has {}", function, variant.ToString(),
                           program_.variant.is_only()
                               ? fmt::format("one training function; give {} to Graph::train",
                                             variant.phase.empty() ? "its sizes" : "several")
                               : fmt::format("{}", fmt::join(known, ", ")));
  }
  stepping_ = found;
  variant_ = variant;
  return Status::Ok();
}

Status Trainer::set_size(int64_t size) { return SetVariant("set_size", {size, ""}); }

Status Trainer::set_phase(const std::string& phase) { return SetVariant("set_phase", {0, phase}); }

const Program& Trainer::stepping_program() const {
  for (const Program& other : program_.other_variants) {
    if (other.variant == variant_) return other;
  }
  return program_;
}

std::optional<std::string> Trainer::note(const std::string& name) const {
  const auto found = notes_.find(name);
  return found == notes_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

std::string Trainer::arithmetic() const {
  std::string arithmetic = arithmetic_ + OrderOfSums(program_);
  if (options_.measured_gemms == nullptr) return arithmetic;
  return arithmetic + ", " + options_.measured_gemms->arithmetic();
}

Status Trainer::CheckFirstValues() {
  if (!options_.detect_anomaly) return Status::Ok();
  return ExchangeStatus(executor_->communicator(), "check initial values",
                        CheckFiniteTensors(*executor_));
}

Status Trainer::load_parameters(const std::string& path, const std::string& may_lack,
                                const std::string& may_skip, const NameInFile& name_in_file) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("load_parameters"));
  ZG_ASSIGN_OR_RETURN(const std::vector<ScopePattern> lacking, OptionalScopePatterns(may_lack));
  ZG_ASSIGN_OR_RETURN(const std::vector<ScopePattern> skipped, OptionalScopePatterns(may_skip));
  ZG_RETURN_IF_ERROR(LoadParameters(*executor_, path, lacking, skipped, name_in_file));
  return CheckFirstValues();
}

StatusOr<float> Trainer::Scalar(std::string_view name) const {
  ZG_ASSIGN_OR_RETURN(const OutputSlot* output, stepped_->Output(name));
  float value = 0;
  std::memcpy(&value, output->data.data(), sizeof(value));
  return value;
}

StatusOr<float> Trainer::RunStep(const std::function<Status(int64_t micro_batch)>& feed,
                                 const std::string& names, const std::vector<bool>& is_named) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps(names.empty() ? "step" : "step_groups"));
  if (!(lr_factor_ >= 0.0 && std::isfinite(lr_factor_))) {
    return InvalidArgument(
        "step {}: got a learning rate factor of {}, expected a finite number >= 0", step_ + 1,
        lr_factor_);
  }
  if (!feed) {
    return InvalidArgument("step {}: got an empty function that feeds the micro-batches",
                           step_ + 1);
  }
  const std::vector<int64_t> skipped_before = skipped_;
  ++step_;
  stepped_ = stepping_;
  is_in_step_ = true;
  const auto catching = [&](int64_t micro_batch) {
    return CatchExceptions("feeding data", [&] { return feed(micro_batch); });
  };
  const Status status =
      stepped_->RunStep(step_, lr_factor_, catching, {names, NumberUpdates(is_named)});
  is_in_step_ = false;
  if (!status.ok()) {
    --step_;
    skipped_ = skipped_before;
    return status;
  }
  has_stepped_ = true;
  // If the program needs it: to clip, for the scale of f16, to skip updates.
  if (has_grad_norm_) {
    ZG_ASSIGN_OR_RETURN(grad_norm_, Scalar("grad_norm"));
  }
  return Scalar("loss");
}

int Trainer::data_rank() const {
  return executor_->graph().mesh().DataIndex(executor_->communicator().rank());
}

StatusOr<TrafficCounters> Trainer::step_traffic() const {
  ZG_ASSIGN_OR_RETURN(TrafficCounters traffic, executor_->StepTraffic());
  AddDifference({}, traffic_before_changes_, &traffic);
  return traffic;
}

int Trainer::num_data_ranks() const { return executor_->graph().mesh().num_data_ranks(); }

int64_t Trainer::micro_batches_per_rank() const { return executor_->micro_batches_per_rank(); }

Status Trainer::CheckFeeds() const {
  if (is_in_step_) return Status::Ok();
  return FailedPrecondition(
      "feed: no step is being taken; call it from the function given to step");
}

Status Trainer::FeedOne(const NamedData& item, bool is_copied) {
  return stepping_->SetInput("", item.name, item.dtype, item.data, item.bytes, is_copied);
}

Status Trainer::feed(std::initializer_list<NamedData> data) {
  ZG_RETURN_IF_ERROR(CheckFeeds());
  for (const NamedData& item : data) ZG_RETURN_IF_ERROR(FeedOne(item, /*is_copied=*/true));
  return Status::Ok();
}

Status Trainer::feed(const std::vector<NamedData>& data) {
  ZG_RETURN_IF_ERROR(CheckFeeds());
  for (const NamedData& item : data) ZG_RETURN_IF_ERROR(FeedOne(item, /*is_copied=*/true));
  return Status::Ok();
}

Status Trainer::eval(std::string_view name, const std::vector<NamedData>& data) {
  ZG_RETURN_IF_ERROR(CheckBetweenSteps("eval"));  // it would overwrite sums of gradients
  for (const NamedData& item : data) {
    const Status set = executor_->SetInput(name, item.name, item.dtype, item.data, item.bytes);
    if (set.ok()) continue;
    executor_->ForgetInputs(name);
    return set;
  }
  if (eval_runs_after_ != step_) eval_runs_.clear();
  eval_runs_after_ = step_;
  return executor_->RunEval(name, {step_, eval_runs_[std::string(name)]++});
}

StatusOr<std::vector<float>> Trainer::local_step_result(std::string_view result) const {
  ZG_RETURN_IF_ERROR(CheckHasStepped(result));
  return ReadLocalStepResult(*stepped_, result);
}

StatusOr<std::vector<float>> Trainer::step_result(std::string_view result, int to) const {
  ZG_RETURN_IF_ERROR(CheckHasStepped(result));
  return GatherStepResult(*stepped_, result, to);
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
