// Counts the heap allocations of the calling thread, to show that the code that runs there makes
// none. Link it into only one test: it replaces the allocation functions of the program.
//
//   AllocationCounter counter;
//   ...
//   EXPECT_EQ(counter.count(), 0);
#pragma once

#include <cstdint>

namespace zg::testing {

class AllocationCounter {
 public:
  AllocationCounter();
  int64_t count() const;  // since the construction

 private:
  int64_t start_;
};

}  // namespace zg::testing
