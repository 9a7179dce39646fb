// OneFlow's switches for ZeRO under their own names, for code that comes from there: the mode
// "distributed_split" alone is stage 1; with the compute stream 2; and without grouping by
// destination 3.
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

  // The stage that they ask for; none when no switch was touched. Errors: another mode; a switch
  // without those before it.
  StatusOr<std::optional<int>> Stage() const;

 private:
  bool is_touched_ = false;
  std::string mode_;
  bool use_compute_stream_ = false;
  bool disable_group_boxing_ = false;
};

}  // namespace zg
