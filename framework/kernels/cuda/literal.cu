#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/literal_bytes.h"

namespace zg::cuda {
namespace {

// The elements travel as arguments of launches, which a recording keeps; these hold 4 KiB.
struct Piece {
  static constexpr int kWords = 960;
  uint32_t words[kWords];
};

__global__ void LiteralKernel(Piece piece, int count, uint32_t* out) {
  for (int i = threadIdx.x; i < count; i += kThreads) out[i] = piece.words[i];
}

class Literal : public Kernel {
 public:
  explicit Literal(const KernelSpec& spec) : bytes_(LiteralBytes(spec.call.attributes)) {}

  Status Run(const KernelArguments& arguments) override {
    const auto num_words = static_cast<int64_t>(bytes_.size() / sizeof(uint32_t));
    for (int64_t begin = 0; begin < num_words; begin += Piece::kWords) {
      const auto count = static_cast<int>(std::min<int64_t>(Piece::kWords, num_words - begin));
      Piece piece;
      std::memcpy(piece.words, bytes_.data() + begin * sizeof(uint32_t), count * sizeof(uint32_t));
      ZG_RETURN_IF_ERROR(Launch(LiteralKernel, {1}, arguments.stream, piece, count,
                                arguments.output<uint32_t>(0) + begin));
    }
    return Status::Ok();
  }

 private:
  const std::vector<char> bytes_;
};

}  // namespace

void RegisterLiteralKernels(KernelRegistry& registry) {
  registry.Register("literal", MakeKernel<Literal>);
}

}  // namespace zg::cuda
