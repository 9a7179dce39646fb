// SaveSignals: while one exists, SIGUSR1 asks this process for a checkpoint, and, where there is a
// place to save, SIGTERM asks for a checkpoint and the end. SIGUSR2 is a SIGTERM that mpirun passes
// on to its ranks, which it does not do with SIGTERM itself. The handlers only count.
//
// Objects share the handlers: a Job's sees what is asked for before training, and virtual ranks,
// the threads of one process, have one each and all see each signal.
#pragma once

namespace zg {

class SaveSignals {
 public:
  // `saves`: there is a place to save. Without one, SIGTERM and SIGUSR2 stay as they were.
  explicit SaveSignals(bool saves);
  SaveSignals(const SaveSignals&) = delete;
  // The last one to go, and of SIGTERM and SIGUSR2 the last that saves, restores what was before.
  ~SaveSignals();

  // SIGUSR1 since the first object was made or, when objects have gone, the last of them; grows.
  int num_save_requests() const;
  // Whether SIGTERM or SIGUSR2 has come. A second one of the same kind ends the process as usual.
  bool is_end_requested() const;

 private:
  const bool saves_;
  int num_requests_before_ = 0;
};

}  // namespace zg
