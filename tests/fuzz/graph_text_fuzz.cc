// Any text as a graph: an error, or a graph whose printed text gives the same graph again, and on
// which the verifier does not crash.
#include <string>
#include <string_view>

#include "framework/base/check.h"
#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/scope_pattern.h"
#include "framework/ir/verifier.h"
#include "framework/ops/register_all_ops.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zg::RegisterAllOps();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto patterns = zg::ParseScopePatterns(text);
  ZG_CHECK(patterns.ok() || !patterns.status().message().empty(), "an error says nothing");

  const zg::StatusOr<zg::ir::Graph> graph = zg::ir::Parse(text);
  if (!graph.ok()) return 0;
  for (const bool inserted : {false, true}) {
    const zg::Status status = zg::ir::Verify(*graph, {inserted});
    ZG_CHECK(status.ok() || !status.message().empty(), "an error says nothing");
  }
  const std::string printed = zg::ir::Print(*graph);
  const zg::StatusOr<zg::ir::Graph> again = zg::ir::Parse(printed);
  ZG_CHECK(again.ok(), "what was printed cannot be parsed: {}\n{}", again.status().message(),
           printed);
  ZG_CHECK(zg::ir::Print(*again) == printed, "printed again it is another text:\n{}", printed);
  return 0;
}
