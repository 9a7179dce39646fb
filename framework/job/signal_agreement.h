// SignalAgreement: signals reach ranks at different moments, or one rank only. This makes a request
// of any rank a decision of all ranks at the same step.
//
// The ranks ask each other between steps, but not more often than about every 50 ms: rank 0 says
// after how many steps the next time is. One time costs an Exchange, measured as 65 to 90 us with 2
// ranks on a busy host: less than two thousandths of the time.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/job/save_signals.h"

namespace zg {

struct SignalDecision {
  bool save = false;
  bool end = false;
  bool were_together = false;  // the ranks have asked each other now
};

class SignalAgreement {
 public:
  // Both must outlive it.
  SignalAgreement(Communicator& communicator, const SaveSignals& signals)
      : communicator_(communicator), signals_(signals) {}

  // Every rank must call this after each step. `step_ms` is how long it took. A wish to save is
  // fulfilled one meeting after it was heard, so that one signal that reaches the ranks one after
  // another, or several quick ones, are one wish.
  StatusOr<SignalDecision> AfterStep(double step_ms);

 private:
  Communicator& communicator_;
  const SaveSignals& signals_;
  int num_handled_ = 0;  // of this rank's requests to save
  bool save_is_due_ = false;
  int64_t steps_to_meeting_ = 1;
};

}  // namespace zg
