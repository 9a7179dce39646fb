#include <cmath>
#include <memory>
#include <string>

#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/update_program.cuh"

namespace zg::cuda {
namespace {

template <typename T>
struct UpdateBody {
  DeviceUpdateProgram program;
  UpdateTensors<T> tensors;
  UpdateOutputs outputs;
  const StepContext* step;
  const float* control;  // null: no control
  UpdateHyperparameters hyperparameters;
  FaultSink faults;

  struct Prepared {
    float factor;  // on the gradient
    float scalars[kMaxUpdateScalars];
  };

  __device__ Prepared Prepare() const {
    double scalars[kMaxUpdateScalars];
    hyperparameters.SetScalars(*step, control, scalars);
    EvaluateUpdateScalars(program, scalars);
    Prepared prepared;
    prepared.factor = control == nullptr ? 1.0f : control[0];
    for (int s = 0; s < program.num_scalar_inputs + program.num_statements; ++s) {
      prepared.scalars[s] = static_cast<float>(scalars[s]);
    }
    return prepared;
  }

  template <int kCount>
  __device__ void Run(int64_t begin, const Prepared& prepared) const {
    if (prepared.factor == 0.0f) return outputs.Keep<kCount>(program, tensors, begin);
    Floats<kCount> slots[kMaxUpdateSlots];
    tensors.Evaluate(program, begin, prepared.factor, prepared.scalars, /*without_norms=*/false,
                     slots);
    const bool is_finite = outputs.Store(program, slots, begin);
    if (!is_finite && step->stop_on_non_finite) faults.Record(0, 0);
  }
};

class ElementwiseUpdate : public Kernel {
 public:
  ElementwiseUpdate(const DeviceUpdateProgram& program, const KernelSpec& spec)
      : program_(program),
        hyperparameters_(spec.call.attributes),
        gradient_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()),
        has_control_(static_cast<int>(spec.call.inputs.size()) == program.num_tensors + 1) {}

  Status Run(const KernelArguments& arguments) override {
    const int num_tensors = program_.num_tensors;
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      const UpdateBody<T> body = {program_,
                                  UpdateTensors<T>(arguments, num_tensors),
                                  UpdateOutputs(arguments, num_tensors - 1),
                                  arguments.device_step,
                                  has_control_ ? arguments.input<float>(num_tensors) : nullptr,
                                  hyperparameters_,
                                  FaultSinkOf(arguments)};
      const bool is_aligned =
          body.tensors.AreAllAligned(num_tensors) && body.outputs.AreAllAligned(num_tensors - 1);
      return RunPreparedPacks<4>(body, is_aligned, num_elements_, arguments.stream);
    });
  }

  std::string FaultText(const DeviceFault&) const override {
    return "an updated parameter is not finite";
  }

 private:
  const DeviceUpdateProgram program_;
  const UpdateHyperparameters hyperparameters_;
  const DType gradient_dtype_;
  const int64_t num_elements_;
  const bool has_control_;
};

StatusOr<std::unique_ptr<Kernel>> MakeElementwiseUpdate(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  ZG_ASSIGN_OR_RETURN(const UpdateProgram source, ParseUpdateProgram(spec.call));
  ZG_ASSIGN_OR_RETURN(const DeviceUpdateProgram program, CompileUpdate(source, spec.call.op->name));
  return std::unique_ptr<Kernel>(std::make_unique<ElementwiseUpdate>(program, spec));
}

}  // namespace

void RegisterElementwiseUpdateKernels(KernelRegistry& registry) {
  registry.Register("elementwise_update", MakeElementwiseUpdate);
}

}  // namespace zg::cuda
