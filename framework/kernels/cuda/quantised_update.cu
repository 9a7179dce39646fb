#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/adam_attributes.h"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/math/optimizer_math.h"
#include "framework/kernels/math/quantised_math.h"
#include "framework/ops/quantised_blocks.h"

namespace zg::cuda {
namespace {

static_assert(kQuantisedBlock == kThreads && kNumCodes == kThreads,
              "a thread for each element of a block, and for each code");

constexpr int64_t kMaxBlocks = 65536;  // of threads

struct CodeValues {
  float values[kNumCodes];  // by code
  int num_negative;
};

CodeValues ValuesOf(const CodeTable& table) {
  CodeValues values = {};
  std::copy_n(table.values, kNumCodes, values.values);
  values.num_negative = table.num_negative;
  return values;
}

struct Moment {
  uint8_t* codes;
  float* scales;
};

struct Call {
  int64_t num_elements;
  const StepContext* step;
  const float* control;  // null: no control
  AdamAttributes attributes;
  double after_updates;
  FaultSink faults;
};

// Every thread of the block gets the largest.
__device__ inline float BlockMax(float value) {
  __shared__ float warps[kThreads / kWarp];
  value = WarpMax(value);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  float largest = warps[0];
  for (int warp = 1; warp < kThreads / kWarp; ++warp) {
    largest = warps[warp] > largest ? warps[warp] : largest;
  }
  __syncthreads();  // before the next call writes to `warps`
  return largest;
}

// The threads process one quantised block; `is_here`: the last one may have fewer elements.
__device__ inline void Encode(const CodeTable& table, float value, bool is_here, int64_t element,
                              int64_t block, const Moment& moment) {
  const float magnitude = std::abs(value);
  const float scale = BlockMax(is_here && magnitude > 0.0f ? magnitude : 0.0f);  // not NaN
  if (threadIdx.x == 0) moment.scales[block] = scale;
  if (!is_here) return;
  const float divisor = scale > 0.0f ? scale : 1.0f;
  moment.codes[element] = NearestCode(table, value / divisor);
}

template <typename T>
__global__ void Adam8Kernel(Call call, CodeValues m_values, CodeValues v_values, const T* g,
                            float* p, Moment m, Moment v) {
  __shared__ CodeTable m_table;
  __shared__ CodeTable v_table;
  __shared__ AdamFactors factors;
  const int thread = static_cast<int>(threadIdx.x);
  m_table.values[thread] = m_values.values[thread];
  v_table.values[thread] = v_values.values[thread];
  const float factor = call.control == nullptr ? 1.0f : call.control[0];
  if (thread == 0) {
    m_table.num_negative = m_values.num_negative;
    v_table.num_negative = v_values.num_negative;
    const double number = call.control == nullptr ? static_cast<double>(call.step->step)
                                                  : static_cast<double>(call.control[1]);
    factors =
        MakeAdamFactors(call.attributes, call.step->lr_factor, factor, number - call.after_updates);
  }
  __syncthreads();
  if (factor == 0.0f) return;  // everything stays unchanged
  m_table.limits[thread] = m_table.LimitAt(thread);
  v_table.limits[thread] = v_table.LimitAt(thread);
  __syncthreads();
  const int64_t num_blocks = (call.num_elements + kQuantisedBlock - 1) / kQuantisedBlock;
  for (int64_t block = blockIdx.x; block < num_blocks; block += gridDim.x) {
    const int64_t element = block * kQuantisedBlock + thread;
    const bool is_here = element < call.num_elements;
    AdamResult next = {0.0f, 0.0f, 0.0f};
    if (is_here) {
      const float old_m = m_table.values[m.codes[element]] * m.scales[block];
      const float old_v = v_table.values[v.codes[element]] * v.scales[block];
      next = AdamStep({p[element], Widen(g[element]), old_m, old_v}, factors);
      p[element] = next.p;
      if (!std::isfinite(next.p) && call.step->stop_on_non_finite) call.faults.Record(0, 0);
    }
    __syncthreads();  // scales have been read
    Encode(m_table, next.m, is_here, element, block, m);
    Encode(v_table, next.v, is_here, element, block, v);
  }
}

class Adam8Update : public Kernel {
 public:
  explicit Adam8Update(const KernelSpec& spec)
      : gradient_dtype_(spec.call.inputs[1].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()),
        has_control_(spec.call.inputs.size() == 7),
        attributes_(AdamAttributesOf(spec.call.attributes)),
        after_updates_(static_cast<double>(spec.call.attributes.Int("after_updates"))),
        m_values_(ValuesOf(MakeCodeTable(/*is_signed=*/true))),
        v_values_(ValuesOf(MakeCodeTable(/*is_signed=*/false))) {
    for (const TensorType& output : spec.outputs) output_bytes_.push_back(output.bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    for (size_t i = 0; i < output_bytes_.size(); ++i) {
      const void* const old_values = arguments.inputs[i == 0 ? 0 : i + 1];
      if (arguments.outputs[i] == old_values) continue;
      ZG_RETURN_IF_ERROR(CudaStatus(
          cudaMemcpyAsync(arguments.outputs[i], old_values, output_bytes_[i],
                          cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(arguments.stream)),
          "a bucket could not be copied"));
    }
    const Call call = {
        num_elements_, arguments.device_step, has_control_ ? arguments.input<float>(6) : nullptr,
        attributes_,   after_updates_,        FaultSinkOf(arguments)};
    const int64_t blocks = std::min(NumQuantisedBlocks(num_elements_), kMaxBlocks);
    return WithFloatType(gradient_dtype_, [&](auto zero) {
      using T = decltype(zero);
      return Launch(Adam8Kernel<T>, Threads(blocks * kThreads), arguments.stream, call, m_values_,
                    v_values_, arguments.input<T>(1), arguments.output<float>(0),
                    Moment{arguments.output<uint8_t>(1), arguments.output<float>(2)},
                    Moment{arguments.output<uint8_t>(3), arguments.output<float>(4)});
    });
  }

  std::string FaultText(const DeviceFault&) const override {
    return "an updated parameter is not finite";
  }

 private:
  const DType gradient_dtype_;
  const int64_t num_elements_;
  const bool has_control_;
  const AdamAttributes attributes_;
  const double after_updates_;
  const CodeValues m_values_;
  const CodeValues v_values_;
  std::vector<int64_t> output_bytes_;
};

// The op's shape rule has checked the types, codes in u8 among them.
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(std::make_unique<Adam8Update>(spec));
}

}  // namespace

void RegisterQuantisedUpdateKernels(KernelRegistry& registry) {
  registry.Register("adam8_update", Make);
}

}  // namespace zg::cuda
