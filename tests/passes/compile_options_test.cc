#include "framework/passes/compile_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace zg {
namespace {

std::string ErrorOf(const std::function<void(CompileOptions&)>& set, int num_ranks = 4) {
  CompileOptions config;
  set(config);
  return config.Resolve(num_ranks).status().message();
}

CompileOptions Resolved(const std::function<void(CompileOptions&)>& set, int num_ranks = 4) {
  CompileOptions config;
  set(config);
  StatusOr<CompileOptions> resolved = config.Resolve(num_ranks);
  EXPECT_TRUE(resolved.ok()) << resolved.status().message();
  return resolved.ok() ? *resolved : CompileOptions{};
}

TEST(CompileOptionsTest, DefaultsToStage0AndOneMicroBatchPerRank) {
  const CompileOptions resolved = Resolved([](CompileOptions&) {});
  EXPECT_EQ(resolved.zero.stage, 0);
  EXPECT_EQ(resolved.zero.bucket_bytes, 16 * 1024 * 1024);
  EXPECT_EQ(resolved.zero.shard_min_elements, 0);
  EXPECT_EQ(resolved.micro_batches, 4);
  EXPECT_EQ(resolved.reduce_every, ReduceEvery::kMicroBatch);
  EXPECT_TRUE(resolved.recompute.empty());
}

TEST(CompileOptionsTest, KeepsWhatIsSet) {
  const CompileOptions resolved = Resolved([](CompileOptions& config) {
    config.enable_zero({.stage = 2, .bucket_bytes = 4096, .shard_min_elements = 7});
    config.micro_batches = 12;
    config.reduce_every = ReduceEvery::kStep;
    config.recompute = {"blocks.*,head", "tail"};
  });
  EXPECT_EQ(resolved.reduce_every, ReduceEvery::kStep);
  EXPECT_EQ(resolved.recompute, (std::vector<std::string>{"blocks.*,head", "tail"}));
  EXPECT_EQ(resolved.zero.stage, 2);
  EXPECT_EQ(resolved.zero.bucket_bytes, 4096);
  EXPECT_EQ(resolved.zero.shard_min_elements, 7);
  EXPECT_EQ(resolved.micro_batches, 12);
}

TEST(CompileOptionsTest, ReadsOneFlowsForm) {
  const CompileOptions defaults = Resolved([](CompileOptions& config) { config.enable_zero(); });
  EXPECT_EQ(defaults.zero.stage, 2);
  EXPECT_EQ(defaults.zero.shard_min_elements, 4 * 1024) << "4 ranks' shards of 1024";

  const CompileOptions stage3 =
      Resolved([](CompileOptions& config) { config.enable_zero(true, 3, 10); });
  EXPECT_EQ(stage3.zero.stage, 3);
  EXPECT_EQ(stage3.zero.shard_min_elements, 40);

  EXPECT_EQ(Resolved([](CompileOptions& config) { config.enable_zero(false, 3); }).zero.stage, 0);
}

TEST(CompileOptionsTest, TheLastEnableZeroCounts) {
  const CompileOptions resolved = Resolved([](CompileOptions& config) {
    config.enable_zero(true, 3);
    config.enable_zero({.stage = 1});
  });
  EXPECT_EQ(resolved.zero.stage, 1);
  EXPECT_EQ(resolved.zero.shard_min_elements, 0);
}

TEST(CompileOptionsTest, ReadsOneFlowsSwitches) {
  const auto stage_of = [](bool mode, bool compute_stream, bool no_group_boxing) {
    return Resolved([=](CompileOptions& config) {
             if (mode) config.set_zero_redundancy_optimizer_mode("distributed_split");
             if (compute_stream) config.enable_use_compute_stream(true);
             if (no_group_boxing) config.disable_group_boxing_by_dst_parallel(true);
           })
        .zero.stage;
  };
  EXPECT_EQ(stage_of(true, false, false), 1);
  EXPECT_EQ(stage_of(true, true, false), 2);
  EXPECT_EQ(stage_of(true, true, true), 3);
  EXPECT_EQ(
      Resolved([](CompileOptions& config) { config.enable_use_compute_stream(false); }).zero.stage,
      0);
}

TEST(CompileOptionsTest, BothWaysMayAgree) {
  const CompileOptions resolved = Resolved([](CompileOptions& config) {
    config.enable_zero({.stage = 1, .shard_min_elements = 5});
    config.set_zero_redundancy_optimizer_mode("distributed_split");
  });
  EXPECT_EQ(resolved.zero.stage, 1);
  EXPECT_EQ(resolved.zero.shard_min_elements, 5);
}

TEST(CompileOptionsTest, RejectsBothWaysDisagreeing) {
  EXPECT_EQ(ErrorOf([](CompileOptions& config) {
              config.enable_zero({.stage = 2});
              config.set_zero_redundancy_optimizer_mode("distributed_split");
            }),
            "zero.stage is 2, but set_zero_redundancy_optimizer_mode and its companions ask for "
            "stage 1; remove one of the two");
}

TEST(CompileOptionsTest, RejectsSwitchesWithoutThoseBefore) {
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.enable_use_compute_stream(); }),
            "enable_use_compute_stream(true), ZeRO stage 2, needs "
            "set_zero_redundancy_optimizer_mode(\"distributed_split\") as well");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.disable_group_boxing_by_dst_parallel(); }),
            "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3, needs "
            "set_zero_redundancy_optimizer_mode(\"distributed_split\") as well");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) {
              config.set_zero_redundancy_optimizer_mode("distributed_split");
              config.disable_group_boxing_by_dst_parallel();
            }),
            "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3, needs "
            "enable_use_compute_stream(true) as well");
}

TEST(CompileOptionsTest, RejectsAnotherMode) {
  EXPECT_EQ(ErrorOf([](CompileOptions& config) {
              config.set_zero_redundancy_optimizer_mode("non_distributed");
            }),
            "set_zero_redundancy_optimizer_mode: got \"non_distributed\", expected "
            "\"distributed_split\"");
}

TEST(CompileOptionsTest, RejectsValuesOutOfRange) {
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.enable_zero({.stage = 4}); }),
            "zero.stage: got 4, expected 0, 1, 2 or 3");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.zero.place("blocks.*", 4); }),
            "zero.place: blocks.*: got stage 4, expected 0, 1, 2 or 3");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) {
              config.zero.stage = 2;
              config.zero.secondary_axis = "shard";
            }),
            "zero.secondary_axis: got shard, but stage 2 keeps parameters whole, and nothing is "
            "gathered; use it with stage 3");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.enable_zero({.stage = -1}); }),
            "zero.stage: got -1, expected 0, 1, 2 or 3");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.enable_zero({.bucket_bytes = 0}); }),
            "zero.bucket_bytes: got 0, expected at least 1");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.enable_zero({.shard_min_elements = -1}); }),
            "zero.shard_min_elements: got -1, expected 0 or more");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.enable_zero(true, 4); }),
            "zero.stage: got 4, expected 0, 1, 2 or 3");
  EXPECT_EQ(
      ErrorOf([](CompileOptions& config) { config.enable_zero(true, 2, -1); }),
      "zero.min_elements_per_shard: got -1, expected 0 or more, as the elements of one rank's "
      "shard");
  EXPECT_EQ(ErrorOf([](CompileOptions&) {}, 0), "got 0 ranks, expected at least 1");
}

TEST(CompileOptionsTest, ClipsGradientsWhenAsked) {
  EXPECT_EQ(Resolved([](CompileOptions&) {}).max_grad_norm, 0.0);
  EXPECT_EQ(Resolved([](CompileOptions& config) { config.max_grad_norm = 0.5; }).max_grad_norm,
            0.5);
}

TEST(CompileOptionsTest, RejectsNormsThatCannotBe) {
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.max_grad_norm = -1; }),
            "max_grad_norm: got -1, expected a finite number > 0, or 0 for no limit");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) {
              config.max_grad_norm = std::numeric_limits<double>::quiet_NaN();
            }),
            "max_grad_norm: got nan, expected a finite number > 0, or 0 for no limit");
}

TEST(CompileOptionsTest, RejectsPatternsThatNoModuleHas) {
  EXPECT_EQ(
      ErrorOf([](CompileOptions& config) { config.f32_modules = {"blocks."}; }),
      "f32_modules: got 'blocks.', expected the path of a module or parameter: letters, digits, "
      "'_' and '*' in parts joined by '.', such as blocks.*");
  EXPECT_EQ(
      ErrorOf([](CompileOptions& config) { config.recompute = {"blocks."}; }),
      "recompute: got 'blocks.', expected the path of a module or parameter: letters, digits, "
      "'_' and '*' in parts joined by '.', such as blocks.*");
}

TEST(CompileOptionsTest, EnumsPrintAndParseThemselves) {
  EXPECT_EQ(EnumName(ReduceEvery::kStep), "step");
  EXPECT_EQ(ParseEnum<ReduceEvery>("micro-batch"), ReduceEvery::kMicroBatch);
  EXPECT_EQ(ParseEnum<OnNonFinite>("ignore"), OnNonFinite::kIgnore);
  EXPECT_FALSE(ParseEnum<OnNonFinite>("").has_value());
}

TEST(CompileOptionsTest, StopsWhenALossIsNotFiniteUnlessToldOtherwise) {
  CompileOptions config;
  EXPECT_EQ(config.Resolve(2)->on_non_finite, OnNonFinite::kStop);
  config.on_non_finite = OnNonFinite::kIgnore;
  EXPECT_EQ(config.Resolve(2)->on_non_finite, OnNonFinite::kIgnore);
}

TEST(CompileOptionsTest, RejectsEarlyUpdatesThatMayHaveToBeSkipped) {
  EXPECT_EQ(
      ErrorOf([](CompileOptions& config) {
        config.update_early = true;
        config.on_non_finite = OnNonFinite::kSkip;
      }),
      "update_early: on_non_finite = kSkip needs all gradients before the first update; leave "
      "one of the two out");
}

TEST(CompileOptionsTest, RejectsMicroBatchesThatRanksCannotShare) {
  EXPECT_EQ(
      ErrorOf([](CompileOptions& config) {
        config.micro_batches = 8;
        config.update_early = true;
      }),
      "update_early: every rank computes 2 micro-batches per step, and gradients are complete "
      "after the last only; use one per rank or updates at the step's end");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.micro_batches = -1; }),
            "micro_batches: got -1, expected at least 1, or 0 for one per rank");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.micro_batches = int64_t{1} << 40; }),
            "micro_batches: got 1099511627776, expected at most 16777216");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.micro_batches = 6; }),
            "micro_batches: 6 micro-batches per step do not divide among 4 ranks; use a "
            "multiple of 4, such as 8");
  EXPECT_EQ(ErrorOf([](CompileOptions& config) { config.micro_batches = 2; }, 3),
            "micro_batches: 2 micro-batches per step do not divide among 3 ranks; use a "
            "multiple of 3, such as 3");
}

}  // namespace
}  // namespace zg
