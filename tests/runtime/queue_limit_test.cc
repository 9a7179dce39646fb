#include "framework/runtime/queue_limit.h"

#include <gtest/gtest.h>

#include "framework/comm/host_staged.h"
#include "framework/comm/in_process.h"
#include "tests/testing/fake_device.h"
#include "tests/testing/stuck_communicator.h"

namespace zg::testing {
namespace {

TEST(QueueLimitTest, TheHostStaysNear) {
  InProcessGroup group(1);
  FakeDevice device;
  const auto communicator = MakeHostStagedCommunicator(&device, &group.communicator(0));
  ASSERT_TRUE(communicator.ok());
  QueueLimit limit(communicator->get());
  int num_done = 0;
  for (int num_queued = 1; num_queued <= 5 * QueueLimit::kMostAhead; ++num_queued) {
    ASSERT_TRUE(limit.BeforeInstruction().ok());
    ASSERT_TRUE(device.QueueKernel([&] { ++num_done; }).ok());
    ASSERT_LE(num_queued - num_done, QueueLimit::kMostAhead);
    // It does not wait while the queue is short.
    if (num_queued > QueueLimit::kMostAhead) {
      ASSERT_GE(num_queued - num_done, QueueLimit::kMostAhead / 2);
    }
  }
}

TEST(QueueLimitTest, AWaitHasTheDeadlineOfCollectives) {
  InProcessGroup group(1);
  FakeDevice device;
  StuckCommunicator communicator(&device, &group.communicator(0));
  QueueLimit limit(&communicator);
  int num_queued = 0;
  Status status;
  while (status.ok() && num_queued <= QueueLimit::kMostAhead) {
    status = limit.BeforeInstruction();
    if (!status.ok()) break;
    ASSERT_TRUE(device.QueueKernel([] {}).ok());
    ++num_queued;
  }
  EXPECT_EQ(status.message(), "no progress");
  EXPECT_EQ(num_queued, QueueLimit::kMostAhead);
}

}  // namespace
}  // namespace zg::testing
