#include "framework/job/job_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace zg {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

JobOptions Parse(std::vector<const char*> arguments) {
  JobOptions options;
  FlagParser flags("");
  AddJobFlags(&flags, &options);
  arguments.insert(arguments.begin(), "program");
  const StatusOr<bool> help = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(help.ok()) << help.status().message();
  return options;
}

TEST(JobOptions, EveryFlagReachesItsField) {
  const JobOptions options = Parse({"--ranks=2",
                                    "--threads=3",
                                    "--zero=3",
                                    "--mesh=replica=2,shard=3",
                                    "--device=cuda",
                                    "--gpu-collectives=host",
                                    "--fast-reduce",
                                    "--cuda-graph",
                                    "--tf32",
                                    "--gemm-choices=g",
                                    "--dtype=bf16",
                                    "--steps=7",
                                    "--batch=5",
                                    "--micro-batches=6",
                                    "--seed=9",
                                    "--bucket-mb=0.5",
                                    "--shard-min-elements=100",
                                    "--timeout=2.5",
                                    "--reduce-every=step",
                                    "--recompute",
                                    "a.*",
                                    "b,c",
                                    "--init=i",
                                    "--save=s",
                                    "--save-every=11",
                                    "--keep=12",
                                    "--save-async",
                                    "--resume=r",
                                    "--report=p",
                                    "--metrics=m",
                                    "--metrics-histograms=14",
                                    "--trace=t",
                                    "--trace-steps=13",
                                    "--print-ir=d",
                                    "--overlap=64M",
                                    "--max-memory=2GiB",
                                    "--clip-norm=0.5",
                                    "--on-non-finite=skip",
                                    "--detect-anomaly",
                                    "--profile",
                                    "--lr-schedule=linear",
                                    "--warmup-steps=3",
                                    "--final-lr-factor=0.25"});
  EXPECT_EQ(options.ranks, 2);
  EXPECT_EQ(options.compile.zero.stage, 3);
  EXPECT_EQ(Mesh(options.compile.mesh).ToString(), "replica=2,shard=3");
  EXPECT_EQ(options.device, "cuda");
  EXPECT_EQ(options.gpu_collectives, "host");
  EXPECT_TRUE(options.fast_reduce);
  EXPECT_TRUE(options.cuda_graph);
  EXPECT_TRUE(options.tf32);
  EXPECT_EQ(options.gemm_choices, "g");
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.compile.dtype, DType::kBF16);
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.batch, 5);
  EXPECT_EQ(options.compile.micro_batches, 6);
  EXPECT_EQ(options.seed, 9);
  EXPECT_EQ(options.compile.zero.bucket_bytes, 1 << 19);
  EXPECT_EQ(options.compile.zero.shard_min_elements, 100);
  EXPECT_EQ(options.timeout_s, 2.5);
  EXPECT_EQ(options.compile.reduce_every, ReduceEvery::kStep);
  EXPECT_EQ(options.compile.recompute, (std::vector<std::string>{"a.*", "b,c"}));
  EXPECT_EQ(options.init, "i");
  EXPECT_EQ(options.save, "s");
  EXPECT_EQ(options.save_every, 11);
  EXPECT_EQ(options.keep, 12);
  EXPECT_TRUE(options.save_async);
  EXPECT_EQ(options.resume, "r");
  EXPECT_EQ(options.report, "p");
  EXPECT_EQ(options.metrics, "m");
  EXPECT_EQ(options.metrics_histograms, 14);
  EXPECT_EQ(options.trace, "t");
  EXPECT_EQ(options.trace_steps, 13);
  EXPECT_EQ(options.compile.dump_directory, "d");
  EXPECT_EQ(options.compile.max_grad_norm, 0.5);
  EXPECT_EQ(options.compile.overlap_bytes, 64'000'000);
  EXPECT_EQ(options.compile.max_memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(options.compile.on_non_finite, OnNonFinite::kSkip);
  EXPECT_TRUE(options.detect_anomaly);
  EXPECT_TRUE(options.profile);
  EXPECT_EQ(options.lr_schedule, "linear");
  EXPECT_EQ(options.warmup_steps, 3);
  EXPECT_EQ(options.final_lr_factor, 0.25);
}

// The error for --steps 10 and these flags.
std::string ScheduleError(std::vector<const char*> arguments) {
  JobOptions options;
  FlagParser flags("");
  AddJobFlags(&flags, &options);
  arguments.insert(arguments.begin(), {"program", "--steps=10"});
  const StatusOr<bool> help = flags.parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(help.ok()) << help.status().message();
  return CheckSchedule(flags, options).message();
}

// The result of resolving the flags for so many processes.
Status ResolveError(std::vector<const char*> arguments, int num_processes,
                    JobOptions* options = nullptr) {
  JobOptions own;
  if (options == nullptr) options = &own;
  FlagParser flags("");
  AddJobFlags(&flags, options);
  arguments.insert(arguments.begin(), "program");
  EXPECT_TRUE(flags.parse(static_cast<int>(arguments.size()), arguments.data()).ok());
  return ResolveForProcesses(flags, num_processes, options);
}

TEST(JobOptions, APolicyThatTheLossScalerOverridesIsAnError) {
  EXPECT_TRUE(ResolveError({"--dtype=f16"}, 1).ok());
  EXPECT_TRUE(ResolveError({"--dtype=bf16", "--on-non-finite=skip"}, 1).ok());
  EXPECT_EQ(
      ResolveError({"--dtype=f16", "--on-non-finite=ignore"}, 1).message(),
      "--on-non-finite: got 'ignore', but with --dtype f16 the loss scaler leaves out updates "
      "that are not finite; leave the flag out");
}

TEST(JobOptions, FilesOfAPlanNeedThePlan) {
  const auto check = [](std::vector<const char*> arguments) {
    JobOptions options;
    FlagParser flags("");
    AddJobFlags(&flags, &options);
    arguments.insert(arguments.begin(), "program");
    EXPECT_TRUE(flags.parse(static_cast<int>(arguments.size()), arguments.data()).ok());
    return CheckPlan(flags, options).message();
  };
  EXPECT_EQ(check({"--plan", "--json=a", "--html=b"}), "");
  EXPECT_EQ(check({"--json=a"}), "--json: is without effect; give --plan as well");
  EXPECT_EQ(check({"--html=a"}), "--html: is without effect; give --plan as well");
  EXPECT_EQ(check({"--prices=a"}), "");  // for --overlap auto
}

TEST(JobOptions, FlagsOfTheScheduleWithoutEffectAreErrors) {
  EXPECT_EQ(ScheduleError({}), "");
  EXPECT_EQ(ScheduleError({"--lr-schedule=linear", "--final-lr-factor=0", "--warmup-steps=10"}),
            "");
  EXPECT_EQ(ScheduleError({"--final-lr-factor=0.5"}),
            "--final-lr-factor: got 0.5, but --lr-schedule constant keeps the learning rate; give "
            "linear or cosine");
  EXPECT_EQ(ScheduleError({"--warmup-steps=11"}),
            "--warmup-steps: got 11, expected at most the 10 --steps: the learning rate would not "
            "reach its value");
}

TEST(JobOptions, WhatIsNotBuiltIsAnError) {
  EXPECT_TRUE(CheckSupported(Parse({})).ok());
  // No GPU, regardless of this build and this machine.
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(CheckSupported(Parse({"--device=cuda"})).message(),
              AllOf(HasSubstr("`device=cuda`: "), HasSubstr("use `device=cpu`")));
  EXPECT_TRUE(CheckSupported(Parse({"--dtype=f16"})).ok());
  EXPECT_TRUE(CheckSupported(Parse({"--save=x", "--resume=x"})).ok());
}

TEST(JobOptions, FlagsOfGpusThatDoNotGoTogether) {
  const auto check = [](std::vector<const char*> arguments) {
    JobOptions options;
    FlagParser flags("");
    AddJobFlags(&flags, &options);
    arguments.insert(arguments.begin(), "program");
    EXPECT_TRUE(flags.parse(static_cast<int>(arguments.size()), arguments.data()).ok());
    return CheckGpuFlags(flags, options).message();
  };
  EXPECT_EQ(check({}), "");
  EXPECT_EQ(check({"--device=cuda", "--fast-reduce", "--cuda-graph"}), "");
  EXPECT_EQ(check({"--device=cuda", "--gpu-collectives=host", "--cuda-graph"}), "");
  EXPECT_EQ(check({"--cuda-graph"}), "--cuda-graph: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--tf32"}), "");
  EXPECT_EQ(check({"--tf32"}), "--tf32: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--gemm-choices=g"}), "");
  EXPECT_EQ(check({"--gemm-choices=g"}),
            "--gemm-choices: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--threads=1"}), "");
  EXPECT_EQ(check({"--device=cpu", "--threads=2"}), "");
  EXPECT_EQ(check({"--device=cuda", "--threads=2"}),
            "--threads: got 2, but the ranks compute on GPUs (--device cuda); leave it out");
  EXPECT_EQ(check({"--device=cuda", "--tf32", "--dtype=bf16"}),
            "--tf32: is for products of f32, but --dtype is bf16; give one of them");
  EXPECT_EQ(check({"--gpu-collectives=nccl"}),
            "--gpu-collectives: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--fast-reduce"}), "");
  EXPECT_EQ(check({"--device=cuda", "--gpu-collectives=peer", "--fast-reduce"}),
            "--fast-reduce: the sums are NCCL's, but --gpu-collectives is peer; give one of them");
  EXPECT_EQ(check({"--device=cuda", "--gpu-collectives=host", "--fast-reduce"}),
            "--fast-reduce: the sums are NCCL's, but --gpu-collectives is host; give one of them");
}

TEST(JobOptions, FlagsOfSavingThatDoNotGoTogether) {
  const auto check = [](std::vector<const char*> arguments) {
    JobOptions options;
    FlagParser flags("");
    AddJobFlags(&flags, &options);
    arguments.insert(arguments.begin(), "program");
    EXPECT_TRUE(flags.parse(static_cast<int>(arguments.size()), arguments.data()).ok());
    return CheckSaving(flags, options).message();
  };
  EXPECT_EQ(check({}), "");
  EXPECT_EQ(check({"--save=a", "--save-every=2", "--keep=1", "--resume=b"}), "");
  EXPECT_EQ(check({"--save-every=2"}), "--save-every: is without effect; give --save DIR as well");
  EXPECT_EQ(check({"--keep=2"}), "--keep: is without effect; give --save DIR as well");
  EXPECT_EQ(check({"--save-async"}), "--save-async: is without effect; give --save DIR as well");
  EXPECT_EQ(check({"--init=a", "--resume=b"}),
            "--init: got a, but --resume b brings the parameters; give one of them");
}

TEST(JobOptions, MicroBatchesAreSpreadOverTheRanks) {
  JobOptions options;
  EXPECT_TRUE(ResolveError({}, 3, &options).ok());
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.compile.micro_batches, 3);
  options = JobOptions();
  EXPECT_TRUE(ResolveError({"--micro-batches=12"}, 4, &options).ok());
  EXPECT_EQ(options.compile.micro_batches, 12);
  EXPECT_EQ(ResolveError({"--micro-batches=12"}, 5).message(),
            "--micro-batches: got 12, expected a multiple of the 5 ranks: every rank computes the "
            "same number per step");
}

TEST(JobOptions, AMeshHasAsManyRanksAsTheJob) {
  EXPECT_TRUE(ResolveError({"--mesh=replica=2,shard=2"}, 4).ok());
  EXPECT_TRUE(ResolveError({"--mesh=replica=2,shard=2", "--ranks-in-process=4"}, 1).ok());
  EXPECT_EQ(ResolveError({"--mesh=replica=2,shard=2"}, 2).message(),
            "--mesh: got replica=2,shard=2, which are 4 ranks, but the job has 2; give --ranks 4");
  JobOptions of_program;
  of_program.compile.mesh = {{"shard", 3}};
  EXPECT_EQ(ResolveError({}, 2, &of_program).message(),
            "graph.config().mesh: got shard=3, which are 3 ranks, but the job has 2; give --ranks "
            "3");
}

TEST(JobOptions, VirtualRanksAreRanksOfOneProcess) {
  JobOptions options;
  EXPECT_TRUE(ResolveError({"--ranks-in-process=1000"}, 1, &options).ok());
  EXPECT_EQ(options.ranks, 1);
  EXPECT_EQ(options.ranks_in_process, 1000);
  EXPECT_EQ(options.compile.micro_batches, 1000);
  EXPECT_THAT(ResolveError({"--ranks-in-process=4", "--micro-batches=6"}, 1).message(),
              HasSubstr("--micro-batches: got 6, expected a multiple of the 4 ranks"));
  EXPECT_EQ(ResolveError({"--ranks-in-process=4"}, 2).message(),
            "--ranks-in-process: got 4, but there are 2 processes; ranks are processes or the "
            "threads of one, so give either --ranks or --ranks-in-process");
}

TEST(JobOptions, PathsAreCheckedAndNothingIsLeftBehind) {
  const std::string directory = testing::TempDir() + "/job_options_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  JobOptions options;
  EXPECT_TRUE(CheckPaths(options).ok());
  options.report = directory + "/report.json";
  EXPECT_TRUE(CheckPaths(options).ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  options.report = directory + "/none/report.json";
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("--report: "));
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("does not exist; create it first"));

  options = JobOptions();
  options.report = directory + "/a.json";
  options.trace = directory + "/../job_options_test/a.json";
  EXPECT_EQ(CheckPaths(options).message(), "--trace: got " + options.trace +
                                               ", which --report writes, too; give each a file of "
                                               "its own");

  options = JobOptions();
  options.init = directory + "/none.safetensors";
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("--init: "));
  options.init = directory;  // may be a checkpoint
  EXPECT_TRUE(CheckPaths(options).ok());

  options = JobOptions();
  options.compile.dump_directory = directory + "/a/b";
  EXPECT_TRUE(CheckPaths(options).ok());
  EXPECT_TRUE(std::filesystem::is_directory(options.compile.dump_directory));
  options.compile.dump_directory = "/proc/none";
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("--print-ir: /proc/none: "));

  options = JobOptions();
  options.metrics = "/dev/null";
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("--metrics: /dev/null: "));
}

}  // namespace
}  // namespace zg
