#include "tools/plan/plan_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/byte_size.h"
#include "framework/job/compile_flags.h"
#include "framework/job/report.h"
#include "models/gpt/presets.h"

namespace zg::plan {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxThreads = 1024;
constexpr double kMaxBatch = 1e9;
constexpr double kMaxParameters = 1e18;

// Flags that only one model has.
struct SizeFlag {
  std::string_view name;
  std::vector<std::string_view> models;
};
const std::vector<SizeFlag>& SizeFlags() {
  static const std::vector<SizeFlag> flags = {
      {"preset", {"gpt", "llama"}},
      {"layers", {"gpt", "recipe"}},
      {"heads", {"gpt"}},
      {"embd", {"gpt"}},
      {"context", {"gpt", "llama"}},
      {"vocab", {"gpt"}},
      {"vocab-multiple", {"gpt"}},
      {"dropout", {"gpt"}},
      {"width", {"recipe"}},
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

Status UnknownPreset(const PlanOptions& options, const std::vector<std::string>& known) {
  return InvalidArgument("--preset: got {}, which --model {} does not have; expected one of {}",
                         options.preset, options.model, fmt::join(known, ", "));
}

template <typename Presets>
std::vector<std::string> NamesOf(const Presets& presets) {
  std::vector<std::string> names;
  for (const auto& preset : presets) names.emplace_back(preset.name);
  return names;
}

Status ResolveLlama(PlanOptions* options) {
  const models::LlamaPreset* preset = models::FindLlamaPreset(options->preset);
  if (preset == nullptr) return UnknownPreset(*options, NamesOf(models::LlamaPresets()));
  options->llama = preset->config;
  if (options->context > 0) options->llama.context = options->context;
  return Status::Ok();
}

Status ResolveGpt(PlanOptions* options) {
  const models::GptPreset* found = models::FindGptPreset(options->preset);
  if (found == nullptr) return UnknownPreset(*options, NamesOf(models::GptPresets()));
  const models::GptConfig& preset = found->config;
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
  std::error_code error;
  const bool is_one = !options.json.empty() && !options.html.empty() &&
                      std::filesystem::weakly_canonical(options.json, error) ==
                          std::filesystem::weakly_canonical(options.html, error);
  if (!is_one) return Status::Ok();
  return InvalidArgument("--html: got {}, which --json writes, too; give each a file of its own",
                         options.html);
}

// The formulas use only a number of parameters, ranks and a stage.
Status CheckParamsMode(const FlagParser& flags) {
  static const std::set<std::string> known = {"params", "ranks", "zero", "json"};
  for (const ResolvedFlag& flag : flags.resolved()) {
    if (!flags.is_given(flag.name) || known.count(flag.name) > 0) continue;
    return InvalidArgument(
        "--{}: --params asks for the paper's formulas, which know only --ranks and --zero; leave "
        "it out",
        flag.name);
  }
  return Status::Ok();
}

// The flags that a search does not choose, if they differ from their defaults.
std::string OtherCompileFlags(const CompileOptions& compile) {
  static const std::set<std::string> chosen = {
      "zero", "mesh", "placement", "micro-batches", "recompute", "secondary-shards", "print-ir"};
  const std::vector<ResolvedFlag> defaults = CompileFlagsOf(CompileOptions());
  const std::vector<ResolvedFlag> flags = CompileFlagsOf(compile);
  std::string text;
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string value = FormatFlagValue(flags[i].value);
    if (chosen.count(flags[i].name) > 0 || value == FormatFlagValue(defaults[i].value)) continue;
    const bool is_switch = std::holds_alternative<bool>(flags[i].value);
    text += is_switch ? fmt::format(" --{}", flags[i].name)
                      : fmt::format(" --{} {}", flags[i].name, value);
  }
  return text;
}

}  // namespace

std::string ChoicesAsFlags(const PlanOptions& options) {
  const CompileOptions& compile = options.compile;
  const bool has_rules = !compile.zero.stage_rules.empty();
  std::string flags =
      fmt::format("--zero {0}{1}{0} --batch {2} --micro-batches {3}", has_rules ? "'" : "",
                  compile.zero.stages_text(), options.batch, compile.micro_batches);
  if (!compile.mesh.empty()) flags += fmt::format(" --mesh {}", Mesh(compile.mesh).ToString());
  if (!compile.placement.empty() && !options.placement_file.empty()) {
    flags += fmt::format(" --placement {}", options.placement_file);
  }
  if (!compile.zero.secondary_axis.empty()) {
    flags += fmt::format(" --secondary-shards {}", compile.zero.secondary_axis);
  }
  for (const std::string& modules : compile.recompute) {
    flags += fmt::format(" --recompute '{}'", modules);
  }
  return flags;
}

std::string CommandOf(const PlanOptions& options) {
  std::string sizes;
  if (options.model == "gpt") {
    sizes = fmt::format("--layers {} --heads {} --embd {} --context {} --vocab {}", options.layers,
                        options.heads, options.channels, options.context, options.vocabulary);
    if (options.vocabulary_multiple != 1) {
      sizes += fmt::format(" --vocab-multiple {}", options.vocabulary_multiple);
    }
    if (options.optimizer != "adamw") sizes += fmt::format(" --optimizer {}", options.optimizer);
  } else if (options.model == "llama") {
    sizes = fmt::format("--preset {} --context {}", options.preset, options.llama.context);
  } else if (options.model == "recipe") {
    sizes = fmt::format("--layers {} --width {}", options.layers, options.width);
  }
  const std::string threads =
      options.threads == 1 ? "" : fmt::format("--threads {} ", options.threads);
  return fmt::format("bazel run -c opt //models/{} -- {}{}--ranks {} {}{}{}", options.model, sizes,
                     sizes.empty() ? "" : " ", options.ranks, threads, ChoicesAsFlags(options),
                     OtherCompileFlags(options.compile));
}

void AddPlanFlags(FlagParser* flags, PlanOptions* options) {
  std::vector<std::string> presets = NamesOf(models::GptPresets());
  for (std::string& preset : NamesOf(models::LlamaPresets())) {
    if (models::FindGptPreset(preset) == nullptr) presets.push_back(std::move(preset));
  }
  flags->section("Model");
  flags->add_choice("model", &options->model, {"gpt", "llama", "recipe", "classifier"},
                    "what is trained, as in //models");
  flags->add_choice("preset", &options->preset, presets,
                    "sizes of a known gpt or llama; the flags below change those of a gpt");
  const NumberRange size = at_least(0);  // 0: the preset's, or the demo's default
  flags->add_int(
      "layers", &options->layers, size,
      "transformer blocks or linear layers; 0: as in the preset or demo, as in all sizes");
  flags->add_int("heads", &options->heads, size, "attention heads; must divide --embd");
  flags->add_int("embd", &options->channels, size, "channels");
  flags->add_int("context", &options->context, size, "tokens that a prediction sees");
  flags->add_int("vocab", &options->vocabulary, size, "different tokens");
  flags->add_int("width", &options->width, size, "inputs and outputs of a linear layer");
  flags->add_int("vocab-multiple", &options->vocabulary_multiple, at_least(1),
                 "logits are computed for a multiple of so many tokens");
  flags->add_double("dropout", &options->dropout, between(0, 0.99), "dropout probability");

  flags->section("Training");
  flags->add_choice("optimizer", &options->optimizer, {"adamw", "muon"},
                    "of a gpt: adamw, or muon for the blocks' matrices and adamw for the rest");
  flags->add_int("ranks", &options->ranks, between(1, kMaxRanks), "processes");
  flags->add_int("threads", &options->threads, between(1, kMaxThreads),
                 "of each rank, which have scratch of their own");
  flags->add_int("batch", &options->batch, between(1, kMaxBatch), "samples per micro-batch");
  flags->add_choice(
      "comm", &options->comm, {"shared", "messages"},
      "how ranks talk: memory of one host, or messages between hosts, which take room");

  AddCompileFlags(flags, &options->compile);

  flags->section("Machine");
  flags->add_double("bandwidth-gb-s", &options->machine.bandwidth_gb_s, above(0),
                    "what one rank sends per second, in units of 10^9 bytes", "GB");
  flags->add_int("ranks-per-host", &options->machine.ranks_per_host, between(0, kMaxRanks),
                 "neighbours on one host; 0: all ranks");
  flags->add_double("host-bandwidth-gb-s", &options->machine.host_bandwidth_gb_s, above(0),
                    "what one rank sends to other hosts per second", "GB");
  flags->add_double("latency-us", &options->machine.latency_us, at_least(0), "of one message",
                    "US");
  flags->add_double("gflops", &options->machine.gflops, above(0),
                    "what one rank computes per second, in units of 10^9 operations");
  flags->add_string("prices", &options->prices,
                    "times of kernels by this --report of a run with --profile", "FILE");
  flags->add_double("kernel-us", &options->machine.kernel_us, at_least(0), "to start a kernel",
                    "US");

  flags->section("Questions");
  flags->add_bool("compare-stages", &options->compare_stages,
                  "plan every stage, and warn where a higher one needs more");
  flags->add_string(
      "explain", &options->explain,
      "print instead why a value of the program, or all, lies on the ranks as it does", "VALUE");
  flags->add_string(
      "fit", &options->fit,
      "find the fastest mesh, stages, recomputation and micro-batch that need no more", "BYTES");
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
  if (flags.is_given("params")) {
    ZG_RETURN_IF_ERROR(CheckParamsMode(flags));
    if (options->compile.zero.stage_rules.empty()) return Status::Ok();
    return InvalidArgument(
        "--zero: got '{}', but --params asks for the paper's formulas, which know no parameters by "
        "name; give one stage",
        options->compile.zero.stages_text());
  }
  ZG_RETURN_IF_ERROR(CheckSizesBelongTo(options->model, flags));
  if (options->model == "gpt") ZG_RETURN_IF_ERROR(ResolveGpt(options));
  if (options->model == "llama") ZG_RETURN_IF_ERROR(ResolveLlama(options));
  if (options->model == "recipe") {
    if (options->layers == 0) options->layers = 20;
    if (options->width == 0) options->width = 2000;
  }
  for (const ResolvedFlag& flag : flags.resolved()) {
    if (flag.name == "placement") options->placement_file = std::get<std::string>(flag.value);
  }
  options->fit_choices = {!flags.is_given("mesh"), !flags.is_given("zero"),
                          !flags.is_given("recompute")};
  // Rules split along an axis of the mesh, which --fit may add.
  TakeRanksOfMesh(flags, options->compile, &options->ranks);
  ZG_RETURN_IF_ERROR(ResolveCompileFlags(flags, options->ranks, &options->compile));
  if (!options->prices.empty()) {
    StatusOr<PriceList> prices =
        PriceList::Read(options->prices, {options->threads, options->compile.dtype});
    ZG_RETURN_IF_ERROR(prices.status().WithContext("--prices"));
    options->machine.prices = std::make_shared<PriceList>(std::move(*prices));
  }
  if (!options->fit.empty() && !options->explain.empty()) {
    return InvalidArgument("--explain: --fit searches among many programs; give one of them");
  }
  if (!options->fit.empty() && flags.is_given("max-memory")) {
    return InvalidArgument("--max-memory: --fit says already what may be needed; leave one out");
  }
  if (!options->fit.empty()) {
    ZG_ASSIGN_OR_RETURN(options->fit_bytes, ParseByteSize("--fit", options->fit));
  }
  return Status::Ok();
}

}  // namespace zg::plan
