// make_trainer: a graph as a trainer on the ranks of a communicator, in one call: compiles it,
// chooses the kernels of the communicator's device, allocates.
//
//   ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
#pragma once

#include <memory>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/nn/graph.h"
#include "framework/train/trainer.h"

namespace zg {

// Every rank must call it, with equal graphs. Errors: those of zero::Compile and Trainer::create;
// of memory that is not enough, with the exact bytes of the stages that would fit.
StatusOr<std::unique_ptr<Trainer>> make_trainer(const Graph& graph,
                                                const CompileOptions& compile_options,
                                                Communicator& communicator,
                                                const TrainerOptions& options);

// With the graph's config.
StatusOr<std::unique_ptr<Trainer>> make_trainer(const Graph& graph, Communicator& communicator,
                                                const TrainerOptions& options = {});

}  // namespace zg
