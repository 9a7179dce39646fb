// Random small models, as nn::Graph traces them, and random ways to compile them. Everything is a
// function of the seed: a seed gives the same model for any number of ranks.
//
// Ops come from the registry: every op with a gradient is tried with random operands until its
// shape rule accepts them, so a new op is included automatically. Models share parameters between
// ops, have inputs that are the same on all ranks, up to two losses, and eval sections with several
// outputs.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/graph.h"

namespace zg::testing {

struct RandomModelOptions {
  unsigned seed = 1;
  int num_ranks = 1;       // that compute different micro-batches
  int tensor_ranks = 1;    // that share each micro-batch, along the axis "tensor"
  int max_ops = 8;         // in the forward section, besides losses
  int percent_frozen = 0;  // of the parameters
  bool trains = true;      // or it has eval programs only
};

// A training program with a loss, and eval programs, before the first pass. Its mesh is
// data=num_ranks, with tensor=tensor_ranks if there are several; every rank has one to three
// micro-batches.
ir::Graph MakeRandomModel(const RandomModelOptions& options);

// Rules for the axis "tensor" (framework/passes/placement_rule.h): for about half of the model's
// parameters, each along a dim that `ranks` divide; may be empty.
std::vector<std::string> MakeRandomRules(const ir::Graph& model, int ranks, unsigned seed);

// The passes of the pipeline that compile that model, in order, with random options (zero stage,
// dtype, optimizer, rules for the axis "tensor", ...), as PassRegistry's texts. Rules may ask for
// placements that place-parameters, place-results or infer-sbp refuse.
std::vector<std::string> MakeRandomPipeline(const RandomModelOptions& options);

}  // namespace zg::testing
