#include "framework/passes/oneflow_switches.h"

namespace zg {
namespace {

constexpr char kDistributedSplit[] = "distributed_split";

}  // namespace

void OneFlowSwitches::set_zero_redundancy_optimizer_mode(const std::string& mode) {
  is_touched_ = true;
  mode_ = mode;
}

void OneFlowSwitches::enable_use_compute_stream(bool enabled) {
  is_touched_ = true;
  use_compute_stream_ = enabled;
}

void OneFlowSwitches::disable_group_boxing_by_dst_parallel(bool disabled) {
  is_touched_ = true;
  disable_group_boxing_ = disabled;
}

StatusOr<std::optional<int>> OneFlowSwitches::Stage() const {
  if (!is_touched_) return std::optional<int>();
  if (!mode_.empty() && mode_ != kDistributedSplit) {
    return InvalidArgument("set_zero_redundancy_optimizer_mode: got \"{}\", expected \"{}\"", mode_,
                           kDistributedSplit);
  }
  if (mode_.empty() && (use_compute_stream_ || disable_group_boxing_)) {
    return InvalidArgument("{} needs set_zero_redundancy_optimizer_mode(\"{}\") as well",
                           use_compute_stream_
                               ? "enable_use_compute_stream(true), ZeRO stage 2,"
                               : "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3,",
                           kDistributedSplit);
  }
  if (disable_group_boxing_ && !use_compute_stream_) {
    return InvalidArgument(
        "disable_group_boxing_by_dst_parallel(true), ZeRO stage 3, needs "
        "enable_use_compute_stream(true) as well");
  }
  if (mode_.empty()) return std::optional<int>(0);
  return std::optional<int>(disable_group_boxing_ ? 3 : use_compute_stream_ ? 2 : 1);
}

}  // namespace zg
