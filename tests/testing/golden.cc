#include "tests/testing/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"
#include "framework/passes/pass_manager.h"
#include "tests/testing/fragment.h"
#include "tests/testing/lines.h"
#include "tests/testing/pass_check.h"
#include "tests/testing/ranked_run.h"

namespace zg::testing {
namespace {

constexpr std::string_view kSeparator = "// -----";
constexpr std::string_view kRun = "// RUN:";
constexpr std::string_view kRunTwice = "// RUN-TWICE";
constexpr std::string_view kRunExecute = "// RUN-EXECUTE";
constexpr std::string_view kExpectDiff = "// EXPECT-DIFF";
constexpr std::string_view kExpectUnchanged = "// EXPECT-UNCHANGED";
constexpr std::string_view kExpectError = "// EXPECT-ERROR:";

// Lines around a change, and around one of a whole input.
constexpr int kContext = 1;
constexpr int kAll = 1 << 20;

std::string WithoutCommentsAndBlankLines(std::string_view text) {
  std::vector<std::string_view> lines = Lines(text);
  lines.erase(
      std::remove_if(lines.begin(), lines.end(),
                     [](std::string_view line) { return Trim(line).empty() || IsComment(line); }),
      lines.end());
  return Join(lines);
}

StatusOr<GoldenCase> ParseCase(const std::vector<std::string_view>& lines, std::string_view source,
                               int line) {
  using Expectation = GoldenCase::Expectation;
  GoldenCase result;
  result.source = source;
  result.line = line;
  bool has_run = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto error = [&](const Status& status) {
      return status.WithContext(fmt::format("{}:{}", source, line + static_cast<int>(i)));
    };
    const std::string_view text = Trim(lines[i]);
    if (result.expectation == Expectation::kDiff) {
      if (!text.empty()) result.expected.append(lines[i]).append("\n");
    } else if (text == kExpectDiff) {
      result.expectation = Expectation::kDiff;
    } else if (text == kExpectUnchanged) {
      result.expectation = Expectation::kUnchanged;
    } else if (StartsWith(text, kExpectError)) {
      result.expectation = Expectation::kError;
      result.expected = Trim(text.substr(kExpectError.size()));
      if (result.expected.empty()) return error(InvalidArgument("got no text to expect"));
    } else if (result.expectation != Expectation::kMissing && !text.empty()) {
      return error(InvalidArgument("got '{}' below the expectation, expected {} or the end", text,
                                   kSeparator));
    } else if (StartsWith(text, kRun)) {
      if (has_run) return error(InvalidArgument("a second {} in one case", kRun));
      has_run = true;
      result.passes = Trim(text.substr(kRun.size()));
    } else if (text == kRunTwice) {
      result.twice = true;
    } else if (text == kRunExecute) {
      result.execute = true;
    } else if (StartsWith(text, "// RUN") || StartsWith(text, "// EXPECT")) {
      return error(InvalidArgument("unknown directive '{}', expected {}, {}, {}, {}, {} or {}",
                                   text, kRun, kRunTwice, kRunExecute, kExpectDiff,
                                   kExpectUnchanged, kExpectError));
    }
    if (result.expectation == Expectation::kMissing) result.input.append(lines[i]).append("\n");
  }
  if (!has_run) {
    return InvalidArgument("{}:{}: a case without '{}'", source, line, kRun);
  }
  return result;
}

// Cuts a file at its separators and calls `visit` with the lines of each case and the number of the
// first.
template <typename Visit>
Status ForEachCase(std::string_view text, const Visit& visit) {
  std::vector<std::string_view> lines;
  int line_number = 1;
  int first_line = 1;
  for (std::string_view line : Lines(text)) {
    ++line_number;
    if (Trim(line) != kSeparator) {
      lines.push_back(line);
      continue;
    }
    ZG_RETURN_IF_ERROR(visit(lines, first_line));
    lines.clear();
    first_line = line_number;
  }
  return visit(lines, first_line);
}

StatusOr<ir::Graph> ParseInput(const GoldenCase& golden_case) {
  return ParseFragment(golden_case.input, {golden_case.source, golden_case.line});
}

StatusOr<std::string> RunPasses(const GoldenCase& golden_case, const PassRegistry& registry,
                                ir::Graph* graph) {
  ZG_ASSIGN_OR_RETURN(PassList passes, ParsePasses(golden_case.passes, registry, "// RUN"));
  ZG_RETURN_IF_ERROR(PassManager(std::move(passes)).Run(*graph));
  return PrintFragment(*graph);
}

// The passes of a case, one by one, each checked by the results of its graphs on `num_ranks` ranks.
// Does nothing if the values of the case do not divide by them.
std::string ExecuteOn(int num_ranks, const GoldenCase& golden_case, const PassRegistry& registry) {
  StatusOr<ir::Graph> graph = ParseInput(golden_case);
  const int own_ranks = graph->mesh().num_ranks();
  if (num_ranks != own_ranks) {
    graph->set_mesh(Mesh::DataParallel(num_ranks));
    graph->set_micro_batches(graph->micro_batches() / own_ranks * num_ranks);
    if (!ir::Verify(*graph).ok()) return "";
  }
  StatusOr<PassList> passes = ParsePasses(golden_case.passes, registry);
  StatusOr<ir::Graph> before = ir::Parse(ir::Print(*graph));
  for (const std::unique_ptr<Pass>& pass : *passes) {
    const StatusOr<bool> changed = pass->Run(*graph);
    const Status verified = ir::Verify(*graph);
    std::string failure = !changed.ok()    ? changed.status().message() + "\n"
                          : !verified.ok() ? verified.message() + "\n"
                                           : "";
    // Options of a pass stand behind its name.
    const std::string_view text(golden_case.passes);
    PassCheckOptions options;
    options.is_fragment = true;
    const bool is_runnable = failure.empty() && IsRunnable(*graph);
    if (is_runnable) {
      failure = CheckPass(text.substr(text.find(pass->name())), *before, *graph, options);
    }
    if (!failure.empty())
      return fmt::format("{} on {} ranks: {}", pass->name(), num_ranks, failure);
    // Else the next pass is checked together with this one.
    if (is_runnable) before = ir::Parse(ir::Print(*graph));
  }
  return "";
}

std::string ExecuteCase(const GoldenCase& golden_case, const PassRegistry& registry) {
  const ir::Graph graph = *ParseInput(golden_case);
  const std::vector<ir::Node*> nodes = graph.AllNodes();
  const bool is_placed = std::any_of(nodes.begin(), nodes.end(), [](const ir::Node* node) {
    return !node->outputs.empty() && !node->outputs[0]->sbp.empty();
  });
  const int own_ranks = graph.mesh().num_ranks();
  std::set<int> counts = {own_ranks};
  if (graph.mesh().num_axes() == 1 && !is_placed) counts = {1, 2, 3, own_ranks};
  if (graph.mesh().num_axes() == 1 && is_placed && own_ranks > 1) counts = {2, 3, own_ranks};
  for (int num_ranks : counts) {
    const std::string failure = ExecuteOn(num_ranks, golden_case, registry);
    if (!failure.empty()) return failure;
  }
  return "";
}

std::string CheckError(const GoldenCase& golden_case, const Status& status) {
  if (status.message().find(golden_case.expected) != std::string::npos) return "";
  return fmt::format("expected an error with: {}\ngot: {}\n", golden_case.expected,
                     status.message());
}

std::string CheckCase(const GoldenCase& golden_case, const PassRegistry& registry) {
  using Expectation = GoldenCase::Expectation;
  const bool error_wanted = golden_case.expectation == Expectation::kError;
  StatusOr<ir::Graph> graph = ParseInput(golden_case);
  if (!graph.ok()) {
    return error_wanted ? CheckError(golden_case, graph.status()) : graph.status().message() + "\n";
  }
  const std::string input = WithoutCommentsAndBlankLines(golden_case.input);
  if (PrintFragment(*graph) != input) {
    return "the input is not as it is printed\n" + Diff(PrintFragment(*graph), input, kAll);
  }
  StatusOr<std::string> output = RunPasses(golden_case, registry, &*graph);
  if (error_wanted) {
    return output.ok()
               ? fmt::format("expected an error with: {}\ngot:\n{}", golden_case.expected, *output)
               : CheckError(golden_case, output.status());
  }
  if (!output.ok()) return output.status().message() + "\n";
  if (golden_case.expectation == Expectation::kMissing) {
    return "the case says nothing about what to expect; it gives\n" + *output;
  }
  const std::string diff = Diff(input, *output, kContext);
  if (diff != golden_case.expected) return "got other changes\n" + diff;
  StatusOr<ir::Graph> reread = ParseFragment(*output, {"the output", 1});
  if (!reread.ok()) return "the output does not parse: " + reread.status().message() + "\n";
  if (PrintFragment(*reread) != *output) return "the output changes when it is read again\n";
  if (golden_case.execute) {
    const std::string failure = ExecuteCase(golden_case, registry);
    if (!failure.empty()) return failure;
  }
  if (!golden_case.twice) return "";
  StatusOr<std::string> again = RunPasses(golden_case, registry, &*graph);
  if (!again.ok()) return "the second run: " + again.status().message() + "\n";
  if (*again == *output) return "";
  return "the second run changed the graph\n" + Diff(*output, *again, kContext);
}

// The lines of a case with its graph as Print prints it. Comments between the graph's lines have no
// place there: then the lines stay unchanged.
std::vector<std::string_view> UpdateInput(const std::vector<std::string_view>& lines,
                                          std::string_view printed) {
  const auto is_graph = [](std::string_view line) {
    return !Trim(line).empty() && !IsComment(line);
  };
  const auto begin = std::find_if(lines.begin(), lines.end(), is_graph);
  const auto end = std::find_if(lines.rbegin(), lines.rend(), is_graph).base();
  if (std::any_of(begin, end, IsComment)) return lines;
  std::vector<std::string_view> updated(lines.begin(), begin);
  const std::vector<std::string_view> graph = Lines(printed);
  updated.insert(updated.end(), graph.begin(), graph.end());
  updated.insert(updated.end(), end, lines.end());
  return updated;
}

StatusOr<std::string> UpdateCase(const GoldenCase& golden_case, const PassRegistry& registry) {
  using Expectation = GoldenCase::Expectation;
  const bool fixed = golden_case.expectation == Expectation::kError ||
                     golden_case.expectation == Expectation::kUnchanged;
  StatusOr<ir::Graph> graph = ParseInput(golden_case);
  if (!graph.ok()) return fixed ? StatusOr<std::string>(golden_case.input) : graph.status();
  const std::string printed = PrintFragment(*graph);
  const std::string input = Join(UpdateInput(Lines(golden_case.input), printed));
  if (fixed) return input;
  ZG_ASSIGN_OR_RETURN(const std::string output, RunPasses(golden_case, registry, &*graph));
  return fmt::format("{}{}\n{}", input, kExpectDiff, Diff(printed, output, kContext));
}

}  // namespace

StatusOr<std::vector<GoldenCase>> ParseGoldenFile(std::string_view text, std::string_view source) {
  std::vector<GoldenCase> cases;
  const auto add = [&](const std::vector<std::string_view>& lines, int line) -> Status {
    ZG_ASSIGN_OR_RETURN(GoldenCase golden_case, ParseCase(lines, source, line));
    cases.push_back(std::move(golden_case));
    return Status::Ok();
  };
  ZG_RETURN_IF_ERROR(ForEachCase(text, add));
  return cases;
}

std::string CheckGoldenCase(const GoldenCase& golden_case, const PassRegistry& registry) {
  const std::string failure = CheckCase(golden_case, registry);
  if (failure.empty()) return "";
  return fmt::format("{}:{}: {}", golden_case.source, golden_case.line, failure);
}

StatusOr<std::string> UpdateGoldenFile(std::string_view text, std::string_view source,
                                       const PassRegistry& registry) {
  std::string updated;
  const auto add = [&](const std::vector<std::string_view>& lines, int line) -> Status {
    ZG_ASSIGN_OR_RETURN(const GoldenCase golden_case, ParseCase(lines, source, line));
    StatusOr<std::string> updated_case = UpdateCase(golden_case, registry);
    if (!updated_case.ok()) {
      return updated_case.status().WithContext(fmt::format("{}:{}", source, line));
    }
    if (line != 1) updated.append(kSeparator).append("\n");
    updated += *updated_case;
    if (golden_case.expectation == GoldenCase::Expectation::kUnchanged) {
      updated.append(kExpectUnchanged).append("\n");
    } else if (golden_case.expectation == GoldenCase::Expectation::kError) {
      updated += fmt::format("{} {}\n", kExpectError, golden_case.expected);
    }
    return Status::Ok();
  };
  ZG_RETURN_IF_ERROR(ForEachCase(text, add));
  return updated;
}

}  // namespace zg::testing
