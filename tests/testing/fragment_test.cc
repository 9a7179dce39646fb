#include "tests/testing/fragment.h"

#include <gtest/gtest.h>

#include "framework/ir/printer.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/lines.h"

namespace zg::testing {
namespace {

// The usual text of a fragment, which must print as it was.
std::string Expand(const std::string& text) {
  RegisterAllOps();
  const StatusOr<ir::Graph> graph = ParseFragment(text, {"file", 1});
  if (!graph.ok()) return graph.status().message();
  EXPECT_EQ(PrintFragment(*graph), text);
  return ir::Print(*graph);
}

TEST(Fragment, GivenValues) {
  EXPECT_EQ(Expand(R"(  %x: f32[8,4] {S(0)}  // block
  %y: f32[8,4] {S(0)} = relu %x
)"),
            R"(graph "g" mesh(data=2) micro_batches=2
forward:
  %x: f32[8,4] {S(0)} = given (dtype="f32", shape=[8,4])  // block
  %y: f32[8,4] {S(0)} = relu %x
)");
}

TEST(Fragment, SourcesDoNotRepeatTheirTypes) {
  EXPECT_EQ(Expand(R"(mesh(data=3) micro_batches=6
variables:
  %w: f32[4] = variable (stage=0)
    tensor "w" f32[4] at 0 init zeros
forward:
  %x: i64[] = input (name="x", placement="B")
)"),
            R"(graph "g" mesh(data=3) micro_batches=6
variables:
  %w: f32[4] = variable (dtype="f32", shape=[4], stage=0)
    tensor "w" f32[4] at 0 init zeros
forward:
  %x: i64[] = input (dtype="i64", name="x", placement="B", shape=[])
)");
}

TEST(Fragment, Headers) {
  EXPECT_EQ(Expand("mesh(data=2, tensor=3)\n  %x: f32[4]\n").substr(0, 52),
            "graph \"g\" mesh(data=2, tensor=3) micro_batches=6\nfor");
  EXPECT_EQ(Expand("graph \"h\" mesh(data=2) micro_batches=2\n  %x: f32[4]\n").substr(0, 9),
            "graph \"h\"");
}

TEST(Fragment, ErrorsKeepTheirLines) {
  EXPECT_EQ(Expand("  %x: f32[4]\n  %y: f32[4] = relo %x\n"), "file:2:16: unknown op 'relo'");
}

TEST(Lines, DiffShowsChangesWithTheirSection) {
  EXPECT_EQ(
      Diff("  a\n  b\n  c\nupdate:\n  d\n  e\n  f\n", "  a\n  b\n  c\nupdate:\n  d\n  g\n  f\n", 1),
      "@@ update:\n   d\n-  e\n+  g\n   f\n");
  EXPECT_EQ(Diff("  a\n  b\n  c\n", "  a\n  c\n", 0), "@@ forward:\n-  b\n");
  EXPECT_EQ(Diff("  a\n", "  a\n", 1), "");
}

}  // namespace
}  // namespace zg::testing
