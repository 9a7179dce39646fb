// Padding by elements of x itself, and modules that pad images. (pad of nn/shapes.h adds a number.)
#pragma once

#include <string>

#include "framework/nn/module.h"
#include "framework/nn/var.h"

namespace zg {

enum class PadMode {
  kReflect,    // the elements beside the edge, mirrored at it: 3 2 | 1 2 3 | 2 1
  kReplicate,  // the edge: 1 1 | 1 2 3 | 3 3
  kCircular,   // the other end: 2 3 | 1 2 3 | 1 2
};

// `before` and `after` elements along one dim. Errors: more of them than kReflect (all but one) or
// kCircular (all) can take.
Var pad(Var x, int64_t dim, int64_t before, int64_t after, PadMode mode);

namespace nn {

// The number of rows and columns that are added at each side.
struct Sides {
  Sides(int64_t all) : left(all), right(all), top(all), bottom(all) {}  // NOLINT: a number
  Sides(int64_t the_left, int64_t the_right, int64_t the_top, int64_t the_bottom)
      : left(the_left), right(the_right), top(the_top), bottom(the_bottom) {}

  int64_t left, right, top, bottom;
};

// x (..., H, W) -> (..., top + H + bottom, left + W + right).
template <PadMode kMode>
class Pad2d : public Module {
 public:
  Pad2d(const Module* parent, const std::string& name, const Sides& sides)
      : Module(parent, name), sides_(sides) {}
  Var forward(Var x) override {
    return pad(pad(x, -1, sides_.left, sides_.right, kMode), -2, sides_.top, sides_.bottom, kMode);
  }

 private:
  Sides sides_;
};

using ReflectionPad2d = Pad2d<PadMode::kReflect>;
using ReplicationPad2d = Pad2d<PadMode::kReplicate>;
using CircularPad2d = Pad2d<PadMode::kCircular>;

}  // namespace nn

}  // namespace zg
