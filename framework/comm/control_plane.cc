#include "framework/comm/control_plane.h"

namespace zg {

Status ExchangeStatus(ControlPlane& control, std::string_view name, const Status& mine) {
  const auto messages = control.Exchange(name, mine.ok() ? "" : mine.ToString());
  if (!mine.ok()) return mine;
  ZG_RETURN_IF_ERROR(messages.status());
  for (int rank = 0; rank < control.size(); ++rank) {
    const std::string& message = (*messages)[rank];
    if (!message.empty()) return Aborted("{}: rank {} failed: {}", name, rank, message);
  }
  return Status::Ok();
}

}  // namespace zg
