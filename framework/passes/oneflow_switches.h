// OneFlow's switches for ZeRO under their own names, for code ported from OneFlow: the mode
// "distributed_split" alone is stage 1; with the compute stream it is stage 2, and without grouping
// by destination stage 3.
#pragma once

#include <optional>
#include <string>

#include "framework/base/status.h"

namespace zg {

class OneFlowSwitches {
 public:
  void set_zero_redundancy_optimizer_mode(const std::string& mode);
  void enable_use_compute_stream(bool enabled = true);
  void disable_group_boxing_by_dst_parallel(bool disabled = true);

  // The stage that the switches ask for; none if no switch was set. Errors: an unknown mode; a
  // switch without the ones before it.
  StatusOr<std::optional<int>> Stage() const;

 private:
  bool is_touched_ = false;
  std::string mode_;
  bool use_compute_stream_ = false;
  bool disable_group_boxing_ = false;
};

}  // namespace zg
