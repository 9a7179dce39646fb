#include "framework/kernels/cpu/update_blocks.h"

#include <algorithm>
#include <utility>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/math/update_scalars.h"
#include "framework/tensor/half.h"

namespace zg {

namespace {

constexpr int64_t kBlock = kUpdateBlock;

template <typename T>
void ScaleGradient(const T* gradient, float factor, int64_t count, float* scaled) {
  Multiversion([=]() ZG_VERSION {
    PrefetchRow<0>(gradient + kPrefetchAhead, count);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) scaled[i] = factor * ToF32(gradient[i]);
  });
}

}  // namespace

UpdateBlocks::UpdateBlocks(UpdateProgram program, DType gradient_dtype)
    : program_(std::move(program)),
      gradient_dtype_(gradient_dtype),
      scalars_(program_.num_scalar_inputs() + program_.statements.size()) {
  for (const ElementwiseStatement& statement : program_.statements) {
    functions_.push_back(FunctionOf(statement.op->code, DType::kF32));
  }
}

int64_t UpdateBlocks::workspace_bytes() const {
  return (static_cast<int64_t>(scalars_.size()) + 1 + program_.num_slots) * kBlock *
         static_cast<int64_t>(sizeof(float));
}

void UpdateBlocks::SetScalars(const std::vector<double>& inputs, int64_t count, void* workspace) {
  auto* const blocks = static_cast<float*>(workspace);
  std::copy(inputs.begin(), inputs.end(), scalars_.begin());
  for (size_t i = 0; i < program_.statements.size(); ++i) {
    if (!program_.is_scalar[i]) continue;
    const ElementwiseStatement& statement = program_.statements[i];
    const double first = scalars_[program_.ScalarIndex(statement.operands[0])];
    const double second = scalars_[program_.ScalarIndex(statement.operands.back())];
    scalars_[inputs.size() + i] =
        EvaluateScalar(statement.op->code, first, second, statement.attribute);
  }
  for (size_t i = 0; i < scalars_.size(); ++i) {
    std::fill_n(blocks + i * kBlock, std::min(count, kBlock), static_cast<float>(scalars_[i]));
  }
}

void UpdateBlocks::Compute(const KernelArguments& arguments, float factor, int64_t begin,
                           int64_t count, bool without_norms) const {
  auto* const blocks = static_cast<float*>(arguments.workspace);
  float* const gradient = blocks + scalars_.size() * kBlock;
  float* const slots = gradient + kBlock;
  WithFloatType(gradient_dtype_, [&](auto zero) {
    ScaleGradient(arguments.input<decltype(zero)>(1) + begin, factor, count, gradient);
  });
  const auto operand_at = [&](const ElementwiseOperand& operand) -> const float* {
    if (program_.IsScalar(operand)) return blocks + program_.ScalarIndex(operand) * kBlock;
    if (!operand.is_input) return slots + program_.slots[operand.index] * kBlock;
    return operand.index == 1 ? gradient : arguments.input<float>(operand.index) + begin;
  };
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (program_.is_scalar[i] || (without_norms && program_.needs_norm[i])) continue;
    const ElementwiseStatement& statement = program_.statements[i];
    const void* operands[2];
    for (size_t j = 0; j < statement.operands.size(); ++j) {
      operands[j] = operand_at(statement.operands[j]);
    }
    functions_[i](operands, static_cast<float>(statement.attribute), count,
                  slots + program_.slots[i] * kBlock);
  }
}

const float* UpdateBlocks::ResultOf(int statement, const void* workspace) const {
  const auto* const slots = static_cast<const float*>(workspace) + (scalars_.size() + 1) * kBlock;
  return slots + program_.slots[statement] * kBlock;
}

}  // namespace zg
