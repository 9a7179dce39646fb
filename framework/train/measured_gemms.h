// MeasuredGemms: a device's kernels whose products use the algorithms that a file records as the
// fastest. Rank 0 measures products that the file lacks and adds them to it; all ranks use rank 0's
// choices.
//
//   ZG_ASSIGN_OR_RETURN(const std::shared_ptr<MeasuredGemms> gemms,
//                       MeasuredGemms::Open("choices.json", kernels, communicator));
//   TrainerOptions options;
//   options.measured_gemms = gemms;
//
// The same file gives the same bits. Operands for measuring are allocated and freed before the
// arena exists, so they are not part of a plan. Plans have the workspaces of the chosen algorithms.
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

  // The program of `compile`, which makes these kernels. It is compiled a second time if products
  // had to be measured. Every rank must call this, with equal programs. Errors: those of `compile`;
  // on every rank, products that cannot be measured or a file that cannot be written.
  StatusOr<Program> Compile(const std::function<StatusOr<Program>()>& compile);

  // Error: the file lacks products, so the kernels use the library's own choice.
  Status CheckComplete() const;

  // Returns "products 0123456789ab", which identifies what the bits of the kernels made since
  // ForgetFound depend on.
  std::string arithmetic() const { return "products " + choices_.FoundDigest(); }
  void ForgetFound() { choices_.ForgetFound(); }

 private:
  MeasuredGemms(std::string path, const KernelRegistry& kernels, Communicator& communicator);
  Status TakeFromRank0(const Status& mine, const std::map<std::string, GemmChoice>& choices);
  Status MeasureMissing();
  StatusOr<std::map<std::string, GemmChoice>> MeasureHere();

  const std::string path_;
  Communicator& communicator_;
  const std::string device_;  // and its library, in the form of ArithmeticOf
  GemmChoices choices_;
  const KernelRegistry kernels_;
};

}  // namespace zg
