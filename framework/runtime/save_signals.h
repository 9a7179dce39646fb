// SaveSignals: while one exists, SIGUSR1 asks this process for a checkpoint, and, where there is a
// place to save, SIGTERM asks for a checkpoint and the end. SIGUSR2 is a SIGTERM that mpirun passes
// on to its ranks, which it does not do with SIGTERM itself. The handlers only count.
//
// Virtual ranks are threads of one process: each has an object of its own, and all see each signal.
#pragma once

namespace zg {

class SaveSignals {
 public:
  // `saves`: there is a place to save. Without one, SIGTERM and SIGUSR2 stay as they were.
  explicit SaveSignals(bool saves);
  SaveSignals(const SaveSignals&) = delete;
  // The last one to go restores what the signals did before.
  ~SaveSignals();

  // SIGUSR1 since the first object was made; grows.
  int num_save_requests() const;
  // Whether SIGTERM or SIGUSR2 has come. A second one of the same kind ends the process as usual.
  bool is_end_requested() const;
};

}  // namespace zg
