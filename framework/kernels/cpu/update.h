// Update: the common part of all optimizers' kernels. Inputs are the parameter p, its gradient g,
// the states, and optionally the control; outputs are the new p and states, and optionally a copy
// of p in 16 bits, in one pass over memory. Outputs may be the inputs. Threads share the elements.
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
  // If the control's factor is 0, everything stays unchanged.
  Status Run(const KernelArguments& arguments) final;

 protected:
  // The values of the control input, or its defaults.
  struct Control {
    float factor = 1.0f;  // on the gradient
    double number = 0;    // of this update, from 1
  };

  // Updates the first `num_elements` of `arguments` on `thread` < num_sharing(), whose
  // BytesOfThread() of workspace they hold. The update itself widens a 16-bit gradient.
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
  const int num_outputs_;  // without the copy, which comes after them
  const int num_sharing_;
  const bool has_control_;
  const double lr_;
  const double weight_decay_;
};

}  // namespace zg
