#include "zero/compile.h"

#include <fmt/format.h>

#include <optional>

#include "framework/base/stopwatch.h"
#include "framework/optim/optimizer.h"
#include "framework/passes/pass_manager.h"
#include "zero/pipeline.h"

namespace zg::zero {
namespace {

std::string OptimizerText(const optim::UpdateRule& rule) {
  std::string text = rule.op;
  for (const auto& [name, value] : rule.attributes.items()) {
    text += fmt::format(" {}={}", name, ir::ToString(value));
  }
  return text;
}

// The training inputs of one micro-batch, in the order in which they are used: "x: i64[8,256],
// y: i64[8,256]".
std::string InputsText(const ir::Graph& compiled) {
  std::string text;
  for (const ir::Node* node : compiled.section(ir::SectionKind::kForward)->nodes) {
    if (node->op->traits.kind != ir::OpKind::kInput) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", node->attributes.String("name"),
                        compiled.LocalType(*node->outputs[0]).ToString());
  }
  return text;
}

// The parameters that training leaves alone: "table.weight, head.bias".
std::string FrozenText(const ir::Graph& graph) {
  std::string text;
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    const ir::Value& storage = *tensor.storage;
    if (!ir::HasRole(storage, Role::kParameter) || ir::IsTrainableParameter(storage)) continue;
    text += (text.empty() ? "" : ", ") + tensor.name;
  }
  return text;
}

StatusOr<Program> CompileResolved(const Graph& graph, const Mesh& mesh, Program program,
                                  const Target& target) {
  std::optional<optim::UpdateRule> update;
  if (graph.optimizer().has_value()) {
    ZG_ASSIGN_OR_RETURN(update, optim::MakeUpdateRule(*graph.optimizer()));
    program.lr = update->attributes.Float("lr");
    program.settings = {{"optimizer", OptimizerText(*update)},
                        {"micro-batches", fmt::to_string(program.options.micro_batches)},
                        {"clip-norm", fmt::to_string(program.options.max_grad_norm)},
                        {"reduce-every", std::string(EnumName(program.options.reduce_every))}};
    const std::string frozen = FrozenText(graph.ir());
    if (!frozen.empty()) program.settings["frozen"] = frozen;
  }
  program.num_parameters = graph.num_parameters();
  program.graph = graph.ir().Clone();
  program.graph.set_mesh(mesh);
  program.graph.set_micro_batches(program.options.micro_batches);
  PassManagerOptions manager_options;
  manager_options.dump_directory = program.options.dump_directory;
  PassManager manager(MakePipeline(program.options, update), manager_options);
  ZG_RETURN_IF_ERROR(manager.Run(program.graph));
  if (update.has_value()) program.settings["inputs"] = InputsText(program.graph);
  ZG_ASSIGN_OR_RETURN(program.memory, target(program.graph));
  program.traffic = PredictTraffic(program.graph);
  program.flops = PredictFlops(program.graph);
  return program;
}

}  // namespace

StatusOr<Program> Compile(const Graph& graph, const Mesh& mesh, const CompileOptions& options,
                          const Target& target) {
  const Stopwatch stopwatch;
  ZG_RETURN_IF_ERROR(graph.check());
  Program program;
  StatusOr<CompileOptions> resolved = options.Resolve(mesh.num_data_ranks());
  if (!resolved.ok()) return resolved.status().WithContext("graph " + graph.name());
  program.options = std::move(*resolved);
  if (!graph.optimizer().has_value() && !program.options.recompute.empty()) {
    return InvalidArgument("graph {}: recompute '{}' is for training, but train() was not called",
                           graph.name(), program.options.recompute[0]);
  }
  ZG_ASSIGN_OR_RETURN(program, CompileResolved(graph, mesh, std::move(program), target));
  program.compile_ms = stopwatch.ms();
  return program;
}

}  // namespace zg::zero
