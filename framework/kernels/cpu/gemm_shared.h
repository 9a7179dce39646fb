// SharedGemm: C = A B + bias + addend on several threads: C is cut into parts, each of them a Gemm (gemm.h) of
// its own with scratch of its own. As the bits of an element are a matter of its row of A and its
// column of B, they are those of one Gemm.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/threads.h"
#include "framework/kernels/cpu/gemm.h"

namespace zg {

class SharedGemm {
 public:
  // Of at most `threads` parts; of one, where the product is small.
  SharedGemm(const GemmSizes& sizes, int threads);
  SharedGemm(const GemmSizes& sizes, const GemmMethod& method, int threads);

  int num_parts() const { return static_cast<int>(parts_.size()); }
  int64_t workspace_bytes() const;

  // As Gemm::Run; `threads` may be null.
  void Run(GemmOperand a, GemmOperand b, const GemmTerms& terms, void* c, int64_t c_stride,
           void* workspace, Threads* threads) const;

 private:
  struct Part {
    int64_t row;  // where it begins in C
    int64_t column;
    int64_t workspace;  // where its scratch begins, in bytes
    Gemm gemm;
  };

  const GemmSizes sizes_;
  std::vector<Part> parts_;
};

}  // namespace zg
