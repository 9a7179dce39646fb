// Update: what the kernels of all optimizers share. Inputs are the parameter p, its gradient g, the
// states, and perhaps the control; outputs the new p and states, and perhaps a copy of p in 16 bits,
// in one pass over memory. Outputs may be the inputs. Threads share the elements.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/kernel.h"

namespace zg {

class Update : public Kernel {
 public:
  explicit Update(const KernelSpec& spec);

  int64_t workspace_bytes() const final { return WorkspaceBytes(num_sharing_, BytesOfThread()); }
  // Where the control's factor is 0, all stays as it is.
  Status Run(const KernelArguments& arguments) final;

 protected:
  // What the control input says, or its absence.
  struct Control {
    float factor = 1.0f;  // on the gradient
    double number = 0;    // of this update, from 1
  };

  // Of the first `num_elements` of `arguments`, on `thread` < num_sharing(), whose BytesOfThread()
  // of workspace they have. A 16-bit gradient is widened by the update itself.
  virtual void Apply(const KernelArguments& arguments, const Control& control, int64_t num_elements,
                     int thread) = 0;
  virtual int64_t BytesOfThread() const { return 0; }

  int num_sharing() const { return num_sharing_; }
  DType gradient_dtype() const { return gradient_dtype_; }
  double LrOf(const StepContext& step) const { return lr_ * step.lr_factor; }
  double weight_decay() const { return weight_decay_; }

 private:
  bool ApplyRange(const KernelArguments& arguments, const Control& control, int64_t begin,
                  int64_t end, int thread);
  Control ReadControl(const KernelArguments& arguments) const;
  void CopyRange(const KernelArguments& arguments, int64_t begin, int64_t count) const;
  void KeepEverything(const KernelArguments& arguments) const;

  const DType gradient_dtype_;
  const int64_t num_elements_;
  const std::optional<DType> copy_;
  const int num_outputs_;  // without the copy, which is behind them
  const int num_sharing_;
  const bool has_control_;
  const double lr_;
  const double weight_decay_;
};

}  // namespace zg
