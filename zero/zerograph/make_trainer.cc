#include "zero/zerograph/make_trainer.h"

#include <utility>

#include "framework/comm/available_memory.h"
#include "framework/ir/check_mesh.h"
#include "framework/kernels/device_kernels.h"
#include "framework/runtime/plan_program.h"
#include "framework/train/measured_gemms.h"
#include "zero/compile.h"
#include "zero/stages_that_fit.h"
#include "zero/zerograph/choose_overlap.h"

namespace zg {
namespace {

// The memory available to each rank, assuming that all ranks are on this host.
StatusOr<int64_t> AvailableBytesPerRank(Communicator& communicator) {
  if (!communicator.device().is_host()) {
    ZG_ASSIGN_OR_RETURN(const DeviceMemoryUse use, communicator.device().MemoryUse());
    return use.free_bytes;
  }
  ZG_ASSIGN_OR_RETURN(const AvailableMemory available, ReadAvailableMemory());
  return available.bytes / communicator.size();
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> make_trainer(const Graph& graph,
                                                const CompileOptions& compile_options,
                                                Communicator& communicator,
                                                const TrainerOptions& options) {
  const KernelRegistry* kernels = options.kernels;
  if (options.measured_gemms != nullptr) {
    kernels = &options.measured_gemms->kernels();
  } else if (kernels == nullptr) {
    ZG_ASSIGN_OR_RETURN(kernels,
                        DeviceKernels(communicator.device(), {options.tf32, options.threads}));
  }
  const Target target = TargetOf(*kernels, communicator.arena().workspace_bytes());
  const Mesh mesh = compile_options.MeshOf(communicator.size());
  ZG_RETURN_IF_ERROR(CheckMesh(mesh).WithContext("graph " + graph.name()));
  CompileOptions asked = compile_options;
  const bool sends_messages =
      communicator.transport() == "messages" && communicator.can_have_threads();
  ZG_RETURN_IF_ERROR(ChooseOverlap(graph, mesh, target, {}, sends_messages, &asked).status());
  // One rank's dumps are enough: the program is the same everywhere.
  if (communicator.rank() != 0) asked.dump_directory.clear();
  const auto compile = [=, gemms = options.measured_gemms](const Graph& of) {
    const auto once = [&] { return zero::Compile(of, mesh, asked, target); };
    return gemms == nullptr ? once() : gemms->Compile(once);
  };
  ZG_ASSIGN_OR_RETURN(Program program, compile(graph));
  StatusOr<std::unique_ptr<Trainer>> trainer =
      Trainer::create(std::move(program), communicator, options);
  if (trainer.ok()) (*trainer)->set_compiler(graph.Clone(), compile);
  if (trainer.ok() || trainer.status().code() != StatusCode::kFailedPrecondition) return trainer;
  const StatusOr<int64_t> available_bytes = AvailableBytesPerRank(communicator);
  asked.dump_directory.clear();
  const StatusOr<Program> again = zero::Compile(graph, mesh, asked, target);
  if (!available_bytes.ok() || !again.ok()) return trainer;
  return zero::WithStagesThatFit(trainer.status(), graph, *again, target, *available_bytes);
}

StatusOr<std::unique_ptr<Trainer>> make_trainer(const Graph& graph, Communicator& communicator,
                                                const TrainerOptions& options) {
  return make_trainer(graph, graph.config(), communicator, options);
}

}  // namespace zg
