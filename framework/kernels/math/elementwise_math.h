// One element of every elementwise op, as kernels of all devices compute it.
//
//   Evaluate(ElementwiseCode::kGelu, x, 0.0f, 0.0f)
#pragma once

#include "framework/base/host_device.h"
#include "framework/kernels/math/elementary_math.h"
#include "framework/kernels/math/sine_math.h"
#include "framework/kernels/math/special_math.h"
#include "framework/ops/elementwise_table.h"

namespace zg {

namespace elementwise {

// Defined here, so that formulas find the functions of the headers.
ZG_HOST_DEVICE ZG_INLINE float Evaluate(ElementwiseCode code, float first,
                                        [[maybe_unused]] float second,
                                        [[maybe_unused]] float scalar) {
  switch (code) {
#define ZG_UNARY(Name, name, x, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                   \
    const float x = first;                                           \
    return formula;                                                  \
  }
#define ZG_UNARY_WITH(Name, name, x, attribute, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                                   \
    const float x = first;                                                           \
    const float attribute = scalar;                                                  \
    return formula;                                                                  \
  }
#define ZG_BINARY(Name, name, a, b, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                       \
    const float a = first;                                               \
    const float b = second;                                              \
    return formula;                                                      \
  }
#define ZG_BINARY_WITH(Name, name, a, b, attribute, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                                       \
    const float a = first;                                                               \
    const float b = second;                                                              \
    const float attribute = scalar;                                                      \
    return formula;                                                                      \
  }
#include "framework/ops/elementwise.inc"
  }
  return 0.0f;
}

}  // namespace elementwise

// The formula of a row of framework/ops/elementwise.inc for one element. `b` and `scalar` are used
// only by ops that have them.
ZG_HOST_DEVICE ZG_INLINE float Evaluate(ElementwiseCode code, float a, float b, float scalar) {
  return elementwise::Evaluate(code, a, b, scalar);
}

}  // namespace zg
