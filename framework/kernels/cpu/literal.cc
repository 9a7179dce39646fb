#include <cstring>
#include <vector>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/literal_bytes.h"

namespace zg {
namespace {

class Literal : public Kernel {
 public:
  explicit Literal(const KernelSpec& spec) : bytes_(LiteralBytes(spec.call.attributes)) {}

  Status Run(const KernelArguments& arguments) override {
    if (!bytes_.empty()) std::memcpy(arguments.output<char>(0), bytes_.data(), bytes_.size());
    return Status::Ok();
  }

 private:
  const std::vector<char> bytes_;
};

}  // namespace

void RegisterLiteralKernels(KernelRegistry& registry) {
  registry.Register("literal", MakeKernel<Literal>);
}

}  // namespace zg
