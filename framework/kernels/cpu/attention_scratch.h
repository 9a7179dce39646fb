// How the attention kernels divide their workspace.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {

// Takes parts of the workspace, each aligned to a cache line. Without a workspace it computes the
// size that is needed.
class Carver {
 public:
  explicit Carver(void* workspace) : workspace_(static_cast<float*>(workspace)) {}
  float* Take(int64_t floats) {
    float* const part = workspace_ == nullptr ? nullptr : workspace_ + used_;
    used_ += AlignedFloats(floats);
    return part;
  }
  // The place of scores in the operands' dtype; in f32 it is the scores themselves.
  float* TakeRounded(const AttentionShape& shape, float* scores) {
    return shape.dtype == DType::kF32 ? scores : Take(shape.scores_size() / 2);
  }
  int64_t bytes() const { return used_ * static_cast<int64_t>(sizeof(float)); }

 private:
  float* workspace_;
  int64_t used_ = 0;
};

// The size of a kernel's Scratch(shape, carver).
template <typename Scratch>
int64_t ScratchBytes(const AttentionShape& shape) {
  Carver carver(nullptr);
  const Scratch scratch(shape, carver);
  return carver.bytes();
}

// How many of `threads` share a kernel's heads of keys, each with the heads of queries that use it.
// A multiplication of the products with queries counts here as an eighth of an element.
inline int64_t NumKeyHeads(const AttentionShape& shape) { return shape.batch * shape.key_heads; }
inline int NumSharingHeads(const AttentionShape& shape, int threads) {
  return NumSharing(threads, NumKeyHeads(shape), 1,
                    shape.group() * shape.queries * shape.keys * shape.head_size / 8);
}

// Calls body(batch, key_head, scratch) for every head of keys, on that many threads, each with the
// method's GemmScope and its own Scratch in the workspace.
template <typename Scratch, typename Body>
void ForKeyHeads(const AttentionShape& shape, const KernelArguments& arguments, int num_sharing,
                 const Body& body) {
  const auto run = [&](int64_t head, int thread) {
    const GemmScope scope(*shape.method);
    Carver carver(WorkspaceOf(thread, arguments.workspace, ScratchBytes<Scratch>(shape)));
    const Scratch scratch(shape, carver);
    body(head / shape.key_heads, head % shape.key_heads, scratch);
  };
  if (num_sharing > 1 && arguments.threads != nullptr) {
    return arguments.threads->Run(NumKeyHeads(shape), run);
  }
  for (int64_t head = 0; head < NumKeyHeads(shape); ++head) run(head, 0);
}

inline int64_t DropoutBitsSize(const AttentionShape& shape) {
  return shape.dropout > 0 ? shape.keys : 0;
}

}  // namespace zg
