// Pass: one rewrite of the graph. Passes have no state between runs; options go to the constructor.
// They are run, timed, verified and dumped by PassManager (pass_manager.h).
#pragma once

#include <string_view>

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg {

class Pass {
 public:
  virtual ~Pass() = default;

  // A verb phrase, "shard-gradients"; the file is shard_gradients.{h,cc}.
  virtual std::string_view name() const = 0;

  // Returns whether the graph's text changed, or an error about the user's model or configuration.
  virtual StatusOr<bool> Run(ir::Graph& graph) const = 0;
};

}  // namespace zg
