// PassManager: runs passes one after the other. After each pass it checks the graph's rules
// (Verify) and, if asked to, that the pass has reported correctly whether it changed the graph. So an
// error names the pass that caused it.
//
//   PassManagerOptions options;
//   options.dump_directory = "/tmp/passes";
//   PassManager manager(MakePipeline(...), options);
//   ZG_RETURN_IF_ERROR(manager.Run(graph));
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/passes/pass.h"

namespace zg {

struct PassManagerOptions {
  // The graph's text is written here after each pass, `02_after_infer-sbp.graph`; `00_input.graph`
  // is the input of the first pass. The directory is created if needed. Empty: no dumps.
  std::string dump_directory;
  // Names of passes to leave out. An unknown name is an error.
  std::set<std::string> disabled;
  // From the pass of this name on, Verify also checks that placements match.
  std::string inserts_collectives = "insert-collectives";
  // Compares the graph's text before and after each pass with what the pass reports. It takes a third
  // of the time of compiling a large graph; without it, reports are believed.
  bool checks_reports = true;
};

// The record of one pass.
struct PassRecord {
  std::string name;
  bool changed = false;
  double run_ms = 0;  // time of the pass itself, without the checks
};

class PassManager {
 public:
  explicit PassManager(std::vector<std::unique_ptr<Pass>> passes, PassManagerOptions options = {})
      : passes_(std::move(passes)), options_(std::move(options)) {}

  // Errors: those of the passes, a graph that breaks a rule, a dump that cannot be written; each
  // names the pass after which it occurred. If reports are checked, one of "changed" although the
  // text is the same, or the other way round, is a CHECK failure.
  Status Run(ir::Graph& graph);

  // Records of the last run, in order; disabled passes have none.
  const std::vector<PassRecord>& records() const { return records_; }

 private:
  Status CheckDisabled() const;
  Status Dump(const std::string& file_name, const std::string& text) const;

  const std::vector<std::unique_ptr<Pass>> passes_;
  const PassManagerOptions options_;
  std::vector<PassRecord> records_;
};

}  // namespace zg
