// SaveSignals: while one exists, SIGUSR1 requests a checkpoint from this process, and, if there is
// a place to save, SIGTERM requests a checkpoint and the end. SIGUSR2 has the meaning of SIGTERM,
// because mpirun forwards it to its ranks, which it does not do with SIGTERM itself. The handlers
// only count.
//
// Objects share the handlers: the Job's object sees requests that come before training. Virtual
// ranks, the threads of one process, have one object each, and all see each signal.
#pragma once

namespace zg {

class SaveSignals {
 public:
  // `saves`: there is a place to save. Otherwise SIGTERM and SIGUSR2 keep their previous handlers.
  explicit SaveSignals(bool saves);
  SaveSignals(const SaveSignals&) = delete;
  // The last object, and for SIGTERM and SIGUSR2 the last one that saves, restores the previous
  // handlers.
  ~SaveSignals();

  // The number of SIGUSR1 since the first object was created or, if objects have been destroyed,
  // the last of them; it only grows.
  int num_save_requests() const;
  // Whether SIGTERM or SIGUSR2 was received. A second signal of the same kind ends the process as
  // usual.
  bool is_end_requested() const;

 private:
  const bool saves_;
  int num_requests_before_ = 0;
};

}  // namespace zg
