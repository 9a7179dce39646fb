// The choices of random tests: the same ones for the same seed.
#pragma once

#include <random>
#include <vector>

namespace zg::testing {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  int Below(int bound) { return static_cast<int>(engine_() % static_cast<unsigned>(bound)); }
  bool Percent(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(static_cast<int>(items.size()))];
  }

 private:
  std::mt19937 engine_;
};

}  // namespace zg::testing
