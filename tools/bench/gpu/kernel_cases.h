// KernelCase: one kernel at the size at which a training step of a GPT in bf16 runs it, and how
// often. Together the cases are what a step on one rank computes.
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
  int64_t times_per_step = 0;  // 0: only with an option, such as --clip-norm, or to compare with
  int64_t max_id = 1;          // ids are below it
  int64_t moved_bytes = 0;     // each operand once; of a table that is looked up, the rows
  int64_t flops = 0;
};

// A case of an op that is registered (RegisterAllOps). Error: the op rejects these inputs.
StatusOr<KernelCase> MakeKernelCase(const std::string& name, const std::string& op,
                                    std::vector<TensorType> inputs, ir::Attributes attributes = {});

// Of a step with a micro-batch of `batch`. Error: an op rejects its inputs.
StatusOr<std::vector<KernelCase>> GptKernelCases(const models::GptConfig& config, int64_t batch);

// y = x w for square matrices, by which the peak of matrix products is measured.
StatusOr<KernelCase> SquareProduct(int64_t size);

}  // namespace zg::bench
