#include "framework/comm/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace zg {
namespace {

using ::testing::HasSubstr;

OwnedSharedMemory Create(int64_t bytes) {
  auto memory = OwnedSharedMemory::Create("test", bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().ToString();
  return std::move(*memory);
}

TEST(SharedMemoryTest, IsZeroedAndAligned) {
  const OwnedSharedMemory memory = Create(10000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 4096, 0u);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
}

TEST(SharedMemoryTest, AnotherProcessSeesWhatTheOwnerWrites) {
  const OwnedSharedMemory memory = Create(8192);
  memory.data()[8191] = std::byte{42};
  const pid_t child = fork();
  if (child == 0) {
    const auto view = MapPeer(memory.address(), /*writable=*/true);
    if (!view.ok() || view->data()[8191] != std::byte{42}) _exit(1);
    view->data()[0] = std::byte{43};
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.data()[0], std::byte{43});
}

TEST(SharedMemoryTest, MappingsOutliveTheOwnersDescriptor) {
  OwnedSharedMemory memory = Create(100);
  memory.data()[0] = std::byte{42};
  const auto view = MapPeer(memory.address(), /*writable=*/false);
  ASSERT_TRUE(view.ok());
  memory.CloseToNewPeers();
  EXPECT_FALSE(MapPeer(memory.address(), /*writable=*/false).ok());
  const SharedMemoryAddress address = memory.address();
  memory = OwnedSharedMemory();
  EXPECT_EQ(view->data()[0], std::byte{42});
  EXPECT_FALSE(MapPeer(address, /*writable=*/false).ok());
}

void ExpectCannotMap(const SharedMemoryAddress& address, const std::string& why) {
  const auto view = MapPeer(address, /*writable=*/false);
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(view.status().message(), HasSubstr("cannot map the memory of process"));
  EXPECT_THAT(view.status().message(), HasSubstr(why));
  EXPECT_THAT(view.status().message(), HasSubstr("Set ZG_COMM=messages"));
}

TEST(SharedMemoryTest, AProcessThatCannotBeSeenIsAnError) {
  const OwnedSharedMemory memory = Create(100);
  SharedMemoryAddress address = memory.address();
  address.pid = 1 << 30;
  ExpectCannotMap(address, "No such file or directory");
}

TEST(SharedMemoryTest, AnotherFileIsAnError) {
  const OwnedSharedMemory memory = Create(100);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  SharedMemoryAddress address = memory.address();
  address.fd = ends[0];
  ExpectCannotMap(address, "the file is not the peer's memory");
  close(ends[0]);
  close(ends[1]);
}

TEST(SharedMemoryTest, AnotherTokenIsAnError) {
  const OwnedSharedMemory memory = Create(100);
  SharedMemoryAddress address = memory.address();
  address.token ^= 1;
  ExpectCannotMap(address, "does not hold the peer's token");
}

TEST(SharedMemoryTest, MoreThanThereIsIsAnError) {
  const auto memory = OwnedSharedMemory::Create("test", int64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(memory.status().message(), HasSubstr("1 rank on this host need 1125.9 TB"));
}

TEST(SharedMemoryTest, ResidentBytesAreThePagesThatWereTouched) {
  const int64_t bytes = 4 << 20;
  const OwnedSharedMemory memory = Create(bytes);
  std::vector<MappedMemory> views;
  EXPECT_EQ(ResidentBytes(views), 0);
  auto view = MapPeer(memory.address(), /*writable=*/false);
  ASSERT_TRUE(view.ok());
  views.push_back(std::move(*view));
  EXPECT_LE(ResidentBytes(views), 64 << 10);
  int sum = 0;
  for (int64_t i = 0; i < bytes; i += 4096) sum += static_cast<int>(views[0].data()[i]);
  EXPECT_EQ(sum, 0);
  EXPECT_GE(ResidentBytes(views), bytes);
  EXPECT_LE(ResidentBytes(views), bytes + 4096);
}

}  // namespace
}  // namespace zg
