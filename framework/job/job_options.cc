#include "framework/job/job_options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "framework/device/cuda_device.h"
#include "framework/job/report.h"

namespace zg {
namespace {

constexpr int kMaxRanks = 1024;
constexpr double kMaxBucketMb = 1 << 20;
constexpr double kMaxTimeoutSeconds = 7 * 24 * 3600;

}  // namespace

void AddJobFlags(FlagParser* flags, JobOptions* options) {
  flags->Section("Job");
  flags->AddInt("ranks", &options->ranks, Between(1, kMaxRanks),
                "processes; for more than one the program starts mpirun");
  flags->AddInt("ranks-in-process", &options->ranks_in_process, Between(1, kMaxRanks),
                "virtual ranks, the threads of one process, instead of processes: a simulation");
  flags->AddInt("zero", &options->zero_stage, Between(0, 3),
                "shard nothing (0), optimizer state (1), also gradients (2), also parameters (3)",
                "STAGE");
  flags->AddChoice("device", &options->device, {"cpu", "cuda"}, "where the ranks compute");
  flags->AddInt("threads", &options->threads, AtLeast(1), "threads per rank");
  flags->AddDouble("timeout", &options->timeout_s, {0, kMaxTimeoutSeconds, /*without_min=*/true},
                   "how long a rank waits for the others", "SECONDS");

  flags->Section("GPUs");
  flags->AddChoice("gpu-collectives", &options->gpu_collectives, {"nccl", "host"},
                   "how GPUs talk: NCCL, one rank per GPU, or through the host's memory");
  flags->AddBool("fast-reduce", &options->fast_reduce,
                 "NCCL's own sums over ranks: faster, other bits on other numbers of ranks");
  flags->AddBool("cuda-graph", &options->cuda_graph,
                 "record the work of a step once and replay it");
  flags->AddBool("tf32", &options->tf32,
                 "products of f32 by tensor cores, which round operands to 10 bits of mantissa");

  flags->Section("Training");
  flags->AddInt("steps", &options->steps, AtLeast(1), "training steps");
  flags->AddInt("batch", &options->batch, AtLeast(1), "samples per micro-batch");
  flags->AddInt("micro-batches", &options->micro_batches, AtLeast(0),
                "micro-batches per step over all ranks; 0 for one per rank");
  flags->AddChoice("reduce-every", &options->reduce_every, {"micro-batch", "step"},
                   "when gradients are summed over the ranks");
  flags->AddStrings("recompute", &options->recompute,
                    "modules whose activations backward computes again, such as 'blocks.*'",
                    "PATTERN");
  flags->AddChoice("dtype", &options->dtype, {"f32", "bf16", "f16"}, "what is computed in");
  flags->AddInt("seed", &options->seed, AtLeast(0), "of initial values, data order and dropout");
  flags->AddDouble("clip-norm", &options->clip_norm, AtLeast(0),
                   "largest norm of a step's gradients together; 0: any");
  flags->AddChoice("on-non-finite", &options->on_non_finite, {"stop", "skip", "ignore"},
                   "when a loss or gradient is infinite or NaN");
  flags->AddBool("detect-anomaly", &options->detect_anomaly,
                 "check what every node computes, stop at the first infinity or NaN; slow");
  flags->AddBool("profile", &options->profile, "measure what the time of a step goes to, by op");
  flags->AddChoice("lr-schedule", &options->lr_schedule, {"constant", "linear", "cosine"},
                   "how the learning rate goes on after the warm-up");
  flags->AddInt("warmup-steps", &options->warmup_steps, AtLeast(0),
                "steps over which the learning rate rises from 0");
  flags->AddDouble("final-lr-factor", &options->final_lr_factor, Between(0, 1),
                   "of the learning rate at the last step, when it falls");

  flags->Section("ZeRO");
  flags->AddDouble("bucket-mb", &options->bucket_mb, {0, kMaxBucketMb, /*without_min=*/true},
                   "parameters per collective, in units of 2^20 bytes", "MB");
  flags->AddInt("shard-min-elements", &options->shard_min_elements, AtLeast(0),
                "smaller parameters stay whole on every rank");
  flags->AddBool("update-early", &options->update_early,
                 "update parameters during backward, when their gradients are complete");

  flags->Section("Files");
  flags->AddString("init", &options->init, "initial parameters, a .safetensors file", "FILE");
  flags->AddString("save", &options->save, "write checkpoints into this directory", "DIR");
  flags->AddInt("save-every", &options->save_every, AtLeast(0),
                "steps between checkpoints; 0: only one, at the end");
  flags->AddInt("keep", &options->keep, AtLeast(0), "newest checkpoints to keep; 0: all");
  flags->AddBool("save-async", &options->save_async,
                 "save from a copy while training goes on; takes memory for the copy");
  flags->AddString("resume", &options->resume,
                   "continue from the checkpoint here, or the latest one here", "DIR");
  flags->AddString("report", &options->report, "write a JSON report of the run", "FILE");
  flags->AddString("print-ir", &options->print_ir, "write the graph after every compiler pass",
                   "DIR");
}

Status CheckSchedule(const FlagParser& flags, const JobOptions& options) {
  if (flags.IsGiven("final-lr-factor") && options.lr_schedule == "constant") {
    return InvalidArgument(
        "--final-lr-factor: got {}, but --lr-schedule constant keeps the learning rate; give "
        "linear or cosine",
        options.final_lr_factor);
  }
  if (flags.IsGiven("warmup-steps") && options.warmup_steps > options.steps) {
    return InvalidArgument(
        "--warmup-steps: got {}, expected at most the {} --steps: the learning rate would not "
        "reach its value",
        options.warmup_steps, options.steps);
  }
  return Status::Ok();
}

Status CheckNonFinite(const FlagParser& flags, const JobOptions& options) {
  if (options.dtype != "f16" || !flags.IsGiven("on-non-finite")) return Status::Ok();
  return InvalidArgument(
      "--on-non-finite: got '{}', but with --dtype f16 the loss scaler leaves out updates that are "
      "not finite; leave the flag out",
      options.on_non_finite);
}

Status CheckSaving(const FlagParser& flags, const JobOptions& options) {
  for (const char* flag : {"save-every", "keep", "save-async"}) {
    if (flags.IsGiven(flag) && options.save.empty()) {
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
  for (const char* flag : {"gpu-collectives", "fast-reduce", "cuda-graph", "tf32"}) {
    if (flags.IsGiven(flag) && options.device != "cuda") {
      return InvalidArgument("--{}: is without effect; give --device cuda as well", flag);
    }
  }
  if (options.fast_reduce && options.gpu_collectives != "nccl") {
    return InvalidArgument(
        "--fast-reduce: the sums are NCCL's, but --gpu-collectives is {}; give one of them",
        options.gpu_collectives);
  }
  if (options.tf32 && options.dtype != "f32") {
    return InvalidArgument("--tf32: is for products of f32, but --dtype is {}; give one of them",
                           options.dtype);
  }
  return Status::Ok();
}

Status CheckSupported(const JobOptions& options) {
  if (options.device == "cuda") ZG_RETURN_IF_ERROR(NumCudaDevices().status());
  if (options.threads != 1) {
    return InvalidArgument(
        "--threads: got {}, but the kernels of this build use one thread per rank; use 1, and "
        "--ranks for more processors",
        options.threads);
  }
  return Status::Ok();
}

Status ResolveForProcesses(int num_processes, JobOptions* options) {
  options->ranks = num_processes;
  if (num_processes > 1 && options->ranks_in_process > 1) {
    return InvalidArgument(
        "--ranks-in-process: got {}, but there are {} processes; ranks are processes or the "
        "threads of one, so give either --ranks or --ranks-in-process",
        options->ranks_in_process, num_processes);
  }
  const int num_ranks = std::max(num_processes, options->ranks_in_process);
  if (options->micro_batches == 0) options->micro_batches = num_ranks;
  if (options->micro_batches % num_ranks != 0) {
    return InvalidArgument(
        "--micro-batches: got {}, expected a multiple of the {} ranks: every rank computes the "
        "same number per step",
        options->micro_batches, num_ranks);
  }
  return Status::Ok();
}

Status CheckPaths(const JobOptions& options) {
  if (!options.init.empty()) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(options.init, error)) {
      return InvalidArgument("--init: {}: {}", options.init,
                             error ? error.message() : "is not a file");
    }
    if (access(options.init.c_str(), R_OK) != 0) {
      return InvalidArgument("--init: {}: {}", options.init, std::strerror(errno));
    }
  }
  if (!options.resume.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(options.resume, error)) {
      return InvalidArgument("--resume: {}: {}", options.resume,
                             error ? error.message() : "is not a directory");
    }
  }
  if (!options.print_ir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.print_ir, error);
    if (error || access(options.print_ir.c_str(), W_OK | X_OK) != 0) {
      return InvalidArgument("--print-ir: {}: {}; expected a directory that can be written",
                             options.print_ir, error ? error.message() : std::strerror(errno));
    }
  }
  if (!options.report.empty()) {
    ZG_RETURN_IF_ERROR(CheckWritable(options.report).WithContext("--report"));
  }
  return Status::Ok();
}

}  // namespace zg
