// Compares the sum over ranks by one kernel on an emulated device with the CPU's: all types, in
// packs and element by element, in all orders of threads.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "framework/comm/cuda/fold_peers.h"
#include "framework/comm/left_fold.h"
#include "framework/comm/reduction_types.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {
namespace {

HeapTensor Terms(DType dtype, int64_t elements, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < elements; ++i) values.push_back(((i * 37 + seed * 71) % 101 - 50) * 0.37);
  if (dtype == DType::kI64) {
    for (double& value : values) value = static_cast<int64_t>(value * 100);
  }
  return HeapTensor::FromDoubles({dtype, {elements}}, values);
}

// At `offset` bytes after the begin of an allocation.
class OnDevice {
 public:
  OnDevice(const HeapTensor& tensor, int64_t offset) : offset_(offset) {
    EXPECT_EQ(cudaMalloc(&memory_, tensor.type().bytes() + offset), cudaSuccess);
    cudaMemcpy(data(), tensor.data(), tensor.type().bytes(), cudaMemcpyHostToDevice);
  }
  ~OnDevice() { cudaFree(memory_); }
  OnDevice(OnDevice&& other)
      : offset_(other.offset_), memory_(std::exchange(other.memory_, nullptr)) {}
  std::byte* data() const { return memory_ + offset_; }

 private:
  const int64_t offset_;
  std::byte* memory_ = nullptr;
};

struct FoldCase {
  ReductionTypes types = DType::kF32;
  int num_ranks = 1;
  int64_t elements = 0;
  bool continues = false;
  bool in_place = false;  // in the last rank's terms
  bool is_aligned = true;
};

void ExpectLikeCpu(const FoldCase& test) {
  SCOPED_TRACE(fmt::format("{} to {}, {} ranks, {} elements, continues {}, in place {}, aligned {}",
                           DTypeName(test.types.terms), DTypeName(test.types.sum), test.num_ranks,
                           test.elements, test.continues, test.in_place, test.is_aligned));
  std::vector<HeapTensor> terms;
  for (int i = 0; i < test.num_ranks; ++i) {
    terms.push_back(Terms(test.types.terms, test.elements, i));
  }
  const HeapTensor start = Terms(test.types.sum, test.elements, test.num_ranks);
  std::vector<const void*> inputs;
  if (test.continues) inputs.push_back(start.data());
  for (const HeapTensor& term : terms) inputs.push_back(term.data());
  HeapTensor expected(start.type());
  LeftFold(test.types, test.continues, inputs.data(), static_cast<int>(inputs.size()),
           test.elements, expected.data());

  const int64_t offset = test.is_aligned ? 0 : 8;
  std::vector<OnDevice> memory;
  PeerTerms folded;
  for (const HeapTensor& term : terms) {
    memory.emplace_back(term, offset);
    folded.terms[folded.num_ranks++] = memory.back().data();
  }
  memory.emplace_back(start, offset);
  std::byte* const output = memory[test.in_place ? terms.size() - 1 : terms.size()].data();
  if (test.continues) folded.start = output;  // as in a collective
  const Status status = FoldPeersOnCuda(test.types, folded, test.elements, output, nullptr);
  EXPECT_TRUE(status.ok()) << status.ToString();
  HeapTensor got(expected.type());
  cudaMemcpy(got.data(), output, got.type().bytes(), cudaMemcpyDeviceToHost);
  EXPECT_TRUE(SameBits(got, expected));
}

TEST(FoldPeersOnCuda, HasTheBitsOfTheCpu) {
  for (int order = 0; order < 3; ++order) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);  // the next order of threads
    for (const ReductionTypes types :
         {ReductionTypes(DType::kF32), ReductionTypes(DType::kBF16), ReductionTypes(DType::kF16),
          ReductionTypes(DType::kI64), ReductionTypes(DType::kBF16, DType::kF32),
          ReductionTypes(DType::kF16, DType::kF32)}) {
      for (const int ranks : {1, 2, 3, 5, 8}) {
        for (const int64_t elements : {int64_t{1}, int64_t{8}, int64_t{1003}}) {
          for (const bool is_aligned : {true, false}) {
            FoldCase test = {types, ranks, elements};
            test.is_aligned = is_aligned;
            ExpectLikeCpu(test);
            test.in_place = types.terms == types.sum;
            if (test.in_place) ExpectLikeCpu(test);
            test.in_place = false;
            test.continues = SizeOf(types.sum) > 2;
            if (test.continues) ExpectLikeCpu(test);  // sums in 16 bits are not continued
          }
        }
      }
    }
  }
}

// More elements than the threads of one launch, and the maximum number of ranks.
TEST(FoldPeersOnCuda, FoldsLargeParts) {
  ExpectLikeCpu({DType::kF32, 2, 2048 * 256 * 4 + 1021});
  ExpectLikeCpu({DType::kBF16, PeerTerms::kMaxRanks, 4099});
}

}  // namespace
}  // namespace zg::testing
