// SharedGemm: C = A B + bias + addend on several threads. C is cut into parts, each computed by a
// Gemm (gemm.h) of its own with its own scratch. The bits of an element depend only on its row of A
// and its column of B, so they are those of a single Gemm.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/threads.h"
#include "framework/kernels/cpu/gemm.h"

namespace zg {

// What NumSharingProduct (sharing.h) takes the cost of a product to be, in multiplications.
int64_t CostOf(const GemmSizes& sizes);

class SharedGemm {
 public:
  // Cuts into at most `threads` parts; into one if the product is small.
  SharedGemm(const GemmSizes& sizes, int threads);
  SharedGemm(const GemmSizes& sizes, const GemmMethod& method, int threads);

  int num_parts() const { return static_cast<int>(parts_.size()); }
  int64_t workspace_bytes() const;

  // Like Gemm::Run; `threads` may be null.
  void Run(GemmOperand a, GemmOperand b, const GemmTerms& terms, void* c, int64_t c_stride,
           void* workspace, Threads* threads) const;

 private:
  struct Part {
    int64_t row;  // first row in C
    int64_t column;
    int64_t workspace;  // begin of its scratch, in bytes
    Gemm gemm;
  };

  const GemmSizes sizes_;
  std::vector<Part> parts_;
};

}  // namespace zg
