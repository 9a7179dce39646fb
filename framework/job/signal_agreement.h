// SignalAgreement: turns a signal at any rank into a decision of all ranks at the same step,
// because signals reach ranks at different times, or only one of them.
//
// The ranks exchange requests between steps, at most about every 50 ms: rank 0 says after how many
// steps the next exchange is. One exchange was measured as 65 to 90 us with 2 ranks on a busy host,
// less than two thousandths of the time.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/job/save_signals.h"

namespace zg {

struct SignalDecision {
  bool save = false;
  bool end = false;
  bool were_together = false;  // the ranks have just exchanged requests
};

class SignalAgreement {
 public:
  // Both must outlive it.
  SignalAgreement(Communicator& communicator, const SaveSignals& signals)
      : communicator_(communicator), signals_(signals) {}

  // Every rank must call this after each step, which took `step_ms`. A request to save takes effect
  // one exchange after it was seen. So one signal that reaches the ranks one after another, or
  // several in quick succession, count as one request.
  StatusOr<SignalDecision> AfterStep(double step_ms);

 private:
  Communicator& communicator_;
  const SaveSignals& signals_;
  int num_handled_ = 0;  // number of this rank's requests to save
  bool save_is_due_ = false;
  int64_t steps_to_meeting_ = 1;
};

}  // namespace zg
