// The scalars of an update's program (framework/ops/update_program.h), in f64, as kernels of all
// devices compute them.
#pragma once

#include <cmath>

#include "framework/base/host_device.h"
#include "framework/ops/elementwise_table.h"

namespace zg {

// For the ops for which IsScalarOp is true.
ZG_HOST_DEVICE inline double EvaluateScalar(ElementwiseCode code, double a, double b,
                                            double attribute) {
  switch (code) {
    case ElementwiseCode::kAdd:
      return a + b;
    case ElementwiseCode::kSubtract:
      return a - b;
    case ElementwiseCode::kMultiply:
      return a * b;
    case ElementwiseCode::kDivide:
      return a / b;
    case ElementwiseCode::kMaximum:
      return a > b ? a : b;
    case ElementwiseCode::kMinimum:
      return a < b ? a : b;
    case ElementwiseCode::kClampMin:
      return a < attribute ? attribute : a;
    case ElementwiseCode::kClampMax:
      return a > attribute ? attribute : a;
    case ElementwiseCode::kScale:
      return a * attribute;
    case ElementwiseCode::kShift:
      return a + attribute;
    case ElementwiseCode::kReciprocal:
      return 1.0 / a;
    case ElementwiseCode::kSquare:
      return a * a;
    case ElementwiseCode::kSqrt:
      return std::sqrt(a);
    case ElementwiseCode::kRsqrt:
      return 1.0 / std::sqrt(a);
    case ElementwiseCode::kExp:
      return std::exp(a);
    case ElementwiseCode::kLog:
      return std::log(a);
    case ElementwiseCode::kSign:
      return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a;
    default:
      return NAN;
  }
}

}  // namespace zg
