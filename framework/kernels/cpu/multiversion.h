// Makes a hot loop fast on every processor with one binary, with the same bits:
//
//   void Add(const float* a, const float* b, int64_t count, float* out) {
//     Multiversion([=]() ZG_VERSION {
//       ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
//     });
//   }
//
// The versions differ in vector width only: without contraction (-ffp-contract=off) and reordering
// every element goes through the same roundings in a vector of any width and in the scalar tail.
#pragma once

#include "framework/base/host_device.h"
#include "framework/base/instruction_set.h"

// Placed after the parentheses of the lambda. Functions called from it must be ZG_INLINE, so that
// they are compiled for its target.
#define ZG_VERSION mutable __attribute__((always_inline))

// Not with the address sanitizer: GCC 12 assumes that arrays on its stack are aligned to 64 bytes,
// which they are not (GCC bug 110027).
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__)
#define ZG_HAS_VERSIONS
#endif

namespace zg {

#ifdef ZG_HAS_VERSIONS
template <typename Body>
__attribute__((target("arch=x86-64-v4"))) auto RunForAvx512(const Body& body) {
  Body mine = body;
  return mine();
}
template <typename Body>
__attribute__((target("arch=x86-64-v3"))) auto RunForAvx2(const Body& body) {
  Body mine = body;
  return mine();
}
#endif

// Runs `body`, which is compiled for AVX-512, AVX2 and plain x86-64, in the best version that
// kernels may use. It captures by value, and each version makes a copy: if the compiler saw only
// addresses of a loop's variables, it would have to assume that the loop changes them. The copy is
// not made by the caller, for which GCC 12 loads two captures at once right after they were stored
// one by one: the processor waits for such a load as long as for a row of a small matrix.
template <typename Body>
ZG_INLINE auto Multiversion(const Body& body) {
#ifdef ZG_HAS_VERSIONS
  const InstructionSet set = VectorInstructionSet();
  if (set == InstructionSet::kAvx512) return RunForAvx512(body);
  if (set == InstructionSet::kAvx2) return RunForAvx2(body);
#endif
  Body mine = body;
  return mine();
}

}  // namespace zg

// Placed before a loop: an iteration writes only what no other iteration reads. Unlike __restrict
// it allows arrays that are exactly the same memory (a result that overwrites its operand).
#if defined(__clang__)
#define ZG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ZG_INDEPENDENT _Pragma("GCC ivdep")
#endif
