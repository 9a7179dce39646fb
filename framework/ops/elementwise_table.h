// The rows of elementwise.inc as data: everything that kernels and fused_elementwise need about an
// elementwise op besides its arithmetic.
#pragma once

#include <cstdint>
#include <string_view>

namespace zg {

enum class ElementwiseCode : int32_t {
#define ZG_UNARY(Name, ...) k##Name,
#define ZG_UNARY_WITH(Name, ...) k##Name,
#define ZG_BINARY(Name, ...) k##Name,
#define ZG_BINARY_WITH(Name, ...) k##Name,
#include "framework/ops/elementwise.inc"
};

struct ElementwiseRow {
  ElementwiseCode code;
  std::string_view op;         // its name
  int num_inputs;              // 1 or 2
  std::string_view attribute;  // a double; empty: none
  int64_t flops;               // per element
};

inline constexpr ElementwiseRow kElementwiseRows[] = {
#define ZG_UNARY(Name, name, x, doc, flops, ...) {ElementwiseCode::k##Name, name, 1, "", flops},
#define ZG_UNARY_WITH(Name, name, x, attribute, doc, flops, ...) \
  {ElementwiseCode::k##Name, name, 1, #attribute, flops},
#define ZG_BINARY(Name, name, a, b, doc, flops, ...) {ElementwiseCode::k##Name, name, 2, "", flops},
#define ZG_BINARY_WITH(Name, name, a, b, attribute, doc, flops, ...) \
  {ElementwiseCode::k##Name, name, 2, #attribute, flops},
#include "framework/ops/elementwise.inc"
};

constexpr const ElementwiseRow& RowOf(ElementwiseCode code) {
  return kElementwiseRows[static_cast<int32_t>(code)];
}

// Null if there is no elementwise op of this name.
constexpr const ElementwiseRow* FindElementwiseRow(std::string_view op) {
  for (const ElementwiseRow& row : kElementwiseRows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace zg
