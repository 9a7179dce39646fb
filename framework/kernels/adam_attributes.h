// AdamAttributesOf: the settings of an Adam or AdamW update, for the kernels of all devices.
#pragma once

#include "framework/ir/attribute.h"
#include "framework/kernels/math/optimizer_math.h"

namespace zg {

// An op without the attribute `decoupled` is AdamW.
inline AdamAttributes AdamAttributesOf(const ir::Attributes& a) {
  const bool decoupled = !a.Has("decoupled") || a.Bool("decoupled");
  return {a.Float("lr"),      a.Float("beta1"),        a.Float("beta2"),
          a.Float("epsilon"), a.Float("weight_decay"), decoupled};
}

}  // namespace zg
