#include <algorithm>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cuda/exact_sums.h"

namespace zg::cuda {
namespace {

constexpr int kMaxSums = 128;  // in one launch

struct SumList {
  const int64_t* sums[kMaxSums];
  int count;
  bool continues;  // `words` is an additional sum
};

// One thread is enough for these few numbers.
__global__ void CombineKernel(SumList list, int64_t* words) {
  ExactSum sum;
  if (list.continues) sum.AddWords(words);
  for (int i = 0; i < list.count; ++i) sum.AddWords(list.sums[i]);
  sum.Carry();
  for (int i = 0; i < kExactSumWords; ++i) words[i] = 0;
  sum.AddTo(words);
}

}  // namespace

Status CombineExactSums(const KernelArguments& arguments, int num_sums, int64_t* words) {
  int begin = 0;
  do {  // for zero sums the words are zeros
    SumList list = {};
    list.count = std::min(kMaxSums, num_sums - begin);
    list.continues = begin > 0;
    for (int i = 0; i < list.count; ++i) list.sums[i] = arguments.input<int64_t>(begin + i);
    ZG_RETURN_IF_ERROR(Launch(CombineKernel, {1, 1}, arguments.stream, list, words));
    begin += kMaxSums;
  } while (begin < num_sums);
  return Status::Ok();
}

}  // namespace zg::cuda
