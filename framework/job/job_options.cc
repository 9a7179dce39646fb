#include "framework/job/job_options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "framework/device/cuda_device.h"
#include "framework/job/compile_flags.h"
#include "framework/job/logging.h"
#include "framework/job/report.h"

namespace zg {
namespace {

constexpr int kMaxRanks = 1024;
constexpr int kMaxThreads = 1024;
constexpr int kMaxTraceSteps = 1000;
constexpr double kMaxTimeoutSeconds = 7 * 24 * 3600;

Status MakeDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && access(path.c_str(), W_OK | X_OK) == 0) return Status::Ok();
  return InvalidArgument("{}: {}; expected a directory that can be written", path,
                         error ? error.message() : std::strerror(errno));
}

}  // namespace

void AddJobFlags(FlagParser* flags, JobOptions* options) {
  flags->section("Job");
  flags->add_int("ranks", &options->ranks, between(1, kMaxRanks),
                 "processes; for more than one the program starts mpirun");
  flags->add_int("ranks-in-process", &options->ranks_in_process, between(1, kMaxRanks),
                 "virtual ranks, the threads of one process, instead of processes: a simulation");
  flags->add_choice("device", &options->device, {"cpu", "cuda"}, "where the ranks compute");
  flags->add_int("threads", &options->threads, between(1, kMaxThreads),
                 "threads of each rank that compute together; the bits are those of one");
  flags->add_double("timeout", &options->timeout_s, {0, kMaxTimeoutSeconds, /*without_min=*/true},
                    "how long a rank waits for the others", "SECONDS");
  flags->add_choice("log-level", &options->log_level, LogLevels(),
                    "what is logged on standard error");

  flags->section("GPUs");
  flags->add_choice(
      "gpu-collectives", &options->gpu_collectives, {"auto", "peer", "nccl", "host"},
      "how GPUs talk: peer memory if they can map it, else NCCL; or through the host");
  flags->add_bool("fast-reduce", &options->fast_reduce,
                  "NCCL's own sums over ranks: faster, other bits on other numbers of ranks");
  flags->add_bool("cuda-graph", &options->cuda_graph,
                  "record the work of a step once and replay it");
  flags->add_bool("tf32", &options->tf32,
                  "products of f32 by tensor cores, which round operands to 10 bits of mantissa");
  flags->add_string("gemm-choices", &options->gemm_choices,
                    "fastest algorithms of cuBLASLt; what this file lacks is measured and added",
                    "FILE");

  flags->section("Training");
  flags->add_int("steps", &options->steps, at_least(1), "training steps");
  flags->add_int("batch", &options->batch, at_least(1), "samples per micro-batch");
  flags->add_int("seed", &options->seed, at_least(0), "of initial values, data order and dropout");
  flags->add_bool("detect-anomaly", &options->detect_anomaly,
                  "check what every node computes, stop at the first infinity or NaN; slow");
  flags->add_bool("profile", &options->profile,
                  "measure what the time of a step goes to, by op and module");
  flags->add_choice("lr-schedule", &options->lr_schedule, {"constant", "linear", "cosine"},
                    "how the learning rate goes on after the warm-up");
  flags->add_int("warmup-steps", &options->warmup_steps, at_least(0),
                 "steps over which the learning rate rises from 0");
  flags->add_double("final-lr-factor", &options->final_lr_factor, between(0, 1),
                    "of the learning rate at the last step, when it falls");

  AddCompileFlags(flags, &options->compile);

  flags->section("Files");
  flags->add_string(
      "init", &options->init,
      "initial parameters: a .safetensors file, or a directory with shards or a checkpoint",
      "PATH");
  flags->add_string("save", &options->save, "write checkpoints into this directory", "DIR");
  flags->add_int("save-every", &options->save_every, at_least(0),
                 "steps between checkpoints; 0: only one, at the end");
  flags->add_int("keep", &options->keep, at_least(0), "newest checkpoints to keep; 0: all");
  flags->add_bool("save-async", &options->save_async,
                  "save from a copy while training goes on; takes memory for the copy");
  flags->add_string("resume", &options->resume,
                    "continue from the checkpoint here, or the latest one here", "DIR");
  flags->add_string("report", &options->report, "write a JSON report of the run", "FILE");
  flags->add_string("metrics", &options->metrics,
                    "write every step's numbers here, as JSON lines and for TensorBoard", "DIR");
  flags->add_int("metrics-histograms", &options->metrics_histograms, at_least(0),
                 "steps between histograms of gradients, for TensorBoard; 0: none");
  flags->add_string("trace", &options->trace,
                    "write what each rank did when, for Perfetto or chrome://tracing", "FILE");
  flags->add_int("trace-steps", &options->trace_steps, between(1, kMaxTraceSteps),
                 "first steps that the trace shows");

  flags->section("Plan");
  flags->add_bool("plan", &options->plan,
                  "print what the job will hold, send and compute, and end without running it");
  flags->add_string("json", &options->json, "write the plan as one JSON object", "FILE");
  flags->add_string("html", &options->html,
                    "write the plan as a page with memory over time and the schedule", "FILE");
  flags->add_string(
      "prices", &options->prices,
      "times of the plan, and of --overlap auto, by this --report of a run with --profile", "FILE");
  flags->add_string(
      "explain", &options->explain,
      "print instead why a value of the program, or all, lies on the ranks as it does", "VALUE");
}

Status CheckSchedule(const FlagParser& flags, const JobOptions& options) {
  if (flags.is_given("final-lr-factor") && options.lr_schedule == "constant") {
    return InvalidArgument(
        "--final-lr-factor: got {}, but --lr-schedule constant keeps the learning rate; give "
        "linear or cosine",
        options.final_lr_factor);
  }
  if (flags.is_given("warmup-steps") && options.warmup_steps > options.steps) {
    return InvalidArgument(
        "--warmup-steps: got {}, expected at most the {} --steps: the learning rate would not "
        "reach its value",
        options.warmup_steps, options.steps);
  }
  return Status::Ok();
}

Status CheckSaving(const FlagParser& flags, const JobOptions& options) {
  for (const char* flag : {"save-every", "keep", "save-async"}) {
    if (flags.is_given(flag) && options.save.empty()) {
      return InvalidArgument("--{}: is without effect; give --save DIR as well", flag);
    }
  }
  if (!options.init.empty() && !options.resume.empty()) {
    return InvalidArgument(
        "--init: got {}, but --resume {} brings the parameters; give one of them", options.init,
        options.resume);
  }
  return Status::Ok();
}

Status CheckGpuFlags(const FlagParser& flags, const JobOptions& options) {
  for (const char* flag :
       {"gpu-collectives", "fast-reduce", "cuda-graph", "tf32", "gemm-choices"}) {
    if (flags.is_given(flag) && options.device != "cuda") {
      return InvalidArgument("--{}: is without effect; give --device cuda as well", flag);
    }
  }
  if (options.threads > 1 && options.device == "cuda") {
    return InvalidArgument(
        "--threads: got {}, but the ranks compute on GPUs (--device cuda); leave it out",
        options.threads);
  }
  if (options.fast_reduce && options.gpu_collectives != "auto" &&
      options.gpu_collectives != "nccl") {
    return InvalidArgument(
        "--fast-reduce: the sums are NCCL's, but --gpu-collectives is {}; give one of them",
        options.gpu_collectives);
  }
  if (options.tf32 && options.compile.dtype != DType::kF32) {
    return InvalidArgument("--tf32: is for products of f32, but --dtype is {}; give one of them",
                           DTypeName(options.compile.dtype));
  }
  return Status::Ok();
}

Status CheckSupported(const JobOptions& options) {
  if (options.device == "cuda") ZG_RETURN_IF_ERROR(NumCudaDevices().status());
  return Status::Ok();
}

Status CheckObserving(const FlagParser& flags, const JobOptions& options) {
  if (flags.is_given("trace-steps") && options.trace.empty()) {
    return InvalidArgument("--trace-steps: is without effect; give --trace FILE as well");
  }
  if (flags.is_given("metrics-histograms") && options.metrics.empty()) {
    return InvalidArgument("--metrics-histograms: is without effect; give --metrics DIR as well");
  }
  return Status::Ok();
}

Status CheckPlan(const FlagParser& flags, const JobOptions& options) {
  for (const char* flag : {"json", "html", "explain"}) {
    if (flags.is_given(flag) && !options.plan) {
      return InvalidArgument("--{}: is without effect; give --plan as well", flag);
    }
  }
  return Status::Ok();
}

Status ResolveForProcesses(const FlagParser& flags, int num_processes, JobOptions* options) {
  options->ranks = num_processes;
  if (num_processes > 1 && options->ranks_in_process > 1) {
    return InvalidArgument(
        "--ranks-in-process: got {}, but there are {} processes; ranks are processes or the "
        "threads of one, so give either --ranks or --ranks-in-process",
        options->ranks_in_process, num_processes);
  }
  return ResolveCompileFlags(flags, std::max(num_processes, options->ranks_in_process),
                             &options->compile);
}

Status CheckPaths(const JobOptions& options) {
  if (!options.init.empty() && access(options.init.c_str(), R_OK) != 0) {
    return InvalidArgument("--init: {}: {}", options.init, std::strerror(errno));
  }
  if (!options.resume.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(options.resume, error)) {
      return InvalidArgument("--resume: {}: {}", options.resume,
                             error ? error.message() : "is not a directory");
    }
  }
  for (const auto& [flag, path] :
       {std::pair<const char*, const std::string&>("--print-ir", options.compile.dump_directory),
        {"--metrics", options.metrics}}) {
    if (!path.empty()) ZG_RETURN_IF_ERROR(MakeDirectory(path).WithContext(flag));
  }
  std::map<std::filesystem::path, const char*> flag_by_file;
  for (const auto& [flag, path] :
       {std::pair<const char*, const std::string&>("--report", options.report),
        {"--gemm-choices", options.gemm_choices},
        {"--json", options.json},
        {"--html", options.html},
        {"--trace", options.trace}}) {
    if (path.empty()) continue;
    ZG_RETURN_IF_ERROR(CheckWritable(path).WithContext(flag));
    std::error_code error;
    const auto [other, is_new] =
        flag_by_file.emplace(std::filesystem::weakly_canonical(path, error), flag);
    if (is_new) continue;
    return InvalidArgument("{}: got {}, which {} writes, too; give each a file of its own", flag,
                           path, other->second);
  }
  return Status::Ok();
}

}  // namespace zg
