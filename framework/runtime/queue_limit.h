// QueueLimit: limits how far the host runs ahead of a device. A CUDA stream takes about a thousand
// launches; the next one blocks without a deadline, and forever if a collective is stuck. So the
// host waits earlier, through the communicator, whose waits have a deadline and name the
// collective.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"

namespace zg {

class QueueLimit {
 public:
  // In instructions, some of which are several launches.
  static constexpr int kMostAhead = 384;

  // For the device of the communicator, which must outlive this.
  explicit QueueLimit(Communicator* communicator) : communicator_(*communicator) {}

  // Call before an instruction is queued. Errors: those of collectives that are waited for.
  Status BeforeInstruction();

 private:
  static constexpr int kMarks = 3;  // events in the queue, equally spaced

  Communicator& communicator_;
  std::vector<std::unique_ptr<DeviceEvent>> marks_;
  size_t oldest_ = 0;  // the mark that the queue must have passed before the host goes on
  int num_since_mark_ = 0;
};

}  // namespace zg
