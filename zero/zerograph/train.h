// train: goes from a job and a graph to training.
//
//   zg::Training training = zg::train(job, graph);   // compiles, or ends the job with the error
//   while (training.next()) training.step({{"x", x}, {"y", y}});
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "framework/job/job.h"
#include "framework/nn/graph.h"
#include "framework/train/training.h"

namespace zg {

struct TrainOptions : TrainingOptions {
  std::string description;    // description of the model, for the plan; "": the graph's name
  std::optional<int> stage;   // the ZeRO stage; overrides the config and the flags
  std::string init_may_lack;  // patterns of parameters that the file of --init may lack
  std::string init_may_skip;  // and of tensors of that file that the model lacks
  NameInFile init_names;      // how that file names the parameters
};

// Compiles the graph with its config and the job's flags on top of it, resumes if they say so, and
// prints the configuration. With --plan prints the plan instead, allocates nothing, and ends the
// job. Every rank must call it; an error ends the job on all of them, before anything is printed.
Training train(Job& job, const Graph& graph, const TrainOptions& options = {});

// The same without the steps, for programs that only evaluate or that step by themselves. Does not
// resume or save, and prints nothing but the plan.
std::unique_ptr<Trainer> make_trainer(Job& job, const Graph& graph,
                                      const TrainOptions& options = {});

}  // namespace zg
