#include "tests/cuda_emulation/launch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "framework/base/check.h"
#include "tests/cuda_emulation/fibers.h"
#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/warpgroup_products.h"

namespace zg::emulation {

Coordinates coordinates;
__thread Running running;

namespace {

constexpr size_t kMaxParameterBytes = 32764;
constexpr size_t kCopyBytes = 16;

enum class State { kReady, kAtBarrier, kInWarp, kEnded };

struct Copy {
  const char* source;  // null: zeros
  char* target;
  int group;
};

struct Thread {
  Fiber fiber;
  State state = State::kEnded;
  uint3 index = {};
  const char* file = nullptr;  // of the barrier at which it waits
  int line = 0;
  std::vector<Copy> copies;  // in flight
  int copy_groups = 0;       // committed ones
  WarpgroupProducts products;
};

struct Warp {
  const char* operation = nullptr;
  int num_arrived = 0;
  void* arguments[kLanes] = {};
};

std::unique_ptr<Thread> threads[kMaxThreads];
Warp warps[kMaxThreads / kLanes];
int num_threads = 0;  // of the block
int failed = -1;      // the number of the thread that failed
cudaError_t last_error = cudaSuccess;
std::string last_message;
ThreadOrder order = ThreadOrder::kShuffled;
std::minstd_rand shuffle(1);

Thread* Self() { return threads[running.number].get(); }

// The thread numbers in the order in which they take turns.
std::vector<unsigned> Turns(unsigned count) {
  std::vector<unsigned> turns(count);
  for (unsigned i = 0; i < count; ++i)
    turns[i] = order == ThreadOrder::kBackward ? count - 1 - i : i;
  if (order == ThreadOrder::kShuffled) std::shuffle(turns.begin(), turns.end(), shuffle);
  return turns;
}

void SetError(cudaError_t error, const std::string& what) {
  last_error = error;
  const uint3& block = coordinates.block;
  last_message = fmt::format("block ({}, {}, {}): {}", block.x, block.y, block.z, what);
}

// Sets the reason why no thread can continue.
void SetDeadlock() {
  int counts[4] = {};
  const Thread* barrier = nullptr;
  for (int i = 0; i < num_threads; ++i) {
    ++counts[static_cast<int>(threads[i]->state)];
    if (threads[i]->state == State::kAtBarrier) barrier = threads[i].get();
  }
  const Warp* stuck = std::find_if(std::begin(warps), std::end(warps),
                                   [](const Warp& warp) { return warp.num_arrived > 0; });
  SetError(
      cudaErrorLaunchTimeout,
      fmt::format("{} threads wait at barriers ({}:{}), {} in operations of their warp ({}), {} "
                  "have ended",
                  counts[1], barrier == nullptr ? "" : barrier->file,
                  barrier == nullptr ? 0 : barrier->line, counts[2],
                  stuck == std::end(warps) ? "" : stuck->operation, counts[3]));
}

// If all threads wait at one barrier, lets them continue and returns true.
bool PassBarrier() {
  for (int i = 0; i < num_threads; ++i) {
    const Thread& thread = *threads[i];
    if (thread.state != State::kAtBarrier) return false;
    if (thread.line != threads[0]->line || std::strcmp(thread.file, threads[0]->file) != 0) {
      return false;
    }
  }
  for (int i = 0; i < num_threads; ++i) threads[i]->state = State::kReady;
  BeginInterval();
  return true;
}

void RunThread(int number) {
  Thread* const thread = threads[number].get();
  coordinates.thread = thread->index;
  running = {number, thread->fiber.stack()};
  const bool has_ended = thread->fiber.Resume();
  running = {};
  if (has_ended) thread->state = State::kEnded;
  if (has_ended && !thread->copies.empty()) {
    SetError(cudaErrorLaunchFailure, "a thread ends with a copy in flight");
  }
  if (has_ended && !thread->products.started.empty()) {
    SetError(cudaErrorLaunchFailure, "a thread ends with a product in flight");
  }
}

// Runs every thread of a warp for as long as possible, so that warps get as far apart as they can.
// Returns true if any thread ran.
bool RunWarp(unsigned warp) {
  const unsigned first = warp * kLanes;
  const unsigned count = std::min<unsigned>(kLanes, static_cast<unsigned>(num_threads) - first);
  bool has_run = false;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned lane = order == ThreadOrder::kForward ? i : count - 1 - i;
      if (threads[first + lane]->state != State::kReady) continue;
      has_run = goes_on = true;
      RunThread(static_cast<int>(first + lane));
      if (last_error != cudaSuccess) return true;
    }
  }
  return has_run;
}

void RunBlock(const GridLaunch& launch) {
  BeginBlock(launch.shared_bytes);
  for (Warp& warp : warps) warp.num_arrived = 0;
  uint3 index = {};
  for (int i = 0; i < num_threads; ++i) {
    Thread& thread = *threads[i];
    thread.fiber.Begin(launch.run, launch.parameters);
    thread.state = State::kReady;
    thread.index = index;
    thread.copies.clear();
    thread.copy_groups = 0;
    thread.products = {};
    if (++index.x == launch.block.x) {
      index.x = 0;
      if (++index.y == launch.block.y) {
        index.y = 0;
        ++index.z;
      }
    }
  }
  const std::vector<unsigned> turns =
      Turns(static_cast<unsigned>(num_threads + kLanes - 1) / kLanes);
  for (;;) {
    bool has_run = false;
    for (unsigned warp : turns) {
      has_run = RunWarp(warp) || has_run;
      if (last_error != cudaSuccess) return;
    }
    if (has_run || PassBarrier()) continue;
    const bool have_ended = std::all_of(threads, threads + num_threads, [](const auto& thread) {
      return thread->state == State::kEnded;
    });
    if (!have_ended) SetDeadlock();
    return;
  }
}

bool IsPossible(const GridLaunch& launch) {
  const dim3& grid = launch.grid;
  const dim3& block = launch.block;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
         grid.z <= 65535 && block.x > 0 && block.y > 0 && block.z > 0 && block.z <= 64 &&
         block.x * block.y * block.z <= static_cast<unsigned>(kMaxThreads) &&
         launch.shared_bytes <= kMaxSharedBytes && launch.parameter_bytes <= kMaxParameterBytes;
}

}  // namespace

cudaError_t RunGrid(const GridLaunch& launch) {
  if (!IsPossible(launch)) {
    last_message = "invalid configuration argument";
    return cudaErrorInvalidConfiguration;
  }
  last_error = cudaSuccess;
  coordinates.grid_dim = launch.grid;
  coordinates.block_dim = launch.block;
  num_threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  for (int i = 0; i < num_threads; ++i) {
    if (threads[i] == nullptr) threads[i] = std::make_unique<Thread>();
  }
  BeginGrid(launch.shared_bytes, launch.parameters, launch.parameter_bytes);
  for (unsigned block : Turns(launch.grid.x * launch.grid.y * launch.grid.z)) {
    coordinates.block = {block % launch.grid.x, block / launch.grid.x % launch.grid.y,
                         block / launch.grid.x / launch.grid.y};
    RunBlock(launch);
    if (last_error != cudaSuccess) break;
  }
  return last_error;
}

const std::string& LastMessage() { return last_message; }

ThreadOrder CurrentThreadOrder() { return order; }

void NextThreadOrder() { order = static_cast<ThreadOrder>((static_cast<int>(order) + 1) % 3); }

void JoinWarp(const char* operation, void (*run)(WarpArguments), void* arguments) {
  Thread* const self = Self();
  const int number = running.number;
  Warp& warp = warps[number / kLanes];
  if (warp.num_arrived > 0 && std::strcmp(warp.operation, operation) != 0) {
    Fail(cudaErrorLaunchFailure, "lanes of a warp are in {} and {} at once", warp.operation,
         operation);
  }
  warp.operation = operation;
  warp.arguments[number % kLanes] = arguments;
  self->state = State::kInWarp;
  if (++warp.num_arrived < kLanes) {
    self->fiber.Suspend();
    return;
  }
  run(warp.arguments);
  warp.num_arrived = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    threads[number / kLanes * kLanes + lane]->state = State::kReady;
  }
}

void Synchronize(const char* file, int line) {
  Thread* const self = Self();
  self->file = file;
  self->line = line;
  self->state = State::kAtBarrier;
  self->fiber.Suspend();
}

void CopyAsync(const void* source, bool is_inside, void* target) {
  if (is_inside) {
    CheckAlignment(source, kCopyBytes);
    Check(source, kCopyBytes, Access::kRead);
  }
  BeginCopy(target);
  Self()->copies.push_back({is_inside ? static_cast<const char*>(source) : nullptr,
                            static_cast<char*>(target), Self()->copy_groups});
}

void CommitCopies() { ++Self()->copy_groups; }

void WaitForCopies(int num_pending) {
  std::vector<Copy>& copies = Self()->copies;
  const int first_pending = Self()->copy_groups - num_pending;
  const auto has_landed = [&](const Copy& copy) { return copy.group < first_pending; };
  for (const Copy& copy : copies) {
    if (!has_landed(copy)) continue;
    if (copy.source == nullptr) {
      std::memset(copy.target, 0, kCopyBytes);
    } else {
      std::memcpy(copy.target, copy.source, kCopyBytes);
    }
    EndCopy(copy.target);
    Self()->products.hides_copies = true;
  }
  copies.erase(std::remove_if(copies.begin(), copies.end(), has_landed), copies.end());
}

WarpgroupProducts& OwnProducts() { return Self()->products; }

void LeaveKernel() {
  ZG_CHECK(running.number >= 0, "not in a kernel");
  failed = running.number;
  running = {};
}

void FailWith(cudaError_t error, const std::string& what) {
  const uint3& index = threads[failed]->index;
  SetError(error, fmt::format("thread ({}, {}, {}): {}", index.x, index.y, index.z, what));
  threads[failed]->fiber.Suspend();
  ZG_CHECK(false, "a thread that has failed goes on");
  std::abort();
}

}  // namespace zg::emulation
