// Program: a compiled graph, ready for any rank of its mesh to run: the nodes in execution order,
// the offset of every value in the arena, and the costs. Nothing is allocated yet.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/ir/variant.h"
#include "framework/passes/check_races.h"
#include "framework/passes/compile_options.h"
#include "framework/passes/plan_memory.h"
#include "framework/passes/predict_traffic.h"

namespace zg {

// Plans the memory of a compiled graph for one kind of device and transport, whose kernels need
// scratch memory (runtime/plan_program.h has those of this build). Error: no kernel for a node.
using Target = std::function<StatusOr<MemoryPlan>(const ir::Graph& graph)>;

struct Program {
  ir::Graph graph;                                  // placed, with collectives, in execution order
  CompileOptions options;                           // resolved
  MemoryPlan memory;                                // the same on every rank
  std::map<std::string, PredictedTraffic> traffic;  // sent by one rank in one step, by op
  double flops = 0;                                 // by one rank in one step
  RaceProof races;                                  // of transfers that run beside computation
  int64_t num_parameters = 0;                       // elements of the model
  // The settings that determine the bits of training besides data and initial values, as name and
  // value: the optimizer, the micro-batches, .... Empty for a graph that does not train.
  std::map<std::string, std::string> settings;
  // The learning rate of the optimizer, or of the only group that is updated, before a schedule's factor.
  double lr = 0;
  // The parameter groups; "" is the first one, the parameters that no other names.
  std::vector<std::string> group_names;
  double compile_ms = 0;
  // By group, whether it is one that the program does not update, since its phase does not train it;
  // empty: it updates all.
  std::vector<bool> is_idle;
  // Which size or phase it is of (Graph::train), and the programs of the others: the smaller sizes,
  // ascending, or the further phases. They have the same variables at the same places; `memory` has
  // room for each.
  Variant variant;
  // Inputs that the model declares and the program lacks, because nothing reads them: the eval section,
  // or "" for training, and the name.
  std::set<std::pair<std::string, std::string>> unused_inputs;
  std::vector<Program> other_variants = {};
};

}  // namespace zg
