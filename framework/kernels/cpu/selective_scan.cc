#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/kernels/selective_scan_call.h"

namespace zg {
namespace {

// Channels that are computed together. Their states are matrices (N, kChannels).
constexpr int64_t kChannels = 64;

// One sample's operands, from the first of at most kChannels channels on; rows of all channels, and
// of all states.
struct Block {
  const float* x;
  const float* step;
  const float* a;
  const float* b;
  const float* c;
  int64_t steps;
  int64_t channels;
  int64_t states;
  int64_t count;  // channels of the block
};

// To and from (N, kChannels), of rows of N.
void LoadStates(const float* rows, int64_t count, int64_t states, float* matrix) {
  for (int64_t n = 0; n < states; ++n) {
    for (int64_t i = 0; i < count; ++i) matrix[n * kChannels + i] = rows[i * states + n];
  }
}
void StoreStates(const float* matrix, int64_t count, int64_t states, float* rows) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t n = 0; n < states; ++n) rows[i * states + n] = matrix[n * kChannels + i];
  }
}

// The states after step t. `keep(n, i, decay, before)` sees those before it.
template <typename Keep>
ZG_INLINE void Advance(const Block& block, int64_t t, const float* a, float* h, const Keep& keep) {
  const float* const step = block.step + t * block.channels;
  const float* const x = block.x + t * block.channels;
  const float* const b = block.b + t * block.states;
  float product[kChannels];
  for (int64_t i = 0; i < block.count; ++i) product[i] = step[i] * x[i];
  for (int64_t n = 0; n < block.states; ++n) {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < block.count; ++i) {
      const float before = h[n * kChannels + i];
      const float decay = Exp(step[i] * a[n * kChannels + i]);
      keep(n, i, decay, before);
      h[n * kChannels + i] = decay * before + product[i] * b[n];
    }
  }
}

void Scan(const Block& block, const float* a, float* h, float* y) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t t = 0; t < block.steps; ++t) {
      Advance(block, t, a, h, [](int64_t, int64_t, float, float) __attribute__((always_inline)){});
      const float* const c = block.c + t * block.states;
      float sums[kChannels] = {};
      for (int64_t n = 0; n < block.states; ++n) {
        for (int64_t i = 0; i < block.count; ++i) sums[i] += h[n * kChannels + i] * c[n];
      }
      for (int64_t i = 0; i < block.count; ++i) y[t * block.channels + i] = sums[i];
    }
  });
}

class SelectiveScan : public Kernel {
 public:
  explicit SelectiveScan(const KernelSpec& spec)
      : call_(spec.call, 0), continues_(spec.call.inputs.size() == 6), threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, Parts(), 1, CostOfPart()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, Parts(), 1, CostOfPart(),
              [&](int64_t begin, int64_t end, int thread) {
                auto* const a =
                    static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
                for (; begin < end; ++begin) RunPart(arguments, begin, a);
              });
    return Status::Ok();
  }

 private:
  int64_t Blocks() const { return (call_.channels + kChannels - 1) / kChannels; }
  int64_t Parts() const { return call_.samples * Blocks(); }
  int64_t CostOfPart() const { return 8 * call_.steps * kChannels * call_.states; }
  int64_t BytesOfThread() const { return 2 * call_.states * kChannels * 4; }

  void RunPart(const KernelArguments& arguments, int64_t part, float* a) const {
    const int64_t sample = part / Blocks(), first = part % Blocks() * kChannels;
    const int64_t at = sample * call_.of_channels() + first;
    const int64_t states_at = sample * call_.of_states();
    const int64_t state_at = sample * call_.of_state() + first * call_.states;
    const Block block = {arguments.input<float>(0) + at,
                         arguments.input<float>(1) + at,
                         arguments.input<float>(2) + first * call_.states,
                         arguments.input<float>(3) + states_at,
                         arguments.input<float>(4) + states_at,
                         call_.steps,
                         call_.channels,
                         call_.states,
                         std::min(kChannels, call_.channels - first)};
    float* const h = a + call_.states * kChannels;
    LoadStates(block.a, block.count, block.states, a);
    if (continues_) {
      LoadStates(arguments.input<float>(5) + state_at, block.count, block.states, h);
    } else {
      std::fill_n(h, call_.states * kChannels, 0.0f);
    }
    Scan(block, a, h, arguments.output<float>(0) + at);
    StoreStates(h, block.count, block.states, arguments.output<float>(1) + state_at);
  }

  const SelectiveScanCall call_;
  const bool continues_;
  const int threads_;
};

// What a block of the gradient needs, matrices (N, kChannels).
struct GradScratch {
  float* a;
  float* h;
  float* da;
  float* carried;  // decay_(t+1) times the gradient of h_(t+1)
  float* before;   // h before each step of a chunk
  float* decays;   // of each step of a chunk
  float* starts;   // h before each chunk
};

struct GradBlock : Block {
  const float* dy;
  float* dx;
  float* dstep;
  float* db;
  float* dc;
};

// Adds the sums over the block's channels to db and dc.
void ScanBack(const GradBlock& block, int64_t t, const float* before, const float* decays,
              const GradScratch& scratch) {
  Multiversion([=]() ZG_VERSION {
    const int64_t row = t * block.channels;
    const float* const step = block.step + row;
    const float* const x = block.x + row;
    const float* const dy = block.dy + row;
    const float* const b = block.b + t * block.states;
    const float* const c = block.c + t * block.states;
    float of_step[kChannels] = {}, of_product[kChannels] = {}, product[kChannels];
    for (int64_t i = 0; i < block.count; ++i) product[i] = step[i] * x[i];
    for (int64_t n = 0; n < block.states; ++n) {
      float of_b[kChannels], of_c[kChannels];
      const int64_t at = n * kChannels;
      ZG_INDEPENDENT
      for (int64_t i = 0; i < block.count; ++i) {
        const float decay = decays[at + i];
        const float dh = scratch.carried[at + i] + dy[i] * c[n];
        of_b[i] = dh * product[i];
        of_c[i] = dy[i] * (decay * before[at + i] + product[i] * b[n]);
        const float of_exponent = dh * before[at + i] * decay;
        of_step[i] += of_exponent * scratch.a[at + i];
        of_product[i] += dh * b[n];
        scratch.da[at + i] += of_exponent * step[i];
        scratch.carried[at + i] = decay * dh;
      }
      const auto sum = [count = block.count](const float* terms) __attribute__((always_inline)) {
        return SumTerms(
            count, [terms](const auto& load)
                       __attribute__((always_inline)) { return load(terms, 0.0f); });
      };
      block.db[t * block.states + n] += sum(of_b);
      block.dc[t * block.states + n] += sum(of_c);
    }
    for (int64_t i = 0; i < block.count; ++i) {
      block.dx[row + i] = step[i] * of_product[i];
      block.dstep[row + i] = of_step[i] + x[i] * of_product[i];
    }
  });
}

// The states before steps [begin, end), and the decays; from those before `begin`.
void AdvanceChunk(const Block& block, int64_t begin, int64_t end, const GradScratch& scratch) {
  const int64_t size = block.states * kChannels;
  Multiversion([=]() ZG_VERSION {
    for (int64_t t = begin; t < end; ++t) {
      float* const before = scratch.before + (t - begin) * size;
      float* const decays = scratch.decays + (t - begin) * size;
      Advance(
          block, t, scratch.a, scratch.h,
          [=](int64_t n, int64_t i, float decay, float h) __attribute__((always_inline)) {
            before[n * kChannels + i] = h;
            decays[n * kChannels + i] = decay;
          });
    }
  });
}

// From scratch.h, the state before the first step.
void RunBlock(const GradBlock& block, const GradScratch& scratch) {
  const int64_t size = block.states * kChannels;
  const int64_t chunks = (block.steps + kScanChunk - 1) / kScanChunk;
  const auto end_of = [&](int64_t chunk) {
    return std::min((chunk + 1) * kScanChunk, block.steps);
  };
  std::fill_n(scratch.da, size, 0.0f);
  std::fill_n(scratch.carried, size, 0.0f);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::copy_n(scratch.h, size, scratch.starts + chunk * size);
    if (chunk + 1 < chunks) AdvanceChunk(block, chunk * kScanChunk, end_of(chunk), scratch);
  }
  for (int64_t chunk = chunks; chunk-- > 0;) {
    const int64_t begin = chunk * kScanChunk;
    std::copy_n(scratch.starts + chunk * size, size, scratch.h);
    AdvanceChunk(block, begin, end_of(chunk), scratch);
    for (int64_t t = end_of(chunk); t-- > begin;) {
      ScanBack(block, t, scratch.before + (t - begin) * size, scratch.decays + (t - begin) * size,
               scratch);
    }
  }
}

class SelectiveScanGrad : public Kernel {
 public:
  explicit SelectiveScanGrad(const KernelSpec& spec)
      : call_(spec.call, 1), continues_(spec.call.inputs.size() == 7), threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, call_.samples, 1, CostOfSample()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, call_.samples, 1, CostOfSample(),
              [&](int64_t begin, int64_t end, int thread) {
                const GradScratch scratch =
                    ScratchIn(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
                for (; begin < end; ++begin) RunSample(arguments, begin, scratch);
              });
    return Status::Ok();
  }

 private:
  int64_t CostOfSample() const { return 32 * call_.steps * call_.channels * call_.states; }
  int64_t Chunks() const { return (call_.steps + kScanChunk - 1) / kScanChunk; }
  int64_t BytesOfThread() const {
    return (4 + 2 * kScanChunk + Chunks()) * call_.states * kChannels * 4;
  }

  GradScratch ScratchIn(void* workspace) const {
    const int64_t size = call_.states * kChannels;
    auto* const a = static_cast<float*>(workspace);
    float* const before = a + 4 * size;
    float* const decays = before + kScanChunk * size;
    return {a, a + size, a + 2 * size, a + 3 * size, before, decays, decays + kScanChunk * size};
  }

  // One block after the other, in whose order the sums over channels are added up.
  void RunSample(const KernelArguments& arguments, int64_t sample,
                 const GradScratch& scratch) const {
    const int64_t states_at = sample * call_.of_states();
    float* const db = arguments.output<float>(3) + states_at;
    float* const dc = arguments.output<float>(4) + states_at;
    std::fill_n(db, call_.of_states(), 0.0f);
    std::fill_n(dc, call_.of_states(), 0.0f);
    for (int64_t first = 0; first < call_.channels; first += kChannels) {
      const int64_t at = sample * call_.of_channels() + first;
      GradBlock block;
      block.x = arguments.input<float>(1) + at;
      block.step = arguments.input<float>(2) + at;
      block.a = arguments.input<float>(3) + first * call_.states;
      block.b = arguments.input<float>(4) + states_at;
      block.c = arguments.input<float>(5) + states_at;
      block.steps = call_.steps;
      block.channels = call_.channels;
      block.states = call_.states;
      block.count = std::min(kChannels, call_.channels - first);
      block.dy = arguments.input<float>(0) + at;
      block.dx = arguments.output<float>(0) + at;
      block.dstep = arguments.output<float>(1) + at;
      block.db = db;
      block.dc = dc;
      const int64_t state_at = sample * call_.of_state() + first * call_.states;
      LoadStates(block.a, block.count, block.states, scratch.a);
      std::fill_n(scratch.h, block.states * kChannels, 0.0f);
      if (continues_) {
        LoadStates(arguments.input<float>(6) + state_at, block.count, block.states, scratch.h);
      }
      RunBlock(block, scratch);
      StoreStates(scratch.da, block.count, block.states, arguments.output<float>(2) + state_at);
      StoreStates(scratch.carried, block.count, block.states,
                  arguments.output<float>(5) + state_at);
    }
  }

  const SelectiveScanCall call_;
  const bool continues_;
  const int threads_;
};

}  // namespace

void RegisterSelectiveScanKernels(KernelRegistry& registry) {
  registry.Register("selective_scan", MakeKernel<SelectiveScan>);
  registry.Register("selective_scan_grad", MakeKernel<SelectiveScanGrad>);
}

}  // namespace zg
