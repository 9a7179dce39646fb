#include "tests/testing/check_pipeline.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/verifier.h"
#include "tests/testing/pass_check.h"
#include "tests/testing/pass_text.h"
#include "tests/testing/ranked_run.h"

namespace zg::testing {

namespace {

bool IsOfPlacement(std::string_view pass) {
  return pass == "place-parameters" || pass == "place-results" || pass == "infer-sbp";
}

}  // namespace

Status VisitPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                     const PassVisitor& visit) {
  ir::Graph graph = MakeRandomModel(options);
  ZG_RETURN_IF_ERROR(ir::Verify(graph).WithContext("the model"));
  ir::VerifyOptions rules;
  for (const std::string& text : MakeRandomPipeline(options)) {
    if (registry.Find(PassName(text)) == nullptr) continue;
    ZG_ASSIGN_OR_RETURN(const PassList passes, ParsePasses(text, registry));
    const Pass& pass = *passes[0];
    const std::string printed = ir::Print(graph);
    ZG_ASSIGN_OR_RETURN(const ir::Graph before, ir::Parse(printed));
    const auto error = [&](const std::string& message) {
      return InvalidArgument("{}: {}\n{}", text, message, printed);
    };
    const StatusOr<bool> changed = pass.Run(graph);
    if (!changed.ok()) {
      // A model may have no module or parameter that the pattern names.
      const auto says = [&](const char* text) {
        return changed.status().message().find(text) != std::string::npos;
      };
      if (says("matches no module") || says("no parameter has this name")) continue;
      // Random rules are not always valid for a program.
      if (options.tensor_ranks > 1 && IsOfPlacement(pass.name())) return Status::Ok();
      return error(changed.status().message());
    }
    rules.collectives_inserted = rules.collectives_inserted || pass.name() == "insert-collectives";
    const Status verified = ir::Verify(graph, rules);
    if (!verified.ok()) return error(verified.message());
    const std::string after = ir::Print(graph);
    if (*changed != (after != printed))
      return error("it does not say whether it changed the graph");
    if (!*changed) continue;
    StatusOr<ir::Graph> reread = ir::Parse(after);
    if (!reread.ok()) return error(reread.status().message());
    if (ir::Print(*reread) != after) return error("the result changes when it is read again");
    // All others are no-ops if they have run already.
    if (pass.name() != "build-backward" && pass.name() != "average-eval-results") {
      const StatusOr<bool> again = pass.Run(*reread);
      if (!again.ok()) return error("the second run: " + again.status().message());
      if (ir::Print(*reread) != after) {
        return error("a second run changes the graph to\n" + ir::Print(*reread) + "from\n" + after);
      }
    }
    if (!visit(text, before, graph)) return Status::Ok();
  }
  return Status::Ok();
}

std::string CheckPipeline(const RandomModelOptions& options, const PassRegistry& registry,
                          PassCounts* counts) {
  std::string failure;
  std::optional<ir::Graph> last_runnable;
  bool skipped_eval_weights = false;
  const auto check = [&](std::string_view pass, const ir::Graph& before, const ir::Graph& after) {
    const std::string name = PassName(pass);
    if (!IsRunnable(after)) {
      if (!last_runnable) last_runnable = before.Clone();
      skipped_eval_weights = skipped_eval_weights || name == "eval-weights";
      return true;
    }
    const ir::Graph runnable = last_runnable ? std::move(*last_runnable) : before.Clone();
    last_runnable.reset();
    PassCheckOptions check_options;
    check_options.seed = options.seed;
    check_options.has_other_evals = std::exchange(skipped_eval_weights, false);
    if (counts != nullptr && counts->IsEnough(name)) return true;
    const std::string difference = CheckPass(pass, runnable, after, check_options);
    if (counts != nullptr) ++counts->executed[name];
    if (difference.empty()) return true;
    failure = fmt::format("{}: {}{}", pass, difference, ir::Print(before));
    return false;
  };
  const Status status = VisitPipeline(options, registry, check);
  return status.ok() ? failure : status.message() + "\n";
}

}  // namespace zg::testing
