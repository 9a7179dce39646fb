// Recurrent layers: from element to element, a product of the states with weight, and then the gates
// of each sample. Threads share the samples.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/recurrence_math.h"
#include "framework/kernels/recurrence_call.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// What a thread takes along from element to element: a row for each of its samples.
struct Carried {
  void* gates;   // (G H): the products with weight; in a gradient, what these are multiplied with
  void* state;   // (H): h, or its gradient
  void* direct;  // (H): in a GRU's gradient, what passes without a product
  float* cells;  // (H): c, or its gradient
};

class RecurrenceKernel : public Kernel {
 public:
  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(ranges_.size()) * range_bytes_;
  }

  Status Run(const KernelArguments& arguments) override {
    const auto run = [&](int64_t i, int) {
      char* next = static_cast<char*>(arguments.workspace) + i * range_bytes_;
      const auto take = [&](int64_t bytes) {
        return std::exchange(next, next + WholeLines(bytes));
      };
      const Range& range = ranges_[i];
      Carried carried;
      carried.gates = take(range.samples * call_.gates * row_bytes());
      carried.state = take(range.samples * row_bytes());
      carried.direct = take(range.samples * row_bytes());
      carried.cells = reinterpret_cast<float*>(take(CellBytes(range.samples)));
      RunRange(arguments, range, carried, next);
    };
    if (arguments.threads != nullptr) {
      arguments.threads->Run(static_cast<int64_t>(ranges_.size()), run);
    } else {
      for (size_t i = 0; i < ranges_.size(); ++i) run(static_cast<int64_t>(i), 0);
    }
    return Status::Ok();
  }

 protected:
  struct Range {
    int64_t begin;
    int64_t samples;
    Gemm product;
  };

  RecurrenceKernel(const KernelSpec& spec, bool is_gradient) : call_(spec.call) {
    GemmSizes sizes;
    sizes.n = is_gradient ? call_.hidden : call_.gates * call_.hidden;
    sizes.k = is_gradient ? call_.gates * call_.hidden : call_.hidden;
    sizes.transpose_b = !is_gradient;
    sizes.dtype = call_.dtype;
    const int num_ranges = NumSharingProduct(spec.threads, call_.samples, 1,
                                             call_.samples * call_.steps * sizes.n * sizes.k);
    for (int i = 0; i < num_ranges; ++i) {
      const int64_t begin = RangeBegin(call_.samples, 1, num_ranges, i);
      sizes.m = RangeBegin(call_.samples, 1, num_ranges, i + 1) - begin;
      ranges_.push_back({begin, sizes.m, Gemm(sizes)});
      const int64_t bytes = WholeLines(sizes.m * call_.gates * row_bytes()) +
                            2 * WholeLines(sizes.m * row_bytes()) + WholeLines(CellBytes(sizes.m)) +
                            WholeLines(ranges_.back().product.workspace_bytes());
      range_bytes_ = std::max(range_bytes_, bytes);
    }
  }

  virtual void RunRange(const KernelArguments& arguments, const Range& range,
                        const Carried& carried, void* scratch) const = 0;

  int64_t row_bytes() const { return call_.hidden * SizeOf(call_.dtype); }
  int64_t CellBytes(int64_t samples) const {
    return samples * call_.hidden * static_cast<int64_t>(sizeof(float));
  }

  const RecurrenceCall call_;

 private:
  std::vector<Range> ranges_;
  int64_t range_bytes_ = 0;
};

// Row `row` of a range at element `t`, in a sequence whose rows have so many elements.
template <typename T>
T* At(T* sequence, const RecurrenceCall& call, int64_t sample, int64_t t, int64_t columns) {
  return sequence + (sample * call.steps + t) * columns;
}

class Layer : public RecurrenceKernel {
 protected:
  explicit Layer(const KernelSpec& spec)
      : RecurrenceKernel(spec, /*is_gradient=*/false), num_inputs_(spec.call.inputs.size()) {}

  // The gates of a sample at element t, whose products are known; carries its state on.
  virtual void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t,
                      const Carried& row) const = 0;

 private:
  void RunRange(const KernelArguments& arguments, const Range& range, const Carried& carried,
                void* scratch) const override {
    const int64_t bytes = range.samples * row_bytes();
    if (num_inputs_ > 3) {
      std::memcpy(carried.state, arguments.input<char>(3) + range.begin * row_bytes(), bytes);
    } else {
      std::memset(carried.state, 0, bytes);
    }
    const int64_t elements = range.samples * call_.hidden;
    if (num_inputs_ > 4) {
      ConvertFloats(call_.dtype, arguments.input<char>(4) + range.begin * row_bytes(), DType::kF32,
                    carried.cells, elements);
    } else {
      std::fill_n(carried.cells, elements, 0.0f);
    }
    const int64_t columns = call_.gates * call_.hidden;
    for (int64_t i = 0; i < call_.steps; ++i) {
      range.product.Run({carried.state, call_.hidden}, {arguments.inputs[1], call_.hidden},
                        arguments.inputs[2], carried.gates, columns, scratch);
      for (int64_t row = 0; row < range.samples; ++row) {
        RunRow(arguments, range.begin + row, call_.StepAt(i),
               {static_cast<char*>(carried.gates) + row * call_.gates * row_bytes(),
                static_cast<char*>(carried.state) + row * row_bytes(), nullptr,
                carried.cells + row * call_.hidden});
      }
    }
  }

  const size_t num_inputs_;
};

class Gradient : public RecurrenceKernel {
 protected:
  Gradient(const KernelSpec& spec, bool has_direct)
      : RecurrenceKernel(spec, /*is_gradient=*/true),
        has_direct_(has_direct),
        num_outputs_(spec.outputs.size()) {}

  // The gradients of the gates of a sample at element t, from what its later elements have carried.
  // The element before it is `before`; -1: there is none.
  virtual void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
                      const Carried& row) const = 0;
  // The outputs with the gradients of states before the first element.
  virtual int state_output() const = 0;

 private:
  void RunRange(const KernelArguments& arguments, const Range& range, const Carried& carried,
                void* scratch) const override {
    const int64_t elements = range.samples * call_.hidden;
    const int64_t columns = call_.gates * call_.hidden;
    std::memset(carried.state, 0, range.samples * row_bytes());
    std::fill_n(carried.cells, elements, 0.0f);
    for (int64_t i = call_.steps - 1; i >= 0; --i) {
      for (int64_t row = 0; row < range.samples; ++row) {
        RunRow(arguments, range.begin + row, call_.StepAt(i), i == 0 ? -1 : call_.StepAt(i - 1),
               {static_cast<char*>(carried.gates) + row * call_.gates * row_bytes(),
                static_cast<char*>(carried.state) + row * row_bytes(),
                static_cast<char*>(carried.direct) + row * row_bytes(),
                carried.cells + row * call_.hidden});
      }
      range.product.Run({carried.gates, columns}, {arguments.inputs[1], call_.hidden},
                        {nullptr, has_direct_ ? carried.direct : nullptr}, carried.state,
                        call_.hidden, scratch);
    }
    const size_t first = static_cast<size_t>(state_output());
    std::memcpy(arguments.output<char>(static_cast<int>(first)) + range.begin * row_bytes(),
                carried.state, range.samples * row_bytes());
    if (first + 1 == num_outputs_) return;
    ConvertFloats(DType::kF32, carried.cells, call_.dtype,
                  arguments.output<char>(static_cast<int>(first) + 1) + range.begin * row_bytes(),
                  elements);
  }

  const bool has_direct_;
  const size_t num_outputs_;
};

template <typename T>
ZG_INLINE LstmGates ReadLstmGates(const T* gates, int64_t j, int64_t size) {
  return {ToF32(gates[j]), ToF32(gates[j + size]), ToF32(gates[j + 2 * size]),
          ToF32(gates[j + 3 * size])};
}

class Lstm : public Layer {
 public:
  explicit Lstm(const KernelSpec& spec) : Layer(spec) {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t,
              const Carried& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const x = At(arguments.input<T>(0), call_, sample, t, 4 * size);
      const T* const product = static_cast<const T*>(row.gates);
      T* const states = At(arguments.output<T>(0), call_, sample, t, size);
      T* const cells = At(arguments.output<T>(1), call_, sample, t, size);
      T* const gates = At(arguments.output<T>(2), call_, sample, t, 4 * size);
      T* const carried = static_cast<T*>(row.state);
      float* const cell = row.cells;
      Multiversion([=]() ZG_VERSION {
        const auto sum = [=](int64_t j) __attribute__((always_inline)) {
          return ToF32(x[j]) + ToF32(product[j]);
        };
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          const LstmGates own =
              LstmGates::Of(sum(j), sum(j + size), sum(j + 2 * size), sum(j + 3 * size));
          const float c = own.Cell(cell[j]);
          const T h = FromF32<T>(own.State(c));
          cell[j] = c;
          cells[j] = FromF32<T>(c);
          states[j] = h;
          carried[j] = h;
          gates[j] = FromF32<T>(own.i);
          gates[j + size] = FromF32<T>(own.f);
          gates[j + 2 * size] = FromF32<T>(own.g);
          gates[j + 3 * size] = FromF32<T>(own.o);
        }
      });
    });
  }
};

class LstmGrad : public Gradient {
 public:
  explicit LstmGrad(const KernelSpec& spec)
      : Gradient(spec, /*has_direct=*/false), operands_(spec.call) {}

 private:
  int state_output() const override { return 1; }

  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
              const Carried& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const dh = At(arguments.input<T>(0), call_, sample, t, size);
      const T* const gates = At(arguments.input<T>(2), call_, sample, t, 4 * size);
      const T* const cells = At(arguments.input<T>(3), call_, sample, t, size);
      const T* const dc =
          operands_.dc < 0 ? nullptr : At(arguments.input<T>(operands_.dc), call_, sample, t, size);
      const T* cells_before = nullptr;
      if (before >= 0) cells_before = At(arguments.input<T>(3), call_, sample, before, size);
      if (before < 0 && operands_.c >= 0) {
        cells_before = arguments.input<T>(operands_.c) + sample * size;
      }
      T* const dx = At(arguments.output<T>(0), call_, sample, t, 4 * size);
      T* const dproduct = static_cast<T*>(row.gates);
      const T* const dstate = static_cast<const T*>(row.state);
      float* const dcell = row.cells;
      Multiversion([=]() ZG_VERSION {
        if (dc != nullptr) {
          ZG_INDEPENDENT
          for (int64_t j = 0; j < size; ++j) dcell[j] += ToF32(dc[j]);
        }
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          const float cell_before = cells_before == nullptr ? 0.0f : ToF32(cells_before[j]);
          const LstmGradient own =
              LstmGradient::Of(ReadLstmGates(gates, j, size), cell_before, ToF32(cells[j]),
                               ToF32(dh[j]) + ToF32(dstate[j]), dcell[j]);
          dcell[j] = own.cell_before;
          dx[j] = dproduct[j] = FromF32<T>(own.i);
          dx[j + size] = dproduct[j + size] = FromF32<T>(own.f);
          dx[j + 2 * size] = dproduct[j + 2 * size] = FromF32<T>(own.g);
          dx[j + 3 * size] = dproduct[j + 3 * size] = FromF32<T>(own.o);
        }
      });
    });
  }

  const LstmGradOperands operands_;
};

class Gru : public Layer {
 public:
  explicit Gru(const KernelSpec& spec) : Layer(spec) {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t,
              const Carried& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const x = At(arguments.input<T>(0), call_, sample, t, 3 * size);
      const T* const product = static_cast<const T*>(row.gates);
      T* const states = At(arguments.output<T>(0), call_, sample, t, size);
      T* const gates = At(arguments.output<T>(1), call_, sample, t, 4 * size);
      T* const carried = static_cast<T*>(row.state);
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          const GruGates own = GruGates::Of(ToF32(x[j]), ToF32(x[j + size]), ToF32(x[j + 2 * size]),
                                            ToF32(product[j]), ToF32(product[j + size]),
                                            ToF32(product[j + 2 * size]));
          const T h = FromF32<T>(own.State(ToF32(carried[j])));
          states[j] = h;
          carried[j] = h;
          gates[j] = FromF32<T>(own.r);
          gates[j + size] = FromF32<T>(own.z);
          gates[j + 2 * size] = FromF32<T>(own.n);
          gates[j + 3 * size] = FromF32<T>(own.p_n);
        }
      });
    });
  }
};

class GruGrad : public Gradient {
 public:
  explicit GruGrad(const KernelSpec& spec)
      : Gradient(spec, /*has_direct=*/true), has_state_(spec.call.inputs.size() > 4) {}

 private:
  int state_output() const override { return 2; }

  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
              const Carried& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const dh = At(arguments.input<T>(0), call_, sample, t, size);
      const T* const gates = At(arguments.input<T>(2), call_, sample, t, 4 * size);
      const T* state_before = nullptr;
      if (before >= 0) state_before = At(arguments.input<T>(3), call_, sample, before, size);
      if (before < 0 && has_state_) state_before = arguments.input<T>(4) + sample * size;
      T* const dx = At(arguments.output<T>(0), call_, sample, t, 3 * size);
      T* const dp = At(arguments.output<T>(1), call_, sample, t, 3 * size);
      T* const dproduct = static_cast<T*>(row.gates);
      const T* const dstate = static_cast<const T*>(row.state);
      T* const direct = static_cast<T*>(row.direct);
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          const GruGates of_j = {ToF32(gates[j]), ToF32(gates[j + size]),
                                 ToF32(gates[j + 2 * size]), ToF32(gates[j + 3 * size])};
          const GruGradient own =
              GruGradient::Of(of_j, state_before == nullptr ? 0.0f : ToF32(state_before[j]),
                              ToF32(dh[j]) + ToF32(dstate[j]));
          direct[j] = FromF32<T>(own.before);
          dx[j] = dp[j] = dproduct[j] = FromF32<T>(own.r);
          dx[j + size] = dp[j + size] = dproduct[j + size] = FromF32<T>(own.z);
          dx[j + 2 * size] = FromF32<T>(own.n);
          dp[j + 2 * size] = dproduct[j + 2 * size] = FromF32<T>(own.p_n);
        }
      });
    });
  }

  const bool has_state_;
};

class Rnn : public Layer {
 public:
  explicit Rnn(const KernelSpec& spec) : Layer(spec), unit_{spec.call.attributes.Bool("relu")} {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t,
              const Carried& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const x = At(arguments.input<T>(0), call_, sample, t, size);
      const T* const product = static_cast<const T*>(row.gates);
      T* const states = At(arguments.output<T>(0), call_, sample, t, size);
      T* const carried = static_cast<T*>(row.state);
      const RnnUnit unit = unit_;
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          states[j] = carried[j] = FromF32<T>(unit.State(ToF32(x[j]) + ToF32(product[j])));
        }
      });
    });
  }

  const RnnUnit unit_;
};

class RnnGrad : public Gradient {
 public:
  explicit RnnGrad(const KernelSpec& spec)
      : Gradient(spec, /*has_direct=*/false), unit_{spec.call.attributes.Bool("relu")} {}

 private:
  int state_output() const override { return 1; }

  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t,
              const Carried& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const dh = At(arguments.input<T>(0), call_, sample, t, size);
      const T* const states = At(arguments.input<T>(2), call_, sample, t, size);
      T* const dx = At(arguments.output<T>(0), call_, sample, t, size);
      T* const dproduct = static_cast<T*>(row.gates);
      const T* const dstate = static_cast<const T*>(row.state);
      const RnnUnit unit = unit_;
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          const float own = unit.Gradient(ToF32(states[j]), ToF32(dh[j]) + ToF32(dstate[j]));
          dx[j] = dproduct[j] = FromF32<T>(own);
        }
      });
    });
  }

  const RnnUnit unit_;
};

}  // namespace

void RegisterRecurrenceKernels(KernelRegistry& registry) {
  registry.Register("lstm", MakeKernel<Lstm>);
  registry.Register("lstm_grad", MakeKernel<LstmGrad>);
  registry.Register("gru", MakeKernel<Gru>);
  registry.Register("gru_grad", MakeKernel<GruGrad>);
  registry.Register("rnn", MakeKernel<Rnn>);
  registry.Register("rnn_grad", MakeKernel<RnnGrad>);
}

}  // namespace zg
