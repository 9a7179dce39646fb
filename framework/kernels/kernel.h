// Kernel: one node made executable on one device. It is made once, at compile time, for the local
// types of the node, and runs every step on resolved addresses without allocating.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op_def.h"

namespace zg {

class GemmChoices;
class Threads;

// The values that change from run to run besides the data.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 1;                 // 1-based, as in Adam's bias correction
  int64_t micro_batch = 0;          // index within the step over all ranks: j * num_ranks + rank
  bool first_micro_step = true;     // j == 0: accumulators are overwritten, not added to
  double lr_factor = 1.0;           // factor of the learning-rate schedule
  bool stop_on_non_finite = false;  // updated parameters that are not finite are an error
};

struct KernelSpec {
  ir::OpCall call;                      // op, local input types, attributes
  std::vector<TensorType> outputs;      // local
  int threads = 1;                      // that Run may use; for the host
  GemmChoices* gemm_choices = nullptr;  // the algorithms of products on a GPU (gemm_choices.h), if
                                        // any
};

// Bad data that a kernel found on a device that cannot return an error; the first fault of a step
// is kept.
struct DeviceFault {
  int32_t node = 0;      // KernelArguments::node of the kernel
  int32_t happened = 0;  // 0: no fault
  int64_t got = 0;
  int64_t limit = 0;
};

struct KernelArguments {
  const void* const* inputs;  // 64-byte aligned unless the graph made a view at an odd offset
  void* const* outputs;
  void* workspace;  // workspace_bytes() bytes, 64-byte aligned, contents undefined
  const StepContext* step;
  void* stream = nullptr;  // the device's queue (a cudaStream_t); null if kernels run at once
  // The same context in device memory. Kernels read it there, so that a captured step sees its
  // changes; null on the CPU.
  const StepContext* device_step = nullptr;
  DeviceFault* fault = nullptr;  // device memory; null on the CPU, where Run() returns the error
  int32_t node = 0;              // the value that this kernel writes into DeviceFault::node
  int64_t part = 0;              // index of the local part among input 0's equal parts along dim 0
  Threads* threads = nullptr;    // as many as KernelSpec says; null: only the calling one

  template <typename T>
  const T* input(int i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <typename T>
  T* output(int i) const {
    return static_cast<T*>(outputs[i]);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t workspace_bytes() const { return 0; }
  // An error means bad data (such as a token id beyond the vocabulary) and ends the job.
  virtual Status Run(const KernelArguments& arguments) = 0;
  // The same error text for a fault that this kernel recorded on its device.
  virtual std::string FaultText(const DeviceFault& fault) const;
};

using KernelFactory = StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec);

// Options of the kernels of one device.
struct KernelOptions {
  bool tf32 = false;                    // products of f32 matrices round their operands to TF32
  int threads = 1;                      // threads of a rank on the host that compute together
  GemmChoices* gemm_choices = nullptr;  // as in KernelSpec
};

// The kernels of one device, by op name.
class KernelRegistry {
 public:
  explicit KernelRegistry(const KernelOptions& options = {}) : options_(options) {}
  const KernelOptions& options() const { return options_; }
  // The same kernels, whose products use `choices`, which must outlive the registry.
  KernelRegistry WithGemmChoices(GemmChoices* choices) const;
  void Register(std::string op, KernelFactory factory);
  bool Has(std::string_view op) const { return factories_.find(op) != factories_.end(); }
  // Error: the device has no kernel for this op or this dtype.
  StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) const;

 private:
  KernelOptions options_;
  std::map<std::string, KernelFactory, std::less<>> factories_;
};

}  // namespace zg
