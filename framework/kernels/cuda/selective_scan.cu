#include <cstdint>
#include <memory>
#include <utility>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/math/vector_math.h"
#include "framework/kernels/selective_scan_call.h"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxStates = 64;

struct ScanShape {
  int64_t steps, channels;
  int states;
  int64_t chunks;  // of kScanChunk steps
  int64_t warps;   // of channels
};

struct ScanArrays {
  const float* x;
  const float* step;
  const float* a;
  const float* b;
  const float* c;
};

// A thread computes a channel of the sample blockIdx.y; threads without a channel have none of the
// results, but take part in the sums of their warp.
struct Channel {
  bool exists;
  int64_t index;
  int64_t at;         // in (B, T, D), of step 0
  int64_t states_at;  // in (B, T, N), of step 0
  int64_t state_at;   // in (B, D, N)
};

__device__ inline Channel OwnChannel(const ScanShape& shape) {
  const int64_t sample = blockIdx.y;
  int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool exists = index < shape.channels;
  if (!exists) index = 0;
  return {exists, index, sample * shape.steps * shape.channels + index,
          sample * shape.steps * shape.states, (sample * shape.channels + index) * shape.states};
}

// Loops over states are unrolled, so that arrays of them stay in registers.
template <int kStates, typename Body>
__device__ inline void ForStates(int states, const Body& body) {
#pragma unroll
  for (int n = 0; n < kStates; ++n) {
    if (n < states) body(n);
  }
}

template <int kStates>
__global__ void ScanKernel(ScanArrays arrays, ScanShape shape, const float* state, float* y,
                           float* last) {
  const Channel channel = OwnChannel(shape);
  if (!channel.exists) return;
  float a[kStates], h[kStates];
  ForStates<kStates>(shape.states, [&](int n) {
    a[n] = arrays.a[channel.index * shape.states + n];
    h[n] = state == nullptr ? 0.0f : state[channel.state_at + n];
  });
  for (int64_t t = 0; t < shape.steps; ++t) {
    const int64_t at = channel.at + t * shape.channels;
    const int64_t states_at = channel.states_at + t * shape.states;
    const float step = arrays.step[at];
    const float product = step * arrays.x[at];
    float sum = 0.0f;
    ForStates<kStates>(shape.states, [&](int n) {
      h[n] = Exp(step * a[n]) * h[n] + product * arrays.b[states_at + n];
      sum += h[n] * arrays.c[states_at + n];
    });
    y[at] = sum;
  }
  ForStates<kStates>(shape.states, [&](int n) { last[channel.state_at + n] = h[n]; });
}

// The workspace of the gradient.
struct ScanScratch {
  float* starts;  // (B, chunks, N, D): h before each chunk
  float* before;  // (B, kScanChunk, N, D): h before each step of a chunk
  float* decays;  // likewise
  float* db;      // (B, warps, T, N): the sums over a warp's channels
  float* dc;
};

template <int kStates>
__global__ void ScanGradKernel(ScanArrays arrays, const float* dy, const float* state,
                               ScanShape shape, ScanScratch scratch, float* dx, float* dstep,
                               float* da, float* dstate) {
  const Channel channel = OwnChannel(shape);
  const int64_t sample = blockIdx.y;
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  // The place of a state in one of the arrays of `count` matrices (N, D) for each sample.
  const auto place = [&](int64_t count, int64_t matrix, int n) {
    return ((sample * count + matrix) * shape.states + n) * shape.channels + channel.index;
  };
  float a[kStates], h[kStates], carried[kStates], sums[kStates];
  ForStates<kStates>(shape.states, [&](int n) {
    a[n] = arrays.a[channel.index * shape.states + n];
    h[n] = state == nullptr ? 0.0f : state[channel.state_at + n];
    carried[n] = sums[n] = 0.0f;
  });
  // The step of h; `keep(n, decay, before)` sees the state before it.
  const auto advance = [&](int64_t t, const auto& keep) {
    const int64_t at = channel.at + t * shape.channels;
    const float step = arrays.step[at];
    const float product = step * arrays.x[at];
    ForStates<kStates>(shape.states, [&](int n) {
      const float decay = Exp(step * a[n]);
      keep(n, decay, h[n]);
      h[n] = decay * h[n] + product * arrays.b[channel.states_at + t * shape.states + n];
    });
  };
  const auto end_of = [&](int64_t chunk) {
    const int64_t end = (chunk + 1) * kScanChunk;
    return end < shape.steps ? end : shape.steps;
  };
  for (int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
    if (channel.exists) {
      ForStates<kStates>(shape.states,
                         [&](int n) { scratch.starts[place(shape.chunks, chunk, n)] = h[n]; });
    }
    if (chunk + 1 == shape.chunks) break;
    for (int64_t t = chunk * kScanChunk; t < end_of(chunk); ++t) {
      advance(t, [](int, float, float) {});
    }
  }
  for (int64_t chunk = shape.chunks; chunk-- > 0;) {
    const int64_t begin = chunk * kScanChunk;
    if (channel.exists) {
      ForStates<kStates>(shape.states,
                         [&](int n) { h[n] = scratch.starts[place(shape.chunks, chunk, n)]; });
      for (int64_t t = begin; t < end_of(chunk); ++t) {
        advance(t, [&](int n, float decay, float before) {
          scratch.before[place(kScanChunk, t - begin, n)] = before;
          scratch.decays[place(kScanChunk, t - begin, n)] = decay;
        });
      }
    }
    for (int64_t t = end_of(chunk); t-- > begin;) {
      const int64_t at = channel.at + t * shape.channels;
      const int64_t states_at = channel.states_at + t * shape.states;
      const float of_y = channel.exists ? dy[at] : 0.0f;
      const float step = arrays.step[at], x = arrays.x[at];
      const float product = step * x;
      float of_step = 0.0f, of_product = 0.0f;
      ForStates<kStates>(shape.states, [&](int n) {
        float decay = 0.0f, before = 0.0f;
        if (channel.exists) {
          decay = scratch.decays[place(kScanChunk, t - begin, n)];
          before = scratch.before[place(kScanChunk, t - begin, n)];
        }
        const float b = arrays.b[states_at + n];
        const float dh = carried[n] + of_y * arrays.c[states_at + n];
        const float of_exponent = dh * before * decay;
        of_step += of_exponent * a[n];
        of_product += dh * b;
        sums[n] += of_exponent * step;
        carried[n] = decay * dh;
        const float db = WarpSum(dh * product);
        const float dc = WarpSum(of_y * (decay * before + product * b));
        if (threadIdx.x % kWarp == 0 && warp < shape.warps) {
          const int64_t partial =
              ((sample * shape.warps + warp) * shape.steps + t) * shape.states + n;
          scratch.db[partial] = db;
          scratch.dc[partial] = dc;
        }
      });
      if (channel.exists) {
        dx[at] = step * of_product;
        dstep[at] = of_step + x * of_product;
      }
    }
  }
  if (channel.exists) {
    ForStates<kStates>(shape.states, [&](int n) {
      da[channel.state_at + n] = sums[n];
      dstate[channel.state_at + n] = carried[n];
    });
  }
}

// One thread for each element of db and dc.
__global__ void AddWarpsKernel(ScanScratch scratch, ScanShape shape, int64_t num_elements,
                               float* db, float* dc) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= num_elements) return;
  const int64_t of_sample = shape.steps * shape.states;
  const int64_t first = index / of_sample * shape.warps * of_sample + index % of_sample;
  float sum_b = 0.0f, sum_c = 0.0f;
  for (int64_t warp = 0; warp < shape.warps; ++warp) {
    sum_b += scratch.db[first + warp * of_sample];
    sum_c += scratch.dc[first + warp * of_sample];
  }
  db[index] = sum_b;
  dc[index] = sum_c;
}

class ScanKernels : public Kernel {
 public:
  ScanKernels(const KernelSpec& spec, int first) : call_(spec.call, first), first_(first) {}

 protected:
  ScanArrays ArraysOf(const KernelArguments& arguments) const {
    return {arguments.input<float>(first_), arguments.input<float>(first_ + 1),
            arguments.input<float>(first_ + 2), arguments.input<float>(first_ + 3),
            arguments.input<float>(first_ + 4)};
  }
  ScanShape shape() const {
    return {call_.steps, call_.channels, static_cast<int>(call_.states),
            CeilDivide(call_.steps, kScanChunk), CeilDivide(call_.channels, kWarp)};
  }
  LaunchShape Grid() const {
    return {dim3(static_cast<unsigned>(CeilDivide(call_.channels, kThreads)),
                 static_cast<unsigned>(call_.samples))};
  }

  const SelectiveScanCall call_;
  const int first_;
};

class SelectiveScan : public ScanKernels {
 public:
  explicit SelectiveScan(const KernelSpec& spec)
      : ScanKernels(spec, 0), continues_(spec.call.inputs.size() == 6) {}

  Status Run(const KernelArguments& arguments) override {
    const auto kernel = call_.states <= 16 ? ScanKernel<16> : ScanKernel<kMaxStates>;
    return Launch(kernel, Grid(), arguments.stream, ArraysOf(arguments), shape(),
                  continues_ ? arguments.input<float>(5) : nullptr, arguments.output<float>(0),
                  arguments.output<float>(1));
  }

 private:
  const bool continues_;
};

class SelectiveScanGrad : public ScanKernels {
 public:
  explicit SelectiveScanGrad(const KernelSpec& spec)
      : ScanKernels(spec, 1), continues_(spec.call.inputs.size() == 7) {}

  int64_t workspace_bytes() const override {
    return 4 * (Starts() + 2 * OfChunk() + 2 * OfWarps());
  }

  Status Run(const KernelArguments& arguments) override {
    const ScanScratch scratch = ScratchIn(static_cast<float*>(arguments.workspace));
    const auto kernel = call_.states <= 16 ? ScanGradKernel<16> : ScanGradKernel<kMaxStates>;
    ZG_RETURN_IF_ERROR(Launch(kernel, Grid(), arguments.stream, ArraysOf(arguments),
                              arguments.input<float>(0),
                              continues_ ? arguments.input<float>(6) : nullptr, shape(), scratch,
                              arguments.output<float>(0), arguments.output<float>(1),
                              arguments.output<float>(2), arguments.output<float>(5)));
    const int64_t num_elements = call_.samples * call_.of_states();
    return Launch(AddWarpsKernel, Threads(num_elements), arguments.stream, scratch, shape(),
                  num_elements, arguments.output<float>(3), arguments.output<float>(4));
  }

 private:
  int64_t Starts() const { return call_.samples * shape().chunks * call_.of_state(); }
  int64_t OfChunk() const { return call_.samples * kScanChunk * call_.of_state(); }
  int64_t OfWarps() const { return call_.samples * shape().warps * call_.of_states(); }

  ScanScratch ScratchIn(float* next) const {
    const auto take = [&](int64_t floats) { return std::exchange(next, next + floats); };
    ScanScratch scratch;
    scratch.starts = take(Starts());
    scratch.before = take(OfChunk());
    scratch.decays = take(OfChunk());
    scratch.db = take(OfWarps());
    scratch.dc = take(OfWarps());
    return scratch;
  }

  const bool continues_;
};

template <typename OwnKernel, int kFirst>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  const SelectiveScanCall call(spec.call, kFirst);
  if (call.states > kMaxStates) {
    return InvalidArgument("{}: channels have {} states, the CUDA kernel takes up to {}",
                           spec.call.op->name, call.states, kMaxStates);
  }
  return MakeKernel<OwnKernel>(spec);
}

}  // namespace

void RegisterSelectiveScanKernels(KernelRegistry& registry) {
  registry.Register("selective_scan", Make<SelectiveScan, 0>);
  registry.Register("selective_scan_grad", Make<SelectiveScanGrad, 1>);
}

}  // namespace zg::cuda
