// The fake device detects code that mistakes it for the host.
#include "tests/testing/fake_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace zg::testing {
namespace {

TEST(FakeDeviceDeathTest, ItsMemoryIsNotTheHosts) {
  FakeDevice device;
  StatusOr<DeviceBytes> memory = device.Allocate(100);
  ASSERT_TRUE(memory.ok());
  EXPECT_DEATH(static_cast<volatile std::byte*>(memory->get())[3] = std::byte{1}, "");
  const char text[] = "text";
  EXPECT_DEATH((void)device.Behind(text), "is no address of the device");
}

TEST(FakeDeviceTest, NothingHappensBeforeSomebodyWaits) {
  FakeDevice device;
  StatusOr<DeviceBytes> memory = device.Allocate(4);
  ASSERT_TRUE(memory.ok());
  int value = 1;
  int read = 0;
  ASSERT_TRUE(device.CopyIn(memory->get(), &value, 4).ok());
  ASSERT_TRUE(device.CopyOut(&read, memory->get(), 4).ok());
  value = 2;
  EXPECT_EQ(read, 0);
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(read, 2);
}

TEST(FakeDeviceTest, AnEventWaitsForWhatWasBeforeIt) {
  FakeDevice device;
  StatusOr<DeviceBytes> memory = device.Allocate(4);
  StatusOr<std::unique_ptr<DeviceEvent>> event = device.MakeEvent();
  ASSERT_TRUE(memory.ok() && event.ok());
  EXPECT_TRUE((*event)->IsDone().value());
  int first = -1;
  int second = -1;
  ASSERT_TRUE(device.CopyOut(&first, memory->get(), 4).ok());
  ASSERT_TRUE((*event)->Record().ok());
  ASSERT_TRUE(device.CopyOut(&second, memory->get(), 4).ok());
  EXPECT_FALSE((*event)->IsDone().value());
  ASSERT_TRUE((*event)->Wait().ok());
  EXPECT_TRUE((*event)->IsDone().value());
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, -1);
}

TEST(FakeDeviceTest, WhatIsRecordedHappensWhenItIsReplayed) {
  FakeDevice device;
  StatusOr<DeviceBytes> memory = device.Allocate(4);
  ASSERT_TRUE(memory.ok());
  int value = 5;
  int read = 0;
  ASSERT_TRUE(device.BeginRecording().ok());
  ASSERT_TRUE(device.CopyIn(memory->get(), &value, 4).ok());
  ASSERT_TRUE(device.CopyOut(&read, memory->get(), 4).ok());
  EXPECT_EQ(device.Synchronize().message(), "fake: waiting while work is recorded");
  StatusOr<std::unique_ptr<RecordedWork>> work = device.EndRecording();
  ASSERT_TRUE(work.ok());
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(read, 0);
  for (int next : {6, 7}) {
    value = next;
    ASSERT_TRUE((*work)->Replay().ok());
    ASSERT_TRUE(device.Synchronize().ok());
    EXPECT_EQ(read, next);
  }
}

TEST(FakeDeviceTest, ReadAndWriteCopy) {
  FakeDevice device;
  StatusOr<DeviceBytes> memory = device.Allocate(8);
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(device.Write(memory->get() + 4, "text", 4).ok());
  std::vector<std::byte> scratch;
  const StatusOr<const std::byte*> read = device.Read(memory->get(), 8, &scratch);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::memcmp(*read, "\0\0\0\0text", 8), 0);
  // The host's memory is read in place.
  const std::byte here[4] = {};
  EXPECT_EQ(CpuDevice().Read(here, 4, &scratch).value(), here);
}

}  // namespace
}  // namespace zg::testing
