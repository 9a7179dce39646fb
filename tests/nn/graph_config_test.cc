#include "framework/nn/graph_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace zg::nn {
namespace {

std::string ErrorOf(const std::function<void(GraphConfig&)>& set, int num_ranks = 4) {
  GraphConfig config;
  set(config);
  return config.Resolve(num_ranks).status().message();
}

ResolvedConfig Resolved(const std::function<void(GraphConfig&)>& set, int num_ranks = 4) {
  GraphConfig config;
  set(config);
  StatusOr<ResolvedConfig> resolved = config.Resolve(num_ranks);
  EXPECT_TRUE(resolved.ok()) << resolved.status().message();
  return resolved.ok() ? *resolved : ResolvedConfig{};
}

TEST(GraphConfigTest, DefaultsToStage0AndOneMicroBatchPerRank) {
  const ResolvedConfig resolved = Resolved([](GraphConfig&) {});
  EXPECT_EQ(resolved.zero.stage, 0);
  EXPECT_EQ(resolved.zero.bucket_bytes, 16 * 1024 * 1024);
  EXPECT_EQ(resolved.zero.shard_min_elements, 0);
  EXPECT_EQ(resolved.micro_batches, 4);
  EXPECT_EQ(resolved.reduce_every, ReduceEvery::kMicroBatch);
  EXPECT_TRUE(resolved.recompute.empty());
}

TEST(GraphConfigTest, KeepsWhatIsSet) {
  const ResolvedConfig resolved = Resolved([](GraphConfig& config) {
    config.enable_zero({.stage = 2, .bucket_bytes = 4096, .shard_min_elements = 7});
    config.set_micro_batches(12);
    config.set_reduce_every(ReduceEvery::kStep);
    config.recompute("blocks.*,head");
    config.recompute("tail");
  });
  EXPECT_EQ(resolved.reduce_every, ReduceEvery::kStep);
  ASSERT_EQ(resolved.recompute.size(), 3u);
  EXPECT_EQ(resolved.recompute[0].text(), "blocks.*");
  EXPECT_EQ(resolved.recompute[1].text(), "head");
  EXPECT_EQ(resolved.recompute[2].text(), "tail");
  EXPECT_EQ(resolved.zero.stage, 2);
  EXPECT_EQ(resolved.zero.bucket_bytes, 4096);
  EXPECT_EQ(resolved.zero.shard_min_elements, 7);
  EXPECT_EQ(resolved.micro_batches, 12);
}

TEST(GraphConfigTest, ReadsOneFlowsForm) {
  const ResolvedConfig defaults = Resolved([](GraphConfig& config) { config.enable_zero(); });
  EXPECT_EQ(defaults.zero.stage, 2);
  EXPECT_EQ(defaults.zero.shard_min_elements, 4 * 1024) << "4 ranks' shards of 1024";

  const ResolvedConfig stage3 =
      Resolved([](GraphConfig& config) { config.enable_zero(true, 3, 10); });
  EXPECT_EQ(stage3.zero.stage, 3);
  EXPECT_EQ(stage3.zero.shard_min_elements, 40);

  EXPECT_EQ(Resolved([](GraphConfig& config) { config.enable_zero(false, 3); }).zero.stage, 0);
}

TEST(GraphConfigTest, TheLastEnableZeroCounts) {
  const ResolvedConfig resolved = Resolved([](GraphConfig& config) {
    config.enable_zero(true, 3);
    config.enable_zero({.stage = 1});
  });
  EXPECT_EQ(resolved.zero.stage, 1);
  EXPECT_EQ(resolved.zero.shard_min_elements, 0);
}

TEST(GraphConfigTest, ReadsOneFlowsSwitches) {
  const auto stage_of = [](bool mode, bool compute_stream, bool no_group_boxing) {
    return Resolved([=](GraphConfig& config) {
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
      Resolved([](GraphConfig& config) { config.enable_use_compute_stream(false); }).zero.stage, 0);
}

TEST(GraphConfigTest, BothWaysMayAgree) {
  const ResolvedConfig resolved = Resolved([](GraphConfig& config) {
    config.enable_zero({.stage = 1, .shard_min_elements = 5});
    config.set_zero_redundancy_optimizer_mode("distributed_split");
  });
  EXPECT_EQ(resolved.zero.stage, 1);
  EXPECT_EQ(resolved.zero.shard_min_elements, 5);
}

TEST(GraphConfigTest, RejectsBothWaysDisagreeing) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.enable_zero({.stage = 2});
              config.set_zero_redundancy_optimizer_mode("distributed_split");
            }),
            "enable_zero asks for ZeRO stage 2, but set_zero_redundancy_optimizer_mode and its "
            "companions for stage 1; remove one of the two");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.enable_zero(false);
              config.set_zero_redundancy_optimizer_mode("distributed_split");
            }),
            "enable_zero asks for ZeRO stage 0, but set_zero_redundancy_optimizer_mode and its "
            "companions for stage 1; remove one of the two");
}

TEST(GraphConfigTest, RejectsSwitchesWithoutThoseBefore) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_use_compute_stream(); }),
            "enable_use_compute_stream(true), ZeRO stage 2, needs "
            "set_zero_redundancy_optimizer_mode(\"distributed_split\") as well");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.disable_group_boxing_by_dst_parallel(); }),
            "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3, needs "
            "set_zero_redundancy_optimizer_mode(\"distributed_split\") as well");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.set_zero_redundancy_optimizer_mode("distributed_split");
              config.disable_group_boxing_by_dst_parallel();
            }),
            "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3, needs "
            "enable_use_compute_stream(true) as well");
}

TEST(GraphConfigTest, RejectsAnotherMode) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.set_zero_redundancy_optimizer_mode("non_distributed");
            }),
            "set_zero_redundancy_optimizer_mode: got \"non_distributed\", expected "
            "\"distributed_split\"");
}

TEST(GraphConfigTest, RejectsValuesOutOfRange) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_zero({.stage = 4}); }),
            "enable_zero: stage is 4, expected 0, 1, 2 or 3");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_zero({.stage = -1}); }),
            "enable_zero: stage is -1, expected 0, 1, 2 or 3");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_zero({.bucket_bytes = 0}); }),
            "enable_zero: bucket_bytes is 0, expected at least 1");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_zero({.shard_min_elements = -1}); }),
            "enable_zero: shard_min_elements is -1, expected 0 or more");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_zero(true, 0); }),
            "enable_zero(true, ...): stage is 0, expected 1, 2 or 3");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.enable_zero(true, 2, -1); }),
            "enable_zero(true, ...): shard_min_size is -1, expected 0 or more, as the elements of "
            "one rank's shard");
  EXPECT_EQ(ErrorOf([](GraphConfig&) {}, 0), "got 0 ranks, expected at least 1");
}

TEST(GraphConfigTest, ClipsGradientsWhenAsked) {
  EXPECT_EQ(Resolved([](GraphConfig&) {}).max_grad_norm, 0.0);
  EXPECT_EQ(Resolved([](GraphConfig& config) { config.clip_gradients(0.5); }).max_grad_norm, 0.5);
}

TEST(GraphConfigTest, RejectsNormsThatCannotBe) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.clip_gradients(0); }),
            "clip_gradients: max_norm is 0, expected a finite number > 0");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.clip_gradients(-1); }),
            "clip_gradients: max_norm is -1, expected a finite number > 0");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.clip_gradients(std::numeric_limits<double>::quiet_NaN());
            }),
            "clip_gradients: max_norm is nan, expected a finite number > 0");
}

TEST(GraphConfigTest, RejectsPatternsThatNoModuleHas) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.recompute("blocks."); }),
            "recompute: got 'blocks.', expected the path of a module: letters, digits, '_' and '*' "
            "in parts joined by '.', such as blocks.*");
}

TEST(GraphConfigTest, StopsWhenALossIsNotFiniteUnlessToldOtherwise) {
  GraphConfig config;
  EXPECT_EQ(config.Resolve(2)->on_non_finite, OnNonFinite::kStop);
  config.set_on_non_finite(OnNonFinite::kIgnore);
  EXPECT_EQ(config.Resolve(2)->on_non_finite, OnNonFinite::kIgnore);
}

TEST(GraphConfigTest, RejectsEarlyUpdatesThatMayHaveToBeSkipped) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.set_update_early();
              config.set_on_non_finite(OnNonFinite::kSkip);
            }),
            "set_update_early: set_on_non_finite(kSkip) needs all gradients before the first "
            "update; leave one of the two out");
}

TEST(GraphConfigTest, RejectsMicroBatchesThatRanksCannotShare) {
  EXPECT_EQ(ErrorOf([](GraphConfig& config) {
              config.set_micro_batches(8);
              config.set_update_early();
            }),
            "set_update_early: every rank computes 2 micro-batches per step, and gradients are "
            "complete after the last only; use one per rank or updates at the step's end");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.set_micro_batches(0); }),
            "set_micro_batches: got 0, expected at least 1");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.set_micro_batches(6); }),
            "set_micro_batches: 6 micro-batches per step do not divide among 4 ranks; use a "
            "multiple of 4, such as 8");
  EXPECT_EQ(ErrorOf([](GraphConfig& config) { config.set_micro_batches(2); }, 3),
            "set_micro_batches: 2 micro-batches per step do not divide among 3 ranks; use a "
            "multiple of 3, such as 3");
}

}  // namespace
}  // namespace zg::nn
