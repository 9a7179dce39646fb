#include "tests/testing/as_planned.h"

#include <gtest/gtest.h>

namespace zg::testing {

void ExpectMemoryAsPlanned(const Executor& executor) {
  EXPECT_EQ(executor.meter().category_bytes(), executor.plan().category_bytes);
  EXPECT_EQ(executor.meter().peak_bytes(), executor.plan().arena_bytes);
}

void ExpectTraffic(const std::map<std::string, PredictedTraffic>& of_step, int64_t steps,
                   const TrafficCounters& measured) {
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const std::string name(CollectiveName(static_cast<CollectiveKind>(i)));
    const auto found = of_step.find(name);
    const PredictedTraffic expected = found == of_step.end() ? PredictedTraffic() : found->second;
    EXPECT_EQ(expected.count * steps, measured[i].count) << name;
    EXPECT_EQ(expected.bytes * steps, measured[i].bytes) << name;
  }
}

void ExpectTrafficAsPlanned(const Executor& executor, int64_t steps) {
  ExpectTraffic(PredictTraffic(executor.graph()), steps, executor.communicator().traffic());
}

}  // namespace zg::testing
