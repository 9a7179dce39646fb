// Runs a test's body on the host or on a stand-in of a device.
#pragma once

#include <memory>

#include "framework/comm/host_staged.h"
#include "tests/testing/fake_device.h"

namespace zg::testing {

// Calls body(communicator) with the host's, or with one for a device of this rank.
template <typename Body>
Status OnDevice(bool on_device, Communicator& host, const Body& body) {
  if (!on_device) return body(host);
  FakeDevice device;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> staged,
                      MakeHostStagedCommunicator(&device, &host));
  return body(*staged);
}

}  // namespace zg::testing
