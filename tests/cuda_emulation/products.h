// The emulated cuBLASLt has algorithms that differ in the order in which they add the terms of a
// product, and so in their bits, and in their times.
#pragma once

#include <cstddef>

namespace zg::emulation {

enum class Order {
  kForward,
  kBackward,
  kEvenFirst,  // the terms with an even index, then the others
  kRefused,    // proposed as runnable, but fails when it is run
  kUnusable,   // proposed with the state that it cannot run
};
inline constexpr int kNumOrders = 5;

// Set by tests; must not change during a product.
struct ProductLibrary {
  size_t version = 0;
  Order first = Order::kForward;                // proposed first; the others follow in turn
  double ms[kNumOrders] = {1, 1, 1, 0.1, 0.1};  // for any product, by order
};
ProductLibrary& Products();

}  // namespace zg::emulation
