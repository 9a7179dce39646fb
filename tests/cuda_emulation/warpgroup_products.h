// The products that a thread has started and not waited for (framework/kernels/cuda/warpgroup_core.cuh).
#pragma once

#include <emulated_instructions.h>

#include <cstdint>
#include <vector>

namespace zg::emulation {

struct WarpgroupProduct {
  Widened widen;
  const char* left;  // null: a
  uint32_t a[4];
  const char* right;
  bool adds;
  float (*c)[4];
  int group;
};

// The products come to be when they are waited for. Until then c holds NaNs instead of these.
struct WithheldSums {
  float (*c)[4];
  float values[8][4];
};

struct WarpgroupProducts {
  std::vector<WarpgroupProduct> started;
  std::vector<WithheldSums> withheld;
  int groups = 0;             // committed ones
  bool have_begun = false;    // since the last wait
  bool hides_copies = false;  // the thread has waited for copies, and not shown them to products
};

// Those of the running thread.
WarpgroupProducts& OwnProducts();

}  // namespace zg::emulation
