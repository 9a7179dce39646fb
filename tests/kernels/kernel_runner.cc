#include "tests/kernels/kernel_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "framework/base/random.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/tensor/half.h"

namespace zg::testing {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kGuardBytes = 256;
constexpr char kGuard = 0x5a;

}  // namespace

std::vector<float> Random(int64_t count, uint64_t seed, float low, float high) {
  std::vector<float> values(count);
  FillUniform(RandomKey{seed}, 0, count, low, high, values.data());
  return values;
}

std::vector<int64_t> RandomIds(int64_t count, int64_t end, uint64_t seed) {
  std::vector<int64_t> ids(count);
  for (int64_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int64_t>(UniformBelow(RandomKey{seed, 7}, i, end));
  }
  return ids;
}

GuardedBuffer::GuardedBuffer(int64_t bytes, int64_t misalignment)
    : bytes_(bytes),
      memory_(new char[bytes + 2 * kAlignment + kGuardBytes + misalignment * sizeof(float)]) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.get());
  data_ = memory_.get() + (kAlignment - address % kAlignment) % kAlignment +
          misalignment * sizeof(float);
  std::memset(data_ + bytes_, kGuard, kGuardBytes);
  FillWithNaN();
}

void GuardedBuffer::FillWithNaN() { std::memset(data_, 0xff, bytes_); }

bool GuardedBuffer::IntactBehindTheEnd() const {
  for (int64_t i = 0; i < kGuardBytes; ++i) {
    if (data_[bytes_ + i] != kGuard) return false;
  }
  return true;
}

KernelRunner::KernelRunner(const std::string& op, std::vector<TensorType> inputs,
                           std::vector<TensorType> outputs, ir::Attributes attributes,
                           int64_t misalignment)
    : KernelRunner(
          op, [](const KernelSpec& spec) { return CpuKernels().Make(spec); }, std::move(inputs),
          std::move(outputs), std::move(attributes), misalignment) {}

KernelRunner::KernelRunner(const KernelMaker& make, std::vector<TensorType> inputs,
                           std::vector<TensorType> outputs, ir::Attributes attributes,
                           int64_t misalignment)
    : KernelRunner("", make, std::move(inputs), std::move(outputs), std::move(attributes),
                   misalignment) {}

KernelRunner::KernelRunner(const std::string& op, const KernelMaker& make,
                           std::vector<TensorType> inputs, std::vector<TensorType> outputs,
                           ir::Attributes attributes, int64_t misalignment) {
  op_.name = op;
  spec_.call.op = &op_;
  spec_.call.inputs = std::move(inputs);
  RegisterAllOps();
  if (const ir::OpDef* def = ir::OpRegistry::Global().Find(op); def != nullptr) {
    const Status complete = ir::CompleteAttributes(def->attributes, &attributes);
    ZG_CHECK(complete.ok(), "{}", complete.message());
  }
  spec_.call.attributes = std::move(attributes);
  spec_.outputs = std::move(outputs);
  StatusOr<std::unique_ptr<Kernel>> kernel = make(spec_);
  ZG_CHECK(kernel.ok(), "{}", kernel.status().message());
  kernel_ = std::move(*kernel);
  for (const TensorType& type : spec_.call.inputs) {
    inputs_.push_back(std::make_unique<GuardedBuffer>(type.bytes(), misalignment));
    input_pointers_.push_back(inputs_.back()->data());
  }
  for (const TensorType& type : spec_.outputs) {
    outputs_.push_back(std::make_unique<GuardedBuffer>(type.bytes(), misalignment));
    output_pointers_.push_back(outputs_.back()->data());
  }
  in_place_.resize(outputs_.size());
  workspace_ = std::make_unique<GuardedBuffer>(kernel_->workspace_bytes());
  arguments_ = {input_pointers_.data(), output_pointers_.data(), workspace_->data(), &step_};
}

void KernelRunner::SetInput(int i, const std::vector<float>& values) {
  ZG_CHECK(static_cast<int64_t>(values.size()) == spec_.call.inputs[i].shape.num_elements());
  WithFloatType(spec_.call.inputs[i].dtype, [&](auto zero) {
    using T = decltype(zero);
    std::transform(values.begin(), values.end(), static_cast<T*>(inputs_[i]->data()),
                   [](float value) { return FromF32<T>(value); });
  });
}

void KernelRunner::SetInput(int i, const std::vector<int64_t>& values) {
  ZG_CHECK(static_cast<int64_t>(values.size()) == spec_.call.inputs[i].shape.num_elements());
  std::copy(values.begin(), values.end(), static_cast<int64_t*>(inputs_[i]->data()));
}

void KernelRunner::PutInPlace(int output, int input) {
  output_pointers_[output] = inputs_[input]->data();
  in_place_[output] = true;
}

Status KernelRunner::Run() {
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i]->FillWithNaN();
  workspace_->FillWithNaN();
  const Status status = kernel_->Run(arguments_);
  for (const auto& buffer : inputs_) EXPECT_TRUE(buffer->IntactBehindTheEnd());
  for (const auto& buffer : outputs_) EXPECT_TRUE(buffer->IntactBehindTheEnd());
  EXPECT_TRUE(workspace_->IntactBehindTheEnd()) << "the workspace is too small";
  return status;
}

std::vector<float> KernelRunner::output(int i) const {
  std::vector<float> values(spec_.outputs[i].shape.num_elements());
  WithFloatType(spec_.outputs[i].dtype, [&](auto zero) {
    const auto* const elements = static_cast<const decltype(zero)*>(output_pointers_[i]);
    std::transform(elements, elements + values.size(), values.begin(),
                   [](auto element) { return ToF32(element); });
  });
  return values;
}

std::vector<int64_t> KernelRunner::i64_output(int i) const {
  const auto* const values = static_cast<const int64_t*>(output_pointers_[i]);
  return std::vector<int64_t>(values, values + spec_.outputs[i].shape.num_elements());
}

Status MakeStatus(const std::string& op, std::vector<TensorType> inputs,
                  std::vector<TensorType> outputs, ir::Attributes attributes) {
  ir::OpDef def;
  def.name = op;
  KernelSpec spec;
  spec.call.op = &def;
  spec.call.inputs = std::move(inputs);
  spec.call.attributes = std::move(attributes);
  spec.outputs = std::move(outputs);
  return CpuKernels().Make(spec).status();
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, double absolute,
                double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - want[i]), absolute + relative * std::abs(want[i]))
        << "at " << i << ": got " << got[i] << ", want " << want[i];
  }
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(float)), 0)
        << "at " << i << ": " << a[i] << " and " << b[i];
  }
}

}  // namespace zg::testing
