// How a hot loop becomes fast on every processor with one binary, and keeps its bits:
//
//   ZG_MULTIVERSION void Add(const float* a, const float* b, int64_t count, float* out) {
//     ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
//   }
//
// The versions differ in vector width only: without contraction (-ffp-contract=off) and reordering
// every element goes through the same roundings in a vector of any width and in the scalar tail.
#pragma once

#include "framework/base/host_device.h"

// Compiled for AVX-512, AVX2 and plain x86-64; the loader picks what the processor can run. Not
// with the address and thread sanitizers, whose run time is not up when the loader asks.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ZG_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ZG_MULTIVERSION
#endif

// Functions called from a ZG_MULTIVERSION one are ZG_INLINE, so that they are compiled for its
// target.

// Before a loop: an iteration writes only what no other iteration reads. Unlike __restrict it
// allows arrays that are exactly the same memory (a result that overwrites its operand).
#if defined(__clang__)
#define ZG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ZG_INDEPENDENT _Pragma("GCC ivdep")
#endif
