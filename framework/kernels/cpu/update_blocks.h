// UpdateBlocks: evaluates the program of an update (framework/ops/update_program.h) block by block.
// The workspace holds blocks: the scalars, each repeated; the gradient; the slots of results.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/kernel.h"
#include "framework/ops/update_program.h"

namespace zg {

// Elements of a block: some twenty of them fit into the first-level cache.
inline constexpr int64_t kUpdateBlock = 512;

class UpdateBlocks {
 public:
  UpdateBlocks(UpdateProgram program, DType gradient_dtype);

  const UpdateProgram& program() const { return program_; }
  int64_t workspace_bytes() const;

  // Computes the scalars from the program's inputs, in their order. For blocks of up to `count`
  // elements.
  void SetScalars(const std::vector<double>& inputs, int64_t count, void* workspace);
  // Computes elements [begin, begin + count), count <= kUpdateBlock, of all statements, or of
  // those that need no norm. The gradient is multiplied by `factor`.
  void Compute(const KernelArguments& arguments, float factor, int64_t begin, int64_t count,
               bool without_norms = false) const;
  // The result of Compute for the block.
  const float* ResultOf(int statement, const void* workspace) const;

 private:
  const UpdateProgram program_;
  const DType gradient_dtype_;
  std::vector<double> scalars_;  // in the order of UpdateProgram::ScalarIndex
  std::vector<ElementwiseFunction> functions_;
};

}  // namespace zg
