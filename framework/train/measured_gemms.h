// MeasuredGemms: a device's kernels whose products go by the algorithms that a file says are fastest
// there. What the file lacks is measured on rank 0, whose choices all ranks take, and added to it.
//
//   ZG_ASSIGN_OR_RETURN(const std::shared_ptr<MeasuredGemms> gemms,
//                       MeasuredGemms::Open("choices.json", kernels, communicator));
//   TrainerOptions options;
//   options.measured_gemms = gemms;
//
// The same file gives the same bits. Operands to measure with are allocated beside the arena, before
// it is there, and freed: they are no part of a plan. Plans have the workspaces of what was chosen.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/kernels/gemm_choices.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/program.h"

namespace zg {

class MeasuredGemms {
 public:
  // Reads the file, if there is one, on rank 0; the others need none. `kernels` and the communicator
  // must outlive the result. Every rank must call this. Errors, on every rank: ranks that compute on
  // the host, or on devices or with libraries that differ; a damaged file.
  static StatusOr<std::shared_ptr<MeasuredGemms>> Open(const std::string& path,
                                                       const KernelRegistry& kernels,
                                                       Communicator& communicator);
  MeasuredGemms(const MeasuredGemms&) = delete;

  const KernelRegistry& kernels() const { return kernels_; }

  // The program of `compile`, which makes these kernels: compiled once more if products had to be
  // measured. Every rank must call this, with equal programs. Errors: those of `compile`; on every
  // rank, what cannot be measured or written.
  StatusOr<Program> Compile(const std::function<StatusOr<Program>()>& compile);

  // Error: there are products that the file lacks, so that the kernels go by the library's own choice.
  Status CheckComplete() const;

  // "products 0123456789ab": what the bits of the kernels made since ForgetFound depend on.
  std::string arithmetic() const { return "products " + choices_.FoundDigest(); }
  void ForgetFound() { choices_.ForgetFound(); }

 private:
  MeasuredGemms(std::string path, const KernelRegistry& kernels, Communicator& communicator);
  Status TakeFromRank0(const Status& mine, const std::map<std::string, GemmChoice>& choices);
  Status MeasureMissing();
  StatusOr<std::map<std::string, GemmChoice>> MeasureHere();

  const std::string path_;
  Communicator& communicator_;
  const std::string device_;  // and its library, as ArithmeticOf has them
  GemmChoices choices_;
  const KernelRegistry kernels_;
};

}  // namespace zg
