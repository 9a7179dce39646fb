// Kernel: one node made executable on one device. Made once, at compile time, for the local types
// of the node; run every step on resolved addresses without allocating.
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

// What changes from run to run besides the data.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 1;                 // 1-based, as in Adam's bias correction
  int64_t micro_batch = 0;          // index within the step over all ranks: j * num_ranks + rank
  bool first_micro_step = true;     // j == 0: accumulators are overwritten, not added to
  double lr_factor = 1.0;           // of the learning-rate schedule
  bool stop_on_non_finite = false;  // updated parameters that are not finite are an error
};

struct KernelSpec {
  OpCall call;                      // op, local input types, attributes
  std::vector<TensorType> outputs;  // local
};

struct KernelArguments {
  const void* const* inputs;  // 64-byte aligned unless the graph made a view at an odd offset
  void* const* outputs;
  void* workspace;  // workspace_bytes() bytes, 64-byte aligned, contents undefined
  const StepContext* step;

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
  // An error means bad data (a token id beyond the vocabulary, say) and ends the job.
  virtual Status Run(const KernelArguments& arguments) = 0;
};

using KernelFactory = StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec);

// The kernels of one device, by op name.
class KernelRegistry {
 public:
  void Register(std::string op, KernelFactory factory);
  bool Has(std::string_view op) const { return factories_.find(op) != factories_.end(); }
  // Error: the device has no kernel for this op or this dtype.
  StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) const;

 private:
  std::map<std::string, KernelFactory, std::less<>> factories_;
};

}  // namespace zg
