// Runs one CPU kernel on operands given as vectors, for tests.
//
//   KernelRunner runner("gelu", {F32({3, 5})}, {F32({3, 5})}, {});
//   runner.SetInput(0, Random(15));
//   ASSERT_TRUE(runner.Run().ok());
//   runner.output(0);
//
// Outputs and workspace start as NaNs, so that elements that a kernel forgets to write are
// detected; a write after the end of an output or of the workspace fails the test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/kernel.h"

namespace zg::testing {

inline TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
inline TensorType BF16(Shape shape) { return {DType::kBF16, std::move(shape)}; }
inline TensorType I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

// Values in [low, high), the same for the same seed.
std::vector<float> Random(int64_t count, uint64_t seed = 1, float low = -1.0f, float high = 1.0f);
std::vector<int64_t> RandomIds(int64_t count, int64_t end, uint64_t seed = 1);

// Memory followed by a guard; `misalignment` elements of f32 after a 64-byte boundary.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes, int64_t misalignment = 0);
  void* data() { return data_; }
  void FillWithNaN();
  bool IntactBehindTheEnd() const;

 private:
  int64_t bytes_;
  std::unique_ptr<char[]> memory_;
  char* data_;
};

class KernelRunner {
 public:
  using KernelMaker = std::function<StatusOr<std::unique_ptr<Kernel>>(const KernelSpec&)>;

  // `misalignment` moves all operands, but not the workspace, away from 64-byte boundaries.
  KernelRunner(const std::string& op, std::vector<TensorType> inputs,
               std::vector<TensorType> outputs, ir::Attributes attributes,
               int64_t misalignment = 0);
  // Runs another kernel than the registered one.
  KernelRunner(const KernelMaker& make, std::vector<TensorType> inputs,
               std::vector<TensorType> outputs, ir::Attributes attributes,
               int64_t misalignment = 0);

  StepContext& step() { return step_; }
  void SetInput(int i, const std::vector<float>& values);  // rounded to the input's dtype
  void SetInput(int i, const std::vector<int64_t>& values);
  // Makes output `output` use the memory of input `input` from now on.
  void PutInPlace(int output, int input);

  Status Run();
  // Runs only the code that must not allocate; the outputs keep their former contents.
  Status RunKernelAlone() { return kernel_->Run(arguments_); }

  std::vector<float> output(int i) const;
  std::vector<int64_t> i64_output(int i) const;
  const Kernel& kernel() const { return *kernel_; }
  float* input_data(int i) { return static_cast<float*>(inputs_[i]->data()); }

 private:
  KernelRunner(const std::string& op, const KernelMaker& make, std::vector<TensorType> inputs,
               std::vector<TensorType> outputs, ir::Attributes attributes, int64_t misalignment);

  ir::OpDef op_;
  KernelSpec spec_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<GuardedBuffer>> inputs_;
  std::vector<std::unique_ptr<GuardedBuffer>> outputs_;
  std::unique_ptr<GuardedBuffer> workspace_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
  std::vector<bool> in_place_;
  StepContext step_;
  KernelArguments arguments_;
};

// The status of making the kernel, for specs that are rejected.
Status MakeStatus(const std::string& op, std::vector<TensorType> inputs,
                  std::vector<TensorType> outputs, ir::Attributes attributes);

// |got - want| <= absolute + relative * |want|, element by element.
void ExpectNear(const std::vector<float>& got, const std::vector<double>& want, double absolute,
                double relative);
// Compares bit by bit.
void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace zg::testing
