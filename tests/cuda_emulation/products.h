// The emulated cuBLASLt has algorithms that differ in the order in which they add up the terms of a
// product, and so in their bits, and in the time that they take.
#pragma once

#include <cstddef>

namespace zg::emulation {

enum class Order {
  kForward,
  kBackward,
  kEvenFirst,  // the terms with an even index, then the others
  kRefused,    // proposed as one that can run, which it then cannot
  kUnusable,   // proposed with the state that it cannot run
};
inline constexpr int kNumOrders = 5;

// What tests say about it; not while it multiplies.
struct ProductLibrary {
  size_t version = 0;
  Order first = Order::kForward;                // that it proposes; the others follow in turn
  double ms[kNumOrders] = {1, 1, 1, 0.1, 0.1};  // of any product, by order
};
ProductLibrary& Products();

}  // namespace zg::emulation
