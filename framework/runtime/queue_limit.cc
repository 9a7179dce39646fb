#include "framework/runtime/queue_limit.h"

#include <utility>

namespace zg {

Status QueueLimit::BeforeInstruction() {
  if (num_since_mark_++ < kMostAhead / (kMarks + 1)) return Status::Ok();
  num_since_mark_ = 1;
  while (marks_.size() < kMarks) {
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> mark, communicator_.device().MakeEvent());
    marks_.push_back(std::move(mark));
  }
  DeviceEvent& mark = *marks_[oldest_];
  oldest_ = (oldest_ + 1) % marks_.size();
  ZG_RETURN_IF_ERROR(communicator_.WaitFor(mark));
  return mark.Record();
}

}  // namespace zg
