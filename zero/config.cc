#include "zero/config.h"

namespace zg::zero {

Status Validate(const ZeroConfig& config) {
  if (config.stage < 0 || config.stage > 3) {
    return InvalidArgument("ZeRO stage: got {}, expected 0, 1, 2 or 3", config.stage);
  }
  if (config.bucket_bytes < 1) {
    return InvalidArgument("ZeRO bucket_bytes: got {}, expected at least 1", config.bucket_bytes);
  }
  if (config.shard_min_elements < 0) {
    return InvalidArgument("ZeRO shard_min_elements: got {}, expected 0 or more",
                           config.shard_min_elements);
  }
  return Status::Ok();
}

StatusOr<int> StageOf(const OneFlowSwitches& switches) {
  const std::string& mode = switches.zero_redundancy_optimizer_mode;
  if (mode.empty()) {
    if (switches.use_compute_stream || switches.disable_group_boxing_by_dst_parallel) {
      return InvalidArgument(
          "enable_use_compute_stream and disable_group_boxing_by_dst_parallel need "
          "set_zero_redundancy_optimizer_mode(\"distributed_split\") first");
    }
    return 0;
  }
  if (mode != "distributed_split") {
    return InvalidArgument(
        "set_zero_redundancy_optimizer_mode: got \"{}\", expected \"distributed_split\"", mode);
  }
  if (!switches.use_compute_stream) {
    if (switches.disable_group_boxing_by_dst_parallel) {
      return InvalidArgument(
          "disable_group_boxing_by_dst_parallel (stage 3) needs enable_use_compute_stream (stage "
          "2)");
    }
    return 1;
  }
  return switches.disable_group_boxing_by_dst_parallel ? 3 : 2;
}

}  // namespace zg::zero
