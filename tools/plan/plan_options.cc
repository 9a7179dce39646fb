#include "tools/plan/plan_options.h"

#include <string_view>
#include <utility>
#include <vector>

#include "framework/job/compile_flags.h"
#include "framework/job/report.h"
#include "models/gpt/presets.h"
#include "tools/plan/byte_size.h"

namespace zg::plan {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr double kMaxBatch = 1e9;
constexpr double kMaxParameters = 1e18;

// Flags that only one model has.
struct SizeFlag {
  std::string_view name;
  std::vector<std::string_view> models;
};
const std::vector<SizeFlag>& SizeFlags() {
  static const std::vector<SizeFlag> flags = {
      {"preset", {"gpt"}},  {"layers", {"gpt", "recipe"}}, {"heads", {"gpt"}},
      {"embd", {"gpt"}},    {"context", {"gpt"}},          {"vocab", {"gpt"}},
      {"dropout", {"gpt"}}, {"width", {"recipe"}},
  };
  return flags;
}

Status CheckSizesBelongTo(const std::string& model, const FlagParser& flags) {
  for (const SizeFlag& flag : SizeFlags()) {
    if (!flags.is_given(flag.name)) continue;
    bool belongs = false;
    for (std::string_view other : flag.models) belongs = belongs || other == model;
    if (!belongs) {
      return InvalidArgument("--{}: --model {} has no such size; leave it out", flag.name, model);
    }
  }
  if (flags.is_given("optimizer") && model != "gpt") {
    return InvalidArgument("--optimizer: --model {} has an optimizer of its own; leave it out",
                           model);
  }
  return Status::Ok();
}

Status ResolveGpt(PlanOptions* options) {
  const models::GptConfig& preset = models::FindGptPreset(options->preset)->config;
  for (const auto& [size, preset_size] : {std::pair(&options->layers, preset.layers),
                                          {&options->heads, preset.heads},
                                          {&options->channels, preset.channels},
                                          {&options->context, preset.context},
                                          {&options->vocabulary, preset.vocabulary}}) {
    if (*size == 0) *size = preset_size;
  }
  if (options->channels % options->heads != 0) {
    return InvalidArgument("--heads: got {}, expected a divisor of --embd {}", options->heads,
                           options->channels);
  }
  return Status::Ok();
}

Status CheckFiles(const PlanOptions& options) {
  for (const auto& [flag, path] :
       {std::pair<std::string_view, const std::string&>("json", options.json),
        {"html", options.html}}) {
    if (path.empty()) continue;
    ZG_RETURN_IF_ERROR(CheckWritable(path).WithContext(fmt::format("--{}", flag)));
  }
  return Status::Ok();
}

// The formulas know a number of parameters, ranks and a stage.
Status CheckParamsMode(const FlagParser& flags) {
  for (const char* name : {"model",         "preset",
                           "layers",        "heads",
                           "embd",          "context",
                           "vocab",         "dropout",
                           "width",         "optimizer",
                           "batch",         "micro-batches",
                           "bucket-mb",     "shard-min-elements",
                           "partition",     "dtype",
                           "recompute",     "reduce-every",
                           "clip-norm",     "update-early",
                           "on-non-finite", "print-ir",
                           "mesh",          "comm",
                           "fit",           "html"}) {
    if (!flags.is_given(name)) continue;
    return InvalidArgument(
        "--{}: --params asks for the paper's formulas, which know no model; give one of them",
        name);
  }
  return Status::Ok();
}

}  // namespace

std::string ChoicesAsFlags(const PlanOptions& options) {
  std::string flags =
      fmt::format("--zero {} --batch {} --micro-batches {}", options.compile.zero.stage,
                  options.batch, options.compile.micro_batches);
  for (const std::string& modules : options.compile.recompute) {
    flags += fmt::format(" --recompute '{}'", modules);
  }
  return flags;
}

void AddPlanFlags(FlagParser* flags, PlanOptions* options) {
  std::vector<std::string> presets;
  for (const models::GptPreset& preset : models::GptPresets()) presets.emplace_back(preset.name);
  flags->section("Model");
  flags->add_choice("model", &options->model, {"gpt", "recipe", "classifier"},
                    "what is trained, as in //models");
  flags->add_choice("preset", &options->preset, presets,
                    "sizes of a known gpt; the flags below change them");
  const NumberRange size = at_least(0);  // 0: the preset's, or the demo's default
  flags->add_int(
      "layers", &options->layers, size,
      "transformer blocks or linear layers; 0: as in the preset or demo, as in all sizes");
  flags->add_int("heads", &options->heads, size, "attention heads; must divide --embd");
  flags->add_int("embd", &options->channels, size, "channels");
  flags->add_int("context", &options->context, size, "tokens that a prediction sees");
  flags->add_int("vocab", &options->vocabulary, size, "different tokens");
  flags->add_int("width", &options->width, size, "inputs and outputs of a linear layer");
  flags->add_double("dropout", &options->dropout, between(0, 0.99), "dropout probability");

  flags->section("Training");
  flags->add_choice("optimizer", &options->optimizer, {"adamw", "muon"},
                    "of a gpt: adamw, or muon for the blocks' matrices and adamw for the rest");
  flags->add_int("ranks", &options->ranks, between(1, kMaxRanks), "processes");
  flags->add_int("batch", &options->batch, between(1, kMaxBatch), "samples per micro-batch");
  flags->add_choice(
      "comm", &options->comm, {"shared", "messages"},
      "how ranks talk: memory of one host, or messages between hosts, which take room");

  AddCompileFlags(flags, &options->compile);

  flags->section("Machine");
  flags->add_double("bandwidth-gb-s", &options->machine.bandwidth_gb_s, above(0),
                    "what one rank sends per second, in units of 10^9 bytes", "GB");
  flags->add_double("latency-us", &options->machine.latency_us, at_least(0), "of one message",
                    "US");
  flags->add_double("gflops", &options->machine.gflops, above(0),
                    "what one rank computes per second, in units of 10^9 operations");

  flags->section("Questions");
  flags->add_bool("compare-stages", &options->compare_stages,
                  "plan every stage, and warn where a higher one needs more");
  flags->add_string("fit", &options->fit,
                    "find the smallest stage and largest micro-batch that need no more", "BYTES");
  flags->add_double("params", &options->num_parameters, {0, kMaxParameters, /*without_min=*/true},
                    "no model but the ZeRO paper's formulas for so many parameters", "COUNT");

  flags->section("Files");
  flags->add_string("json", &options->json, "write the plan as one JSON object", "FILE");
  flags->add_string("html", &options->html,
                    "write a page with memory over time and the schedule; needs no other file",
                    "FILE");
}

Status ResolvePlanOptions(const FlagParser& flags, PlanOptions* options) {
  ZG_RETURN_IF_ERROR(CheckFiles(*options));
  if (flags.is_given("params")) return CheckParamsMode(flags);
  ZG_RETURN_IF_ERROR(CheckSizesBelongTo(options->model, flags));
  if (options->model == "gpt") ZG_RETURN_IF_ERROR(ResolveGpt(options));
  if (options->model == "recipe") {
    if (options->layers == 0) options->layers = 20;
    if (options->width == 0) options->width = 2000;
  }
  if (!options->fit.empty() && flags.is_given("mesh")) {
    return InvalidArgument("--mesh: --fit searches along one axis of ranks; give one of them");
  }
  TakeRanksOfMesh(flags, options->compile, &options->ranks);
  ZG_RETURN_IF_ERROR(ResolveCompileFlags(flags, options->ranks, &options->compile));
  if (!options->fit.empty()) ZG_RETURN_IF_ERROR(ParseByteSize("--fit", options->fit).status());
  return Status::Ok();
}

}  // namespace zg::plan
