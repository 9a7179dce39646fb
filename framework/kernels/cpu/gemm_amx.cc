#include "framework/kernels/cpu/gemm_amx.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

// The registers of this thread. By assembly, as the intrinsics take numbers of tiles as text, and
// those of GCC 12 do not say that they read memory.
class AmxTiles {
 public:
  explicit AmxTiles(const AmxConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

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
  constexpr unsigned kReadable = 1u << 27;  // OSXSAVE: what the system saves can be asked for
  constexpr uint64_t kConfigAndData = 3u << 17;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kReadable) != 0 &&
         (_xgetbv(0) & kConfigAndData) == kConfigAndData;
}

// The permission is the process's: its other threads have it too.
bool SystemPermitsTiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Packs a strip of `count` <= 16 rows of A or columns of B, the first at `data`.
using PackStrip = void (*)(const BFloat16* data, int64_t stride, int64_t depth, int64_t count,
                           float* strip);

void PackStrips(const StoredBlock& block, PackStrip pack, float* strips) {
  const auto* const data = static_cast<const BFloat16*>(block.data);
  const int64_t size = AmxStripSize(block.depth);
  for (int64_t first = 0; first < RoundUp(block.count, kAmxBlock); first += kAmxSide) {
    if (first < block.count) {
      pack(data + first * (block.runs_along_k ? block.stride : 1), block.stride, block.depth,
           std::min(kAmxSide, block.count - first), strips);
    } else {
      std::fill_n(strips, size, 0.0f);
    }
    strips += size;
  }
}

// Behind the pairs of k that a strip of B has.
void FillUp(int64_t depth, float* strip) {
  std::fill(strip + NumPairs(depth) * kAmxSide, strip + AmxStripSize(depth), 0.0f);
}

// A strip of B is a panel of pairs, 16 columns wide.
void PackPairs(const BFloat16* data, int64_t stride, int64_t depth, int64_t count, float* strip) {
  PackPanelPairs(data, stride, depth, count, strip);
  FillUp(depth, strip);
}

void PackTransposedPairs(const BFloat16* data, int64_t stride, int64_t depth, int64_t count,
                         float* strip) {
  PackTransposedPanelPairs(data, stride, depth, count, strip);
  FillUp(depth, strip);
}

// Rows of A that run along k have their pairs side by side already.
ZG_MULTIVERSION void CopyRows(const BFloat16* data, int64_t stride, int64_t depth, int64_t count,
                              float* strip) {
  char* row = reinterpret_cast<char*>(strip);
  for (int64_t k = 0; k < depth; k += kAmxDepth) {
    const int64_t bytes = std::min(kAmxDepth, depth - k) * int64_t{sizeof(BFloat16)};
    for (int64_t i = 0; i < kAmxSide; ++i, row += kAmxRowBytes) {
      if (i < count && bytes == kAmxRowBytes) {
        std::memcpy(row, data + i * stride + k, kAmxRowBytes);
        continue;
      }
      std::memset(row, 0, kAmxRowBytes);
      if (i < count) std::memcpy(row, data + i * stride + k, bytes);
    }
  }
}

// Rows of A that run across: packed as columns of B, then transposed in each tile.
void TransposeRows(const BFloat16* data, int64_t stride, int64_t depth, int64_t count,
                   float* strip) {
  PackPairs(data, stride, depth, count, strip);
  for (float *tile = strip, *end = strip + AmxStripSize(depth); tile < end; tile += kAmxFloats) {
    float pairs[kAmxFloats];
    std::copy_n(tile, kAmxFloats, pairs);
    PackTransposedPanels(pairs, kAmxSide, kAmxSide, kAmxSide, tile);
  }
}

}  // namespace

bool HasAmxProducts() {
  // The permission is asked for once.
  static const bool has = ProcessorHasTiles() && SystemSavesTiles() && SystemPermitsTiles();
  return has;
}

const GemmMethod& AmxMethod() { return kAmxMethod<AmxTiles>; }

void PackAmxA(const StoredBlock& block, float* strips) {
  PackStrips(block, block.runs_along_k ? CopyRows : TransposeRows, strips);
}

void PackAmxB(const StoredBlock& block, float* strips) {
  PackStrips(block, block.runs_along_k ? PackTransposedPairs : PackPairs, strips);
}

}  // namespace zg
