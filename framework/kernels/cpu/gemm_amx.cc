#include "framework/kernels/cpu/gemm_amx.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "framework/base/instruction_set.h"
#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/transpose.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The registers of this thread. Uses assembly, because the intrinsics take tile numbers as text,
// and those of GCC 12 do not declare that they read memory.
class AmxTiles {
 public:
  static void Begin(const AmxConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  static void End() { asm volatile("tilerelease"); }

  template <int kTile>
  void Load(const float* rows, int64_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(rows), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  void Store(float* rows, int64_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(rows), "r"(stride_bytes), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  // sum += a b
  template <int kSum, int kA, int kB>
  void AddProduct() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};

bool ProcessorHasTiles() {
  constexpr unsigned kBF16 = 1u << 22;
  constexpr unsigned kTiles = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBF16) != 0 &&
         (edx & kTiles) != 0;
}

__attribute__((target("xsave"))) bool SystemSavesTiles() {
  constexpr unsigned kReadable = 1u << 27;  // OSXSAVE: XGETBV can tell what the system saves
  constexpr uint64_t kConfigAndData = 3u << 17;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kReadable) != 0 &&
         (_xgetbv(0) & kConfigAndData) == kConfigAndData;
}

// The permission belongs to the process: its other threads have it too.
bool SystemPermitsTiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// A tile as it is packed: sixteen rows of sixteen pairs.
using Tile = Lanes[kLanes];

ZG_INLINE void StoreTile(const Tile& tile, float* packed) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) StoreLanes(tile[i], packed + i * kLanes);
}

// 32 elements of a stored row of the matrix.
using HalfRow = uint16_t __attribute__((vector_size(64)));

ZG_INLINE HalfRow LoadRow(const BFloat16* row) {
  HalfRow elements;
  std::memcpy(&elements, row, sizeof(elements));
  return elements;
}

// Loads the first `count` elements, at most 32, and zeros.
ZG_INLINE HalfRow LoadRow(const BFloat16* row, int64_t count) {
  if (count >= kAmxDepth) return LoadRow(row);
  HalfRow elements = {};
  if (count > 0) std::memcpy(&elements, row, count * sizeof(BFloat16));
  return elements;
}

ZG_INLINE Lanes AsLanes(HalfRow elements) {
  Lanes lanes;
  std::memcpy(&lanes, &elements, sizeof(lanes));
  return lanes;
}

// Pairs of elements of two rows, of columns 0 to 15 and of columns 16 to 31.
ZG_INLINE void PairRows(HalfRow low, HalfRow high, Lanes* left, Lanes* right) {
  // The unit that an interleaving instruction takes from each quarter of a register.
  using Quads = uint64_t __attribute__((vector_size(64)));
  constexpr Quads kOrder = {0, 4, 1, 5, 2, 6, 3, 7};
  HalfRow first;
  HalfRow second;
  for (int i = 0; i < 32; ++i) {
    first[i] = i / 8 * 8 + i % 8 / 2 + i % 2 * 32;
    second[i] = first[i] + 4;
  }
  low = (HalfRow)__builtin_shuffle((Quads)low, kOrder);
  high = (HalfRow)__builtin_shuffle((Quads)high, kOrder);
  *left = AsLanes(__builtin_shuffle(low, high, first));
  *right = AsLanes(__builtin_shuffle(low, high, second));
}

// Rows that run along k have their pairs side by side: sixteen of them are a tile of A, and,
// transposed, a tile of B.
template <bool kTransposes>
void PackAlong(const BFloat16* data, int64_t stride, int64_t depth, int64_t count, float* strips) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t first = 0; first < RoundUp(count, kAmxBlock); first += kAmxSide) {
      const BFloat16* const rows = data + first * stride;
      for (int64_t k = 0; k < depth; k += kAmxDepth, strips += kAmxFloats) {
        Tile tile;
        if (first + kAmxSide <= count && k + kAmxDepth <= depth) {
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) tile[i] = AsLanes(LoadRow(rows + i * stride + k));
        } else {
          for (int i = 0; i < kLanes; ++i) {
            tile[i] = AsLanes(LoadRow(rows + i * stride + k, first + i < count ? depth - k : 0));
          }
        }
        if (kTransposes) Transpose(tile);
        StoreTile(tile, strips);
      }
    }
  });
}

// Rows that run across k: two of them have the pairs of a row of two tiles of B, which, transposed,
// are tiles of A.
template <bool kTransposes>
void PackAcross(const BFloat16* data, int64_t stride, int64_t depth, int64_t count, float* strips) {
  Multiversion([=]() ZG_VERSION {
    const int64_t strip = AmxStripSize(depth);
    for (int64_t k = 0; k < depth; k += kAmxDepth, strips += kAmxFloats) {
      float* packed = strips;
      for (int64_t first = 0; first < count; first += kAmxBlock, packed += 2 * strip) {
        const BFloat16* const rows = data + k * stride + first;
        Tile left;
        Tile right;
        if (first + kAmxBlock <= count && k + kAmxDepth <= depth) {
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) {
            const BFloat16* const low = rows + 2 * i * stride;
            __builtin_prefetch(low + kAmxDepth * stride);
            __builtin_prefetch(low + (kAmxDepth + 1) * stride);
            PairRows(LoadRow(low), LoadRow(low + stride), &left[i], &right[i]);
          }
        } else {
          for (int i = 0; i < kLanes; ++i) {
            const int64_t left_of_depth = depth - k - 2 * i;
            const BFloat16* const low = rows + 2 * i * stride;
            PairRows(LoadRow(low, left_of_depth > 0 ? count - first : 0),
                     LoadRow(low + stride, left_of_depth > 1 ? count - first : 0), &left[i],
                     &right[i]);
          }
        }
        if (kTransposes) {
          Transpose(left);
          Transpose(right);
        }
        StoreTile(left, packed);
        StoreTile(right, packed + strip);
      }
    }
  });
}

// Uses the instruction of HasPairProducts, which treats denormal numbers as zeros.
__attribute__((target("avx512f,avx512bw,avx512bf16"))) void RoundTileSums(const SumsToRound& sums) {
  for (int64_t i = 0; i < sums.rows; ++i) {
    const float* const from = sums.sums + i * sums.sum_stride;
    auto* const to = static_cast<BFloat16*>(sums.c) + i * sums.c_stride;
    for (int64_t j = 0; j < sums.columns; j += kAmxBlock) {
      const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + j + kAmxSide),
                                                        _mm512_loadu_ps(from + j));
      if (sums.streams) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + j), rounded);
      } else if (sums.columns - j >= kAmxBlock) {
        _mm512_storeu_si512(to + j, rounded);
      } else {
        const __mmask32 columns = (1u << (sums.columns - j)) - 1;
        _mm512_mask_storeu_epi16(to + j, columns, rounded);
      }
    }
  }
}

constexpr GemmMethod kProcessorMethod = MakeAmxMethod<AmxTiles>(RoundTileSums);

}  // namespace

bool HasAmxProducts() {
  // The permission is requested once.
  static const bool has = MayUse(InstructionSet::kAmx) && ProcessorHasTiles() &&
                          HasPairProducts() && SystemSavesTiles() && SystemPermitsTiles();
  return has;
}

const GemmMethod& AmxMethod() { return kProcessorMethod; }

void TransposeAmxSums(const float* sums, float* target, int64_t stride) {
  Multiversion([=]() ZG_VERSION {
    Tile tile;
    for (int i = 0; i < kLanes; ++i) std::memcpy(&tile[i], sums + i * kLanes, sizeof(tile[i]));
    Transpose(tile);
    for (int i = 0; i < kLanes; ++i) StoreLanes(tile[i], target + i * stride);
  });
}

void PackAmxA(const StoredBlock& block, float* strips) {
  const auto* const data = static_cast<const BFloat16*>(block.data);
  const auto pack = block.runs_along_k ? PackAlong<false> : PackAcross<true>;
  pack(data, block.stride, block.depth, block.count, strips);
}

void PackAmxB(const StoredBlock& block, float* strips) {
  const auto* const data = static_cast<const BFloat16*>(block.data);
  const auto pack = block.runs_along_k ? PackAlong<true> : PackAcross<false>;
  pack(data, block.stride, block.depth, block.count, strips);
}

}  // namespace zg
