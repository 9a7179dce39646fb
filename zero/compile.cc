#include "zero/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/base/format.h"
#include "framework/base/stopwatch.h"
#include "framework/ir/check_mesh.h"
#include "framework/passes/check_races.h"
#include "framework/passes/pass_manager.h"
#include "framework/passes/same_variables.h"
#include "zero/pipeline.h"
#include "zero/stages_that_fit.h"

namespace zg::zero {
namespace {

// The training inputs of one micro-batch that are used, by name: "x: i64[8,256], y: i64[8,256]". The order
// in which a program uses them depends on its settings.
std::string InputsText(const ir::Graph& compiled) {
  std::map<std::string, std::string> types;
  for (const ir::Node* node : compiled.section(ir::SectionKind::kForward)->nodes) {
    if (node->op->traits.kind != ir::OpKind::kInput) continue;
    types[node->attributes.String("name")] = compiled.LocalType(*node->outputs[0]).ToString();
  }
  std::string text;
  for (const auto& [name, type] : types) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, type);
  }
  return text;
}

// All inputs of a graph: eval section or "", and name.
std::set<std::pair<std::string, std::string>> InputsOf(const ir::Graph& graph) {
  std::set<std::pair<std::string, std::string>> inputs;
  for (const auto& section : graph.sections()) {
    const bool is_eval = section->kind == ir::SectionKind::kEval;
    for (const ir::Node* node : section->nodes) {
      if (node->op->traits.kind != ir::OpKind::kInput) continue;
      inputs.emplace(is_eval ? section->name : "", node->attributes.String("name"));
    }
  }
  return inputs;
}

// The parameters that are not trained: "table.weight, head.bias".
std::string FrozenText(const ir::Graph& graph) {
  std::string text;
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    const ir::Value& storage = *tensor.storage;
    if (!ir::HasRole(storage, Role::kParameter) || ir::IsTrainableParameter(storage)) continue;
    text += (text.empty() ? "" : ", ") + tensor.name;
  }
  return text;
}

// "embedding.weight after 20 updates, ...".
std::string JoinedText(const optim::UpdateRules& rules) {
  std::string text;
  for (const auto& [name, updates] : rules.joined_after) {
    text += fmt::format("{}{} after {} updates", text.empty() ? "" : ", ", name, updates);
  }
  return text;
}

void DescribeTraining(const ir::Graph& graph, const optim::UpdateRules& rules, Program* program) {
  program->group_names = {""};
  for (const optim::GroupRule& group : rules.groups) program->group_names.push_back(group.name);
  program->settings = rules.Settings();
  program->settings["micro-batches"] = fmt::to_string(program->options.micro_batches);
  program->settings["clip-norm"] = fmt::to_string(program->options.max_grad_norm);
  program->settings["reduce-every"] = EnumName(program->options.reduce_every);
  if (const std::string frozen = FrozenText(graph); !frozen.empty()) {
    program->settings["frozen"] = frozen;
  }
  if (const std::string joined = JoinedText(rules); !joined.empty()) {
    program->settings["joined"] = joined;
  }
}

// In 16 bits the sum of each rank would be rounded before ranks add theirs.
Status CheckFixedParts(const MeshAxis& axis, const CompileOptions& options) {
  if (!axis.has_fixed_parts() || options.dtype == DType::kF32) return Status::Ok();
  return InvalidArgument(
      "mesh: {}: sums of parts are added in f32, got {}, which would round them; use f32, or {}={}",
      axis.ToString(), DTypeName(options.dtype), axis.name, axis.size);
}

std::vector<bool> IdleGroups(size_t num_groups, const std::set<int64_t>& updated) {
  std::vector<bool> is_idle;
  for (size_t group = 0; group < num_groups; ++group) {
    is_idle.push_back(updated.count(static_cast<int64_t>(group)) == 0);
  }
  return is_idle;
}

// `phase` is null if the graph has no phases.
StatusOr<Program> CompileResolved(const Graph& graph, const Mesh& mesh, Program program,
                                  const Target& target, const PhaseOptions* phase) {
  std::optional<optim::UpdateRules> update;
  if (graph.optimizer().has_value()) {
    ZG_ASSIGN_OR_RETURN(update, graph.update_rules());
    DescribeTraining(graph.ir(), *update, &program);
    if (phase != nullptr) {
      program.is_idle = IdleGroups(program.group_names.size(), phase->groups);
    }
    program.lr = update->ShownLr(program.is_idle);
  }
  program.variant = graph.variant();
  program.num_parameters = graph.num_parameters();
  program.graph = graph.ir().Clone();
  program.graph.set_mesh(mesh);
  program.graph.set_micro_batches(program.options.micro_batches);
  ZG_RETURN_IF_ERROR(CompileTraced(update, target, &program, phase));
  program.unused_inputs = InputsOf(graph.ir());
  for (const auto& used : InputsOf(program.graph)) program.unused_inputs.erase(used);
  if (update.has_value()) program.settings["inputs"] = InputsText(program.graph);
  return program;
}

// Compiles the graph's other variants as the first was, and makes room for each.
Status CompileOtherVariants(const Graph& graph, const std::vector<PhaseOptions>& phases,
                            const Target& target, Program* program) {
  for (size_t i = 0; i < graph.other_variants().size(); ++i) {
    Program other;
    other.options = program->options;
    const PhaseOptions* const phase = phases.empty() ? nullptr : &phases[i + 1];
    other.options.dump_directory.clear();
    ZG_ASSIGN_OR_RETURN(other, CompileResolved(*graph.other_variants()[i], program->graph.mesh(),
                                               std::move(other), target, phase));
    const Status same = CheckSameVariables(*program, other);
    if (!same.ok()) {
      return same.WithContext(fmt::format("graph {}: {} does not train its parameters as {} does",
                                          graph.name(), other.variant.ToString(),
                                          program->variant.ToString()));
    }
    MemoryPlan& memory = program->memory;
    memory.arena_bytes = std::max(memory.arena_bytes, other.memory.arena_bytes);
    memory.lower_bound_bytes = std::max(memory.lower_bound_bytes, other.memory.lower_bound_bytes);
    program->settings["inputs"] += fmt::format("; or {}", other.settings["inputs"]);
    program->other_variants.push_back(std::move(other));
  }
  return Status::Ok();
}

Status CheckMemory(const Graph& graph, const Program& program, const Target& target) {
  const int64_t max_bytes = program.options.max_memory_bytes;
  if (program.memory.arena_bytes <= max_bytes) return Status::Ok();
  const Status error =
      FailedPrecondition("graph {}: a rank needs {}, but `max_memory` is {}", graph.name(),
                         FormatExactBytes(program.memory.arena_bytes), FormatExactBytes(max_bytes));
  return WithStagesThatFit(error, graph, program, target, max_bytes);
}

}  // namespace

Status CompileTraced(const std::optional<optim::UpdateRules>& update, const Target& target,
                     Program* program, const PhaseOptions* phase) {
  PassManagerOptions manager_options;
  manager_options.dump_directory = program->options.dump_directory;
#ifdef NDEBUG
  manager_options.checks_reports = false;  // builds with assertions check them, and so do tests of
                                           // single passes
#endif
  const BucketOrder order =
      program->variant.is_only() ? BucketOrder::kGradients : BucketOrder::kParameters;
  CompileOptions options = program->options;
  if (phase != nullptr) {
    options.recompute = phase->recompute;
    options.f32_modules = phase->f32_modules;
  }
  PassManager manager(MakePipeline(options, update, order, phase), manager_options);
  ZG_RETURN_IF_ERROR(manager.Run(program->graph));
  ZG_ASSIGN_OR_RETURN(program->memory, target(program->graph));
  if (program->options.overlap_bytes > 0) {
    const StatusOr<RaceProof> proof = CheckRaces(program->graph, program->memory);
    ZG_CHECK(proof.ok(), "{}", proof.status().message());
    program->races = *proof;
  }
  program->traffic = PredictTraffic(program->graph);
  program->flops = PredictFlops(program->graph);
  return Status::Ok();
}

StatusOr<Program> Compile(const Graph& graph, const Mesh& mesh, const CompileOptions& options,
                          const Target& target) {
  const Stopwatch stopwatch;
  ZG_RETURN_IF_ERROR(graph.check());
  ZG_RETURN_IF_ERROR(CheckMesh(mesh).WithContext("graph " + graph.name()));
  Program program;
  StatusOr<CompileOptions> resolved = options.Resolve(mesh.num_data_ranks());
  if (!resolved.ok()) return resolved.status().WithContext("graph " + graph.name());
  program.options = std::move(*resolved);
  if (!graph.optimizer().has_value() && !program.options.recompute.empty()) {
    return InvalidArgument("graph {}: recompute '{}' is for training, but train() was not called",
                           graph.name(), program.options.recompute[0]);
  }
  for (const MeshAxis& axis : mesh.axes()) {
    ZG_RETURN_IF_ERROR(CheckFixedParts(axis, program.options).WithContext("graph " + graph.name()));
  }
  std::vector<PhaseOptions> phases;
  if (!graph.variant().phase.empty()) {
    ZG_ASSIGN_OR_RETURN(const optim::UpdateRules rules, graph.update_rules());
    StatusOr<std::vector<PhaseOptions>> found = OptionsOfPhases(graph, rules, program.options);
    ZG_RETURN_IF_ERROR(found.status().WithContext("graph " + graph.name()));
    phases = std::move(*found);
  }
  const PhaseOptions* const first = phases.empty() ? nullptr : phases.data();
  ZG_ASSIGN_OR_RETURN(program, CompileResolved(graph, mesh, std::move(program), target, first));
  ZG_RETURN_IF_ERROR(CompileOtherVariants(graph, phases, target, &program));
  ZG_RETURN_IF_ERROR(CheckMemory(graph, program, target));
  program.compile_ms = stopwatch.ms();
  return program;
}

}  // namespace zg::zero
