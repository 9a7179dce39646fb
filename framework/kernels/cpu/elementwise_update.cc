#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/update.h"
#include "framework/kernels/cpu/update_blocks.h"

namespace zg {
namespace {

constexpr int64_t kBlock = kUpdateBlock;

// Outputs are written once a whole block is computed, because they are also inputs.
class ElementwiseUpdate : public Update {
 public:
  ElementwiseUpdate(const KernelSpec& spec, UpdateProgram program)
      : Update(spec),
        after_updates_(static_cast<double>(spec.call.attributes.Int("after_updates"))),
        of_threads_(num_sharing(), {UpdateBlocks(std::move(program), gradient_dtype()),
                                    std::vector<double>(kNumUpdateScalars)}) {}

 private:
  struct OfThread {
    UpdateBlocks blocks;
    std::vector<double> scalars;
  };

  int64_t BytesOfThread() const override { return of_threads_[0].blocks.workspace_bytes(); }

  void Apply(const KernelArguments& arguments, const Control& control, int64_t num_elements,
             int thread) override {
    auto& [blocks, scalars] = of_threads_[thread];
    scalars = {LrOf(*arguments.step), weight_decay(), control.number - after_updates_};
    blocks.SetScalars(scalars, num_elements, arguments.workspace);
    const std::vector<int>& results = blocks.program().results;
    for (int64_t begin = 0; begin < num_elements; begin += kBlock) {
      const int64_t count = std::min(kBlock, num_elements - begin);
      blocks.Compute(arguments, control.factor, begin, count);
      for (size_t i = 0; i < results.size(); ++i) {
        std::memcpy(arguments.output<float>(static_cast<int>(i)) + begin,
                    blocks.ResultOf(results[i], arguments.workspace), count * sizeof(float));
      }
    }
  }

  const double after_updates_;
  std::vector<OfThread> of_threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeElementwiseUpdate(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  ZG_ASSIGN_OR_RETURN(UpdateProgram program, ParseUpdateProgram(spec.call));
  return std::unique_ptr<Kernel>(std::make_unique<ElementwiseUpdate>(spec, std::move(program)));
}

}  // namespace

void RegisterElementwiseUpdateKernels(KernelRegistry& registry) {
  registry.Register("elementwise_update", MakeElementwiseUpdate);
}

}  // namespace zg
