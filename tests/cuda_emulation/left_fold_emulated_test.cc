// Compares the sum over ranks on an emulated device with the CPU's, for all types.
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "framework/comm/cuda/left_fold_cuda.h"
#include "framework/comm/fold_element.h"
#include "framework/comm/left_fold.h"
#include "framework/comm/reduction_types.h"
#include "tests/testing/heap_tensor.h"

namespace zg::testing {
namespace {

constexpr int64_t kElements = 1003;

HeapTensor Terms(DType dtype, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < kElements; ++i)
    values.push_back(((i * 37 + seed * 71) % 101 - 50) * 0.37);
  if (dtype == DType::kI64) {
    for (double& value : values) value = static_cast<int64_t>(value * 100);
  }
  return HeapTensor::FromDoubles({dtype, {kElements}}, values);
}

std::byte* ToDevice(const HeapTensor& tensor) {
  std::byte* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, tensor.type().bytes()), cudaSuccess);
  cudaMemcpy(memory, tensor.data(), tensor.type().bytes(), cudaMemcpyHostToDevice);
  return memory;
}

// The contributions of three ranks, where this one is `rank`; with `continues`, the first is a sum.
void ExpectLikeCpu(ReductionTypes types, int rank, bool continues) {
  SCOPED_TRACE(fmt::format("{} to {}, rank {}, continues {}", DTypeName(types.terms),
                           DTypeName(types.sum), rank, continues));
  constexpr int kRanks = 3;
  std::vector<HeapTensor> terms;
  for (int i = 0; i < kRanks; ++i) terms.push_back(Terms(types.terms, i));
  const HeapTensor start = Terms(types.sum, kRanks);
  std::vector<const void*> inputs;
  if (continues) inputs.push_back(start.data());
  for (const HeapTensor& term : terms) inputs.push_back(term.data());
  HeapTensor expected(start.type());
  LeftFold(types, continues, inputs.data(), static_cast<int>(inputs.size()), kElements,
           expected.data());

  std::vector<std::byte*> memory = {ToDevice(terms[rank]), ToDevice(start), ToDevice(expected)};
  const int64_t stride = terms[0].type().bytes();
  std::byte* received = nullptr;
  EXPECT_EQ(cudaMalloc(&received, stride * (kRanks - 1)), cudaSuccess);
  memory.push_back(received);
  for (int i = 0, place = 0; i < kRanks; ++i) {
    if (i == rank) continue;
    cudaMemcpy(received + stride * place++, terms[i].data(), stride, cudaMemcpyHostToDevice);
  }
  cudaMemset(memory[2], 0xff, expected.type().bytes());
  FoldInputs folded;
  folded.start = continues ? memory[1] : nullptr;
  folded.own = memory[0];
  folded.received = received;
  folded.received_stride_bytes = stride;
  folded.rank = rank;
  folded.num_ranks = kRanks;
  const Status status = LeftFoldOnCuda(types, folded, kElements, memory[2], nullptr);
  EXPECT_TRUE(status.ok()) << status.ToString();
  HeapTensor got(expected.type());
  cudaMemcpy(got.data(), memory[2], got.type().bytes(), cudaMemcpyDeviceToHost);
  EXPECT_TRUE(SameBits(got, expected));
  for (std::byte* each : memory) cudaFree(each);
}

TEST(LeftFoldOnCuda, HasTheBitsOfTheCpu) {
  for (const ReductionTypes types :
       {ReductionTypes(DType::kF32), ReductionTypes(DType::kBF16), ReductionTypes(DType::kF16),
        ReductionTypes(DType::kI64), ReductionTypes(DType::kBF16, DType::kF32),
        ReductionTypes(DType::kF16, DType::kF32)}) {
    for (const int rank : {0, 1, 2}) {
      ExpectLikeCpu(types, rank, false);
      if (SizeOf(types.sum) > 2) ExpectLikeCpu(types, rank, true);  // others are not continued
    }
  }
}

}  // namespace
}  // namespace zg::testing
