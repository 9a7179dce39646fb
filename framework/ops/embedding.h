// Rows of a table by index, and the gradient for the table.
// Shapes: table (V, C), ids (...) of i64, result (..., C).
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterEmbeddingOps(ir::OpRegistry& registry);

}  // namespace zg
