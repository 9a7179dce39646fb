// A warp computes its 16 rows of each product when its lanes wait for it: an operand that has been
// overwritten by then gives another result.
#include "tests/cuda_emulation/warpgroup_products.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/cuda_emulation/launch.h"
#include "tests/cuda_emulation/memory.h"

namespace zg::emulation {
namespace {

constexpr int kDepth = 16;  // of a product
constexpr int kColumns = 64;
constexpr int kRowsOfWarp = 16;
constexpr uintptr_t kRowBytes = 128;
constexpr int kPackBytes = 16;

// The address that hardware accesses for an element of a swizzled tile.
const char* Swizzled(const char* begin, int row, int column) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(begin) + row * kRowBytes + column * 2;
  return reinterpret_cast<const char*>(address ^ (address >> 7 & 7) << 4);
}

float Element(Widened widen, const char* begin, int row, int column) {
  uint16_t bits = 0;
  std::memcpy(&bits, Swizzled(begin, row, column), sizeof(bits));
  return widen(bits);
}

struct WarpProduct {
  const WarpgroupProduct* product;
  int first_row;
};

float Left(const WarpProduct& own, WarpArguments lanes, int row, int k) {
  const WarpgroupProduct& product = *own.product;
  if (product.left != nullptr) return Element(product.widen, product.left, own.first_row + row, k);
  const auto& holder = *static_cast<WarpProduct*>(lanes[row % 8 * 4 + k % 8 / 2]);
  const uint32_t pair = holder.product->a[row / 8 + k / 8 * 2];
  return product.widen(static_cast<uint16_t>(pair >> (k % 2 * 16)));
}

void RunWarpgroupProduct(WarpArguments lanes) {
  const auto& first = *static_cast<WarpProduct*>(lanes[0]);
  const WarpgroupProduct& product = *first.product;
  float left[kRowsOfWarp][kDepth];
  float right[kDepth][kColumns];
  for (int k = 0; k < kDepth; ++k) {
    for (int i = 0; i < kRowsOfWarp; ++i) left[i][k] = Left(first, lanes, i, k);
    for (int j = 0; j < kColumns; ++j) {
      right[k][j] = product.left != nullptr ? Element(product.widen, product.right, j, k)
                                            : Element(product.widen, product.right, k, j);
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const WarpgroupProduct& own = *static_cast<WarpProduct*>(lanes[lane])->product;
    for (int n = 0; n < 8; ++n) {
      for (int r = 0; r < 4; ++r) {
        const int row = lane / 4 + r / 2 * 8;
        const int column = n * 8 + lane % 4 * 2 + r % 2;
        float sum = own.adds ? own.c[n][r] : 0.0f;
        for (int k = 0; k < kDepth; ++k) sum += left[row][k] * right[k][column];
        own.c[n][r] = sum;
      }
    }
  }
}

void CheckPack(const char* begin, int row, int pack) {
  Check(Swizzled(begin, row, pack * 8), kPackBytes, Access::kRead);
}

// A lane checks its share of what its warp reads.
void CheckOperands(const WarpProduct& own, int lane) {
  const WarpgroupProduct& product = *own.product;
  if (product.left == nullptr) {
    for (int pack = lane; pack < kDepth * 8; pack += kLanes) {
      CheckPack(product.right, pack / 8, pack % 8);
    }
    return;
  }
  CheckPack(product.left, own.first_row + lane / 2, lane % 2);
  for (int pack = lane; pack < kColumns * 2; pack += kLanes) {
    CheckPack(product.right, pack / 2, pack % 2);
  }
}

void Finish(const WarpgroupProduct& product) {
  WarpProduct own = {&product, running.number / kLanes * kRowsOfWarp};
  CheckOperands(own, running.number % kLanes);
  JoinWarp("wgmma", RunWarpgroupProduct, &own);
}

}  // namespace

void StartProduct(Widened widen, const void* left, const uint32_t (&a)[4], const void* right,
                  bool adds, float (&c)[8][4]) {
  WarpgroupProducts& own = OwnProducts();
  if (!own.have_begun) Fail(cudaErrorLaunchFailure, "a product without wgmma.fence before it");
  if (own.hides_copies) {
    Fail(cudaErrorLaunchFailure, "a product of copies without fence.proxy.async after them");
  }
  for (const void* tile : {left, right}) {
    if (tile != nullptr) CheckAlignment(tile, 2 * kPackBytes);
  }
  const bool is_withheld = std::any_of(own.withheld.begin(), own.withheld.end(),
                                       [&](const WithheldSums& sums) { return sums.c == c; });
  if (!is_withheld) {
    WithheldSums& sums = own.withheld.emplace_back();
    sums.c = c;
    std::memcpy(sums.values, c, sizeof(sums.values));
    std::fill(&c[0][0], &c[0][0] + 32, std::numeric_limits<float>::quiet_NaN());
  }
  WarpgroupProduct product = {
      widen,     static_cast<const char*>(left), {}, static_cast<const char*>(right), adds, c,
      own.groups};
  std::copy(std::begin(a), std::end(a), product.a);
  own.started.push_back(product);
}

void BeginProducts() { OwnProducts().have_begun = true; }

void CommitProducts() { ++OwnProducts().groups; }

void WaitForProducts(int num_pending) {
  WarpgroupProducts& own = OwnProducts();
  own.have_begun = false;
  const int first_pending = own.groups - num_pending;
  const auto is_done = [&](const WarpgroupProduct& product) {
    return product.group < first_pending;
  };
  const auto is_pending = [&](const WithheldSums& sums) {
    return std::any_of(
        own.started.begin(), own.started.end(),
        [&](const WarpgroupProduct& product) { return product.c == sums.c && !is_done(product); });
  };
  const auto returned = std::stable_partition(own.withheld.begin(), own.withheld.end(), is_pending);
  std::for_each(returned, own.withheld.end(), [](const WithheldSums& sums) {
    std::memcpy(sums.c, sums.values, sizeof(sums.values));
  });
  own.withheld.erase(returned, own.withheld.end());
  std::vector<WarpgroupProduct> done;
  std::copy_if(own.started.begin(), own.started.end(), std::back_inserter(done), is_done);
  own.started.erase(std::remove_if(own.started.begin(), own.started.end(), is_done),
                    own.started.end());
  for (const WarpgroupProduct& product : done) Finish(product);
}

void ShowToProducts() { OwnProducts().hides_copies = false; }

}  // namespace zg::emulation
