// The instructions that the lanes of a warp execute together, and atomics.
#include <emulated_instructions.h>

#include <cstring>

#include "tests/cuda_emulation/launch.h"
#include "tests/cuda_emulation/memory.h"

namespace zg::emulation {
namespace {

struct ShuffleArguments {
  uint64_t value;
  int distance;
  uint64_t result;
};

void RunShuffle(WarpArguments lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    auto* const own = static_cast<ShuffleArguments*>(lanes[lane]);
    own->result = static_cast<ShuffleArguments*>(lanes[lane ^ own->distance])->value;
  }
}

struct ProductArguments {
  Widened widen;
  const uint32_t* a;
  const uint32_t* b;
  float* c;
};

float Half(Widened widen, uint32_t pair, int which) {
  return widen(static_cast<uint16_t>(pair >> (16 * which)));
}

// Source: PTX ISA, "Matrix fragments for mma.m16n8k16".
void RunProduct(WarpArguments lanes) {
  float a[16][16];
  float b[16][8];
  float c[16][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<ProductArguments*>(lanes[lane]);
    const int group = lane / 4;
    const int first = lane % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      for (int r = 0; r < 4; ++r) {
        a[group + r % 2 * 8][first + half + r / 2 * 8] = Half(own.widen, own.a[r], half);
      }
      for (int r = 0; r < 2; ++r) b[first + half + r * 8][group] = Half(own.widen, own.b[r], half);
      for (int r = 0; r < 2; ++r) c[group + r * 8][first + half] = own.c[r * 2 + half];
    }
  }
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) {
      for (int j = 0; j < 8; ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<ProductArguments*>(lanes[lane]);
    for (int r = 0; r < 4; ++r) own.c[r] = c[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
  }
}

struct LoadArguments {
  const char* row;
  bool is_transposed;
  uint32_t* matrices;
};

// Source: PTX ISA, "ldmatrix".
void RunLoad(WarpArguments lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<LoadArguments*>(lanes[lane]);
    for (int matrix = 0; matrix < 4; ++matrix) {
      uint16_t pair[2];
      for (int half = 0; half < 2; ++half) {
        const int row = own.is_transposed ? lane % 4 * 2 + half : lane / 4;
        const int column = own.is_transposed ? lane / 4 : lane % 4 * 2 + half;
        const char* const from = static_cast<LoadArguments*>(lanes[matrix * 8 + row])->row;
        std::memcpy(&pair[half], from + column * 2, 2);
      }
      own.matrices[matrix] = pair[0] | static_cast<uint32_t>(pair[1]) << 16;
    }
  }
}

}  // namespace

uint64_t ShuffleXor(unsigned mask, uint64_t value, int distance) {
  if (mask != 0xffffffffu) Fail(cudaErrorLaunchFailure, "a shuffle that is not of all lanes");
  ShuffleArguments arguments = {value, distance, 0};
  JoinWarp("shuffle", RunShuffle, &arguments);
  return arguments.result;
}

void MultiplyAdd(Widened widen, const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4]) {
  ProductArguments arguments = {widen, a, b, c};
  JoinWarp("mma", RunProduct, &arguments);
}

void LoadMatrices(const void* row, bool is_transposed, uint32_t (&matrices)[4]) {
  CheckAlignment(row, 16);
  Check(row, 16, Access::kRead);
  LoadArguments arguments = {static_cast<const char*>(row), is_transposed, matrices};
  JoinWarp(is_transposed ? "ldmatrix.trans" : "ldmatrix", RunLoad, &arguments);
}

int Atomic(int* address, int (*change)(int old, int a, int b), int a, int b) {
  CheckAlignment(address, sizeof(int));
  Check(address, sizeof(int), Access::kAtomic);
  const int old = *address;
  *address = change(old, a, b);
  return old;
}

namespace {

// For an atomic access.
unsigned long long Checked(const unsigned long long* address) {
  CheckAlignment(address, sizeof(*address));
  Check(address, sizeof(*address), Access::kAtomic);
  return *address;
}

}  // namespace

unsigned long long AtomicAdd(unsigned long long* address, unsigned long long value) {
  const unsigned long long old = Checked(address);
  *address = old + value;
  return old;
}

unsigned long long AtomicMax(unsigned long long* address, unsigned long long value) {
  const unsigned long long old = Checked(address);
  *address = value > old ? value : old;
  return old;
}

}  // namespace zg::emulation
