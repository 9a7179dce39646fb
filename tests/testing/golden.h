// Golden tests of passes: files of small graphs with the text that passes make of them.
//
//   // A value that nobody reads goes.
//   // RUN: eliminate-dead-nodes infer-sbp
//   graph "g" mesh(data=2) micro_batches=2
//   forward:
//     ...
//   // EXPECT
//   graph "g" mesh(data=2) micro_batches=2
//   // -----
//   (the next case)
//
// `// RUN:` passes by name with options, `bucketing(bucket_bytes=64)`; without any, the graph is
//   only verified.
// `// RUN-TWICE` (another line) the passes run a second time and must change nothing.
// `// EXPECT` the text that comes out; `// EXPECT-UNCHANGED` that is the input;
//   `// EXPECT-ERROR: text` an error that contains the text.
// Every input must be as Print would print it, but for comments and blank lines.
// tools/update_golden.sh writes what stands below `// EXPECT`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/passes/pass_registry.h"

namespace zg::testing {

struct GoldenCase {
  enum class Expectation { kMissing, kText, kUnchanged, kError };

  std::string source;  // the file
  int line = 1;        // where the case begins in it
  std::string passes;
  bool twice = false;
  std::string input;  // all lines above the expectation: comments are comments to the parser too
  Expectation expectation = Expectation::kMissing;
  std::string expected;  // the text, or what the error contains
};

// Errors: a case without `// RUN:`, a line that begins like a directive and is none.
StatusOr<std::vector<GoldenCase>> ParseGoldenFile(std::string_view text, std::string_view source);

// Why the case fails; empty when it passes.
std::string CheckGoldenCase(const GoldenCase& golden_case, const PassRegistry& registry);

// The file with the text below each `// EXPECT` as it comes out now (also where that line is still
// missing) and inputs as Print prints them. Errors: a case that expects text and ends in an error.
StatusOr<std::string> UpdateGoldenFile(std::string_view text, std::string_view source,
                                       const PassRegistry& registry);

}  // namespace zg::testing
