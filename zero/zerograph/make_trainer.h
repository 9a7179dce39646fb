// make_trainer: compiles a graph for the ranks of a communicator, chooses the kernels of its device
// and creates the trainer.
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
// an error about too little memory names the exact bytes of the stages that would fit.
StatusOr<std::unique_ptr<Trainer>> make_trainer(const Graph& graph,
                                                const CompileOptions& compile_options,
                                                Communicator& communicator,
                                                const TrainerOptions& options);

// The same with the graph's own options.
StatusOr<std::unique_ptr<Trainer>> make_trainer(const Graph& graph, Communicator& communicator,
                                                const TrainerOptions& options = {});

}  // namespace zg
