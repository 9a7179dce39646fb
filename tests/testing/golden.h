// Golden tests of passes: files of small graphs with what passes change in them.
//
//   // A value that nobody reads goes.
//   // RUN: eliminate-dead-nodes
//   // RUN-EXECUTE
//   %x: f32[4]
//   %y: f32[4] = relu %x
//   %z: f32[4] = gelu %x
//   output %z (name="z")
//   // EXPECT-DIFF
//    %x: f32[4]
//   -%y: f32[4] = relu %x
//    %z: f32[4] = gelu %x
//   // -----
//   (the next case)
//
// Graphs are in the short form of fragment.h, as PrintFragment prints it, plus comments and blank
// lines.
//
// `// RUN:` passes by name with options, `bucketing(bucket_bytes=64)`; without any, the graph is
//   only verified.
// `// RUN-TWICE` (another line) the passes run a second time and must change nothing.
// `// RUN-EXECUTE` (another line) the graphs before and after each pass run on virtual ranks and
//   must compute the same (pass_check.h; IsRunnable() says which cannot run): on as many as the mesh has, and on 2 and 3, without
//   placements also on 1, where the dims divide.
// `// EXPECT-DIFF` the lines that change, with one line around them; `// EXPECT-UNCHANGED` none;
//   `// EXPECT-ERROR: text` an error that contains the text.
// tools/update_golden.sh writes what stands below `// EXPECT-DIFF`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/passes/pass_registry.h"

namespace zg::testing {

struct GoldenCase {
  enum class Expectation { kMissing, kDiff, kUnchanged, kError };

  std::string source;  // the file
  int line = 1;        // where the case begins in it
  std::string passes;
  bool twice = false;
  bool execute = false;
  std::string input;  // all lines above the expectation: comments are comments to the parser too
  Expectation expectation = Expectation::kMissing;
  std::string expected;  // the changed lines, or a text that the error contains
};

// Errors: a case without `// RUN:`, a line that begins like a directive but is none.
StatusOr<std::vector<GoldenCase>> ParseGoldenFile(std::string_view text, std::string_view source);

// Why the case fails; empty if it passes.
std::string CheckGoldenCase(const GoldenCase& golden_case, const PassRegistry& registry);

// The file with the current output below each `// EXPECT-DIFF` (also if that line is still missing)
// and inputs as they are printed. Errors: a case that expects changes and ends in an error.
StatusOr<std::string> UpdateGoldenFile(std::string_view text, std::string_view source,
                                       const PassRegistry& registry);

}  // namespace zg::testing
