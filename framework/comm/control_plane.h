// ControlPlane: small exchanges of host data among the ranks of a job, which are not counted as
// traffic. Every rank of the job must make the same calls in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace zg {

class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual Status Barrier(std::string_view name) = 0;
  // The strings of all ranks, by rank.
  virtual StatusOr<std::vector<std::string>> Exchange(std::string_view name,
                                                      const std::string& mine) = 0;
  // Writes the word of every rank, by rank, into `all`, which has room for size() of them.
  // Allocates nothing where ranks read each other's memory, so a step may call it.
  virtual Status ExchangeWord(std::string_view name, uint64_t mine, uint64_t* all) = 0;
  // Ends the job for every rank with this error; does not return in a multi-process job.
  virtual void Abort(const Status& status) = 0;
};

// The status of all ranks: this rank's error if it has one, else the first other rank's, as
// Aborted. Every rank must call this, in the same order.
Status ExchangeStatus(ControlPlane& control, std::string_view name, const Status& mine);

}  // namespace zg
