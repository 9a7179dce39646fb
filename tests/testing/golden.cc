#include "tests/testing/golden.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/passes/pass_manager.h"

namespace zg::testing {
namespace {

constexpr std::string_view kSeparator = "// -----";
constexpr std::string_view kRun = "// RUN:";
constexpr std::string_view kRunTwice = "// RUN-TWICE";
constexpr std::string_view kExpect = "// EXPECT";
constexpr std::string_view kExpectUnchanged = "// EXPECT-UNCHANGED";
constexpr std::string_view kExpectError = "// EXPECT-ERROR:";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string Join(const std::vector<std::string_view>& lines) {
  std::string text;
  for (std::string_view line : lines) text.append(line).append("\n");
  return text;
}

bool IsComment(std::string_view line) { return StartsWith(Trim(line), "//"); }

std::string WithoutCommentsAndBlankLines(std::string_view text) {
  std::vector<std::string_view> lines = Lines(text);
  lines.erase(
      std::remove_if(lines.begin(), lines.end(),
                     [](std::string_view line) { return Trim(line).empty() || IsComment(line); }),
      lines.end());
  return Join(lines);
}

// The lines of two texts, those that differ marked with - (expected) and + (got).
std::string Diff(const std::string& expected, const std::string& got) {
  const std::vector<std::string_view> a = Lines(expected);
  const std::vector<std::string_view> b = Lines(got);
  const size_t shorter = std::min(a.size(), b.size());
  size_t same_before = 0;
  while (same_before < shorter && a[same_before] == b[same_before]) ++same_before;
  size_t same_after = 0;
  while (same_after < shorter - same_before &&
         a[a.size() - 1 - same_after] == b[b.size() - 1 - same_after]) {
    ++same_after;
  }
  std::string diff;
  for (size_t i = 0; i < same_before; ++i) diff += fmt::format("  {}\n", a[i]);
  for (size_t i = same_before; i < a.size() - same_after; ++i) diff += fmt::format("- {}\n", a[i]);
  for (size_t i = same_before; i < b.size() - same_after; ++i) diff += fmt::format("+ {}\n", b[i]);
  for (size_t i = a.size() - same_after; i < a.size(); ++i) diff += fmt::format("  {}\n", a[i]);
  return diff;
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
    if (result.expectation == Expectation::kText) {
      result.expected.append(lines[i]).append("\n");
    } else if (text == kExpect) {
      result.expectation = Expectation::kText;
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
    } else if (StartsWith(text, "// RUN") || StartsWith(text, "// EXPECT")) {
      return error(InvalidArgument("unknown directive '{}', expected {}, {}, {}, {} or {}", text,
                                   kRun, kRunTwice, kExpect, kExpectUnchanged, kExpectError));
    }
    if (result.expectation == Expectation::kMissing) result.input.append(lines[i]).append("\n");
  }
  result.expected = Trim(result.expected);
  if (result.expectation == Expectation::kText) result.expected += "\n";
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
  return ir::Parse(golden_case.input, {golden_case.source, golden_case.line});
}

StatusOr<std::string> RunPasses(const GoldenCase& golden_case, const PassRegistry& registry,
                                ir::Graph* graph) {
  ZG_ASSIGN_OR_RETURN(PassList passes, ParsePasses(golden_case.passes, registry, "// RUN"));
  ZG_RETURN_IF_ERROR(PassManager(std::move(passes)).Run(*graph));
  return ir::Print(*graph);
}

StatusOr<std::string> ParseAndRun(const GoldenCase& golden_case, const PassRegistry& registry) {
  ZG_ASSIGN_OR_RETURN(ir::Graph graph, ParseInput(golden_case));
  return RunPasses(golden_case, registry, &graph);
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
  if (ir::Print(*graph) != input) {
    return "the input is not as it is printed\n" + Diff(ir::Print(*graph), input);
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
  const std::string& expected =
      golden_case.expectation == Expectation::kUnchanged ? input : golden_case.expected;
  if (*output != expected) return "got other text\n" + Diff(expected, *output);
  StatusOr<ir::Graph> reread = ir::Parse(*output, {"the output", 1});
  if (!reread.ok()) return "the output does not parse: " + reread.status().message() + "\n";
  if (!golden_case.twice) return "";
  StatusOr<std::string> again = RunPasses(golden_case, registry, &*graph);
  if (!again.ok()) return "the second run: " + again.status().message() + "\n";
  if (*again != *output) return "the second run changed the graph\n" + Diff(*output, *again);
  return "";
}

// The lines of a case with its graph as Print prints it. Comments between the graph's lines have no
// place there: then the lines stay as they are.
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
  const std::string printed = ir::Print(*graph);
  const std::string input = Join(UpdateInput(Lines(golden_case.input), printed));
  if (fixed) return input;
  ZG_ASSIGN_OR_RETURN(const std::string output, ParseAndRun(golden_case, registry));
  return fmt::format("{}{}\n{}", input, kExpect, output);
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
