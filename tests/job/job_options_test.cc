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
  const StatusOr<bool> help = flags.Parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(help.ok()) << help.status().message();
  return options;
}

TEST(JobOptions, EveryFlagReachesItsField) {
  const JobOptions options = Parse({"--ranks=2",
                                    "--zero=3",
                                    "--device=cuda",
                                    "--gpu-collectives=host",
                                    "--fast-reduce",
                                    "--cuda-graph",
                                    "--tf32",
                                    "--dtype=bf16",
                                    "--steps=7",
                                    "--batch=5",
                                    "--micro-batches=6",
                                    "--seed=9",
                                    "--threads=4",
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
                                    "--print-ir=d",
                                    "--clip-norm=0.5",
                                    "--on-non-finite=skip",
                                    "--detect-anomaly",
                                    "--profile",
                                    "--lr-schedule=linear",
                                    "--warmup-steps=3",
                                    "--final-lr-factor=0.25"});
  EXPECT_EQ(options.ranks, 2);
  EXPECT_EQ(options.zero_stage, 3);
  EXPECT_EQ(options.device, "cuda");
  EXPECT_EQ(options.gpu_collectives, "host");
  EXPECT_TRUE(options.fast_reduce);
  EXPECT_TRUE(options.cuda_graph);
  EXPECT_TRUE(options.tf32);
  EXPECT_EQ(options.dtype, "bf16");
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.batch, 5);
  EXPECT_EQ(options.micro_batches, 6);
  EXPECT_EQ(options.seed, 9);
  EXPECT_EQ(options.threads, 4);
  EXPECT_EQ(options.bucket_bytes(), 1 << 19);
  EXPECT_EQ(options.shard_min_elements, 100);
  EXPECT_EQ(options.timeout_s, 2.5);
  EXPECT_EQ(options.reduce_every, "step");
  EXPECT_EQ(options.recompute, (std::vector<std::string>{"a.*", "b,c"}));
  EXPECT_EQ(options.init, "i");
  EXPECT_EQ(options.save, "s");
  EXPECT_EQ(options.save_every, 11);
  EXPECT_EQ(options.keep, 12);
  EXPECT_TRUE(options.save_async);
  EXPECT_EQ(options.resume, "r");
  EXPECT_EQ(options.report, "p");
  EXPECT_EQ(options.print_ir, "d");
  EXPECT_EQ(options.clip_norm, 0.5);
  EXPECT_EQ(options.on_non_finite, "skip");
  EXPECT_TRUE(options.detect_anomaly);
  EXPECT_TRUE(options.profile);
  EXPECT_EQ(options.lr_schedule, "linear");
  EXPECT_EQ(options.warmup_steps, 3);
  EXPECT_EQ(options.final_lr_factor, 0.25);
}

// Of --steps 10 and these flags.
std::string ScheduleError(std::vector<const char*> arguments) {
  JobOptions options;
  FlagParser flags("");
  AddJobFlags(&flags, &options);
  arguments.insert(arguments.begin(), {"program", "--steps=10"});
  const StatusOr<bool> help = flags.Parse(static_cast<int>(arguments.size()), arguments.data());
  EXPECT_TRUE(help.ok()) << help.status().message();
  return CheckSchedule(flags, options).message();
}

TEST(JobOptions, APolicyThatTheLossScalerOverridesIsAnError) {
  const auto error = [](std::vector<const char*> arguments) {
    JobOptions options;
    FlagParser flags("");
    AddJobFlags(&flags, &options);
    arguments.insert(arguments.begin(), "program");
    EXPECT_TRUE(flags.Parse(static_cast<int>(arguments.size()), arguments.data()).ok());
    return CheckNonFinite(flags, options).message();
  };
  EXPECT_EQ(error({"--dtype=f16"}), "");
  EXPECT_EQ(error({"--dtype=bf16", "--on-non-finite=skip"}), "");
  EXPECT_EQ(
      error({"--dtype=f16", "--on-non-finite=ignore"}),
      "--on-non-finite: got 'ignore', but with --dtype f16 the loss scaler leaves out updates "
      "that are not finite; leave the flag out");
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
  // No GPU, whatever this build and this machine have.
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(CheckSupported(Parse({"--device=cuda"})).message(),
              AllOf(HasSubstr("--device cuda: "), HasSubstr("use --device cpu")));
  EXPECT_TRUE(CheckSupported(Parse({"--dtype=f16"})).ok());
  EXPECT_THAT(CheckSupported(Parse({"--threads=2"})).message(),
              HasSubstr("--threads: got 2, but the kernels of this build use one thread"));
  EXPECT_TRUE(CheckSupported(Parse({"--save=x", "--resume=x"})).ok());
}

TEST(JobOptions, FlagsOfGpusThatDoNotGoTogether) {
  const auto check = [](std::vector<const char*> arguments) {
    JobOptions options;
    FlagParser flags("");
    AddJobFlags(&flags, &options);
    arguments.insert(arguments.begin(), "program");
    EXPECT_TRUE(flags.Parse(static_cast<int>(arguments.size()), arguments.data()).ok());
    return CheckGpuFlags(flags, options).message();
  };
  EXPECT_EQ(check({}), "");
  EXPECT_EQ(check({"--device=cuda", "--fast-reduce", "--cuda-graph"}), "");
  EXPECT_EQ(check({"--device=cuda", "--gpu-collectives=host", "--cuda-graph"}), "");
  EXPECT_EQ(check({"--cuda-graph"}), "--cuda-graph: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--tf32"}), "");
  EXPECT_EQ(check({"--tf32"}), "--tf32: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--tf32", "--dtype=bf16"}),
            "--tf32: is for products of f32, but --dtype is bf16; give one of them");
  EXPECT_EQ(check({"--gpu-collectives=nccl"}),
            "--gpu-collectives: is without effect; give --device cuda as well");
  EXPECT_EQ(check({"--device=cuda", "--gpu-collectives=host", "--fast-reduce"}),
            "--fast-reduce: the sums are NCCL's, but --gpu-collectives is host; give one of them");
}

TEST(JobOptions, FlagsOfSavingThatDoNotGoTogether) {
  const auto check = [](std::vector<const char*> arguments) {
    JobOptions options;
    FlagParser flags("");
    AddJobFlags(&flags, &options);
    arguments.insert(arguments.begin(), "program");
    EXPECT_TRUE(flags.Parse(static_cast<int>(arguments.size()), arguments.data()).ok());
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
  JobOptions options = Parse({});
  EXPECT_TRUE(ResolveForProcesses(3, &options).ok());
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.micro_batches, 3);

  options = Parse({"--micro-batches=12"});
  EXPECT_TRUE(ResolveForProcesses(4, &options).ok());
  EXPECT_EQ(options.micro_batches, 12);
  EXPECT_EQ(ResolveForProcesses(5, &options).message(),
            "--micro-batches: got 12, expected a multiple of the 5 ranks: every rank computes the "
            "same number per step");
}

TEST(JobOptions, VirtualRanksAreRanksOfOneProcess) {
  JobOptions options = Parse({"--ranks-in-process=1000"});
  EXPECT_TRUE(ResolveForProcesses(1, &options).ok());
  EXPECT_EQ(options.ranks, 1);
  EXPECT_EQ(options.ranks_in_process, 1000);
  EXPECT_EQ(options.micro_batches, 1000);

  options = Parse({"--ranks-in-process=4", "--micro-batches=6"});
  EXPECT_THAT(ResolveForProcesses(1, &options).message(),
              HasSubstr("--micro-batches: got 6, expected a multiple of the 4 ranks"));
  EXPECT_EQ(ResolveForProcesses(2, &options).message(),
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
  options.init = directory + "/none.safetensors";
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("--init: "));
  options.init = directory;
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("is not a file"));

  options = JobOptions();
  options.print_ir = directory + "/a/b";
  EXPECT_TRUE(CheckPaths(options).ok());
  EXPECT_TRUE(std::filesystem::is_directory(options.print_ir));
  options.print_ir = "/proc/none";
  EXPECT_THAT(CheckPaths(options).message(), HasSubstr("--print-ir: /proc/none: "));
}

}  // namespace
}  // namespace zg
