// KernelCase: one kernel at the size at which a training step of a GPT in bf16 runs it, and the
// number of runs. Together the cases are the computation of a step on one rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/kernels/kernel.h"
#include "models/gpt/model.h"

namespace zg::bench {

struct KernelCase {
  std::string name;
  KernelSpec spec;
  int64_t times_per_step = 0;  // 0: only with an option such as --clip-norm, or only for comparison
  int64_t max_id = 1;          // ids are below it
  int64_t moved_bytes = 0;     // each operand once; for a table lookup only the rows that are read
  int64_t flops = 0;
};

// A case of a registered op (RegisterAllOps). Error: the op rejects these inputs.
StatusOr<KernelCase> MakeKernelCase(const std::string& name, const std::string& op,
                                    std::vector<TensorType> inputs, ir::Attributes attributes = {});

// The cases of a step with a micro-batch of `batch`. Error: an op rejects its inputs.
StatusOr<std::vector<KernelCase>> GptKernelCases(const models::GptConfig& config, int64_t batch);

// y = x w for square matrices, which measures the peak of matrix products.
StatusOr<KernelCase> SquareProduct(int64_t size);

}  // namespace zg::bench
