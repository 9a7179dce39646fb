// MessageSum: a reduce-scatter by messages. Each part's terms are added on the stops of its route
// (sum_route.h), chunk by chunk: while one chunk is added up, the next is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/collective_call.h"
#include "framework/comm/mpi_calls.h"
#include "framework/comm/reduction_types.h"
#include "framework/comm/sum_plan.h"
#include "framework/comm/traffic.h"

namespace zg {

class MessageSum {
 public:
  struct Operands {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;  // this rank's part of the sum
    Parts parts;                  // in elements
    ReductionTypes types;
    bool accumulate = false;
  };

  // `wait` waits for requests of the call. The other arguments are those of PlanSum.
  MessageSum(MPI_Comm comm, std::vector<int> hosts, std::vector<int> fold_order, int rank,
             TrafficMeter* traffic, std::function<Status(MpiRequests&)> wait)
      : comm_(comm),
        hosts_(std::move(hosts)),
        fold_order_(std::move(fold_order)),
        rank_(rank),
        traffic_(*traffic),
        wait_(std::move(wait)) {}

  // The workspace is as large on all ranks: MessageWorkspaceBytes of the job.
  Status Run(const Operands& operands, std::byte* workspace, int64_t workspace_bytes);

 private:
  class Call;

  // The plan of a call, made at the first one of its kind.
  const SumPlan& PlanFor(const SumBytes& bytes, bool goes_along_hosts);

  struct MadePlan {
    SumBytes bytes;
    bool goes_along_hosts = false;
    SumPlan plan;
  };

  const MPI_Comm comm_;
  const std::vector<int> hosts_;
  const std::vector<int> fold_order_;
  const int rank_;
  TrafficMeter& traffic_;
  const std::function<Status(MpiRequests&)> wait_;
  std::vector<MadePlan> plans_;
};

}  // namespace zg
