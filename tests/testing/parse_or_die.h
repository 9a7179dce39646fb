// ParseOrDie: the graph of a text, with all ops. A text that does not parse fails the test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "framework/ir/parser.h"
#include "framework/ops/register_all_ops.h"

namespace zg::testing {

inline ir::Graph ParseOrDie(const std::string& text) {
  RegisterAllOps();
  StatusOr<ir::Graph> graph = ir::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? std::move(*graph) : ir::Graph();
}

}  // namespace zg::testing
