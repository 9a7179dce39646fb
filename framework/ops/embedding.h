// Rows of a table by index, and the gradient for the table.
// Shapes: table (V, C), ids (...) of i64, result (..., C).
#pragma once

namespace zg {

class OpRegistry;

void RegisterEmbeddingOps(OpRegistry& registry);

}  // namespace zg
