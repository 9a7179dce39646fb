#include "framework/job/signal_agreement.h"

#include <algorithm>
#include <string>
#include <vector>

namespace zg {
namespace {

constexpr double kMsBetweenMeetings = 50;
constexpr int64_t kMaxStepsBetweenMeetings = 10000;

// A rank's message: its requests, then its proposal for the number of steps to the next exchange.
constexpr char kSave = 's';
constexpr char kEnd = 'e';

int64_t StepsBetweenMeetings(double step_ms) {
  const double steps = kMsBetweenMeetings / std::max(step_ms, 1e-3);
  return std::clamp(static_cast<int64_t>(steps), int64_t{1}, kMaxStepsBetweenMeetings);
}

}  // namespace

StatusOr<SignalDecision> SignalAgreement::AfterStep(double step_ms) {
  SignalDecision decision;
  if (--steps_to_meeting_ > 0) return decision;
  const int num_requests = signals_.num_save_requests();
  std::string mine;
  if (num_requests != num_handled_) mine += kSave;
  if (signals_.is_end_requested()) mine += kEnd;
  mine += std::to_string(StepsBetweenMeetings(step_ms));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, communicator_.Exchange("signals", mine));
  num_handled_ = num_requests;
  bool is_save_wanted = false;
  for (const std::string& one : all) {
    is_save_wanted |= one.find(kSave) != one.npos;
    decision.end |= one.find(kEnd) != one.npos;
  }
  decision.were_together = true;
  decision.save = save_is_due_;
  save_is_due_ = is_save_wanted && !save_is_due_;
  steps_to_meeting_ = std::stoll(all[0].substr(all[0].find_first_of("0123456789")));
  return decision;
}

}  // namespace zg
