// One element of a sample in each of the recurrent layers, and in their gradients.
#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/recurrent_layer.h"
#include "framework/kernels/math/recurrence_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Calls run(before), where before(j) is channel j of a state, of zeros if it is null.
template <typename T, typename Run>
ZG_INLINE void WithStateBefore(const T* state, const Run& run) {
  if (state == nullptr) return run([](int64_t) __attribute__((always_inline)) { return 0.0f; });
  run([=](int64_t j) __attribute__((always_inline)) { return ToF32(state[j]); });
}

class Lstm : public RecurrentLayer {
 public:
  explicit Lstm(const KernelSpec& spec) : RecurrentLayer(spec) {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t,
              const CarriedRows& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const x = arguments.input<T>(0) + At(sample, t, 4);
      const T* const products = reinterpret_cast<const T*>(row.products);
      T* const states = arguments.output<T>(0) + At(sample, t);
      T* const cells = arguments.output<T>(1) + At(sample, t);
      T* const gates = arguments.output<T>(2) + At(sample, t, 4);
      float* const cell = row.cells;
      Multiversion([=]() ZG_VERSION {
        const auto sum = [=](int64_t j) __attribute__((always_inline)) {
          return ToF32(x[j]) + ToF32(products[j]);
        };
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          const LstmGates own =
              LstmGates::Of(sum(j), sum(j + size), sum(j + 2 * size), sum(j + 3 * size));
          const float c = own.Cell(cell[j]);
          cell[j] = c;
          cells[j] = FromF32<T>(c);
          states[j] = FromF32<T>(own.State(c));
          gates[j] = FromF32<T>(own.i);
          gates[j + size] = FromF32<T>(own.f);
          gates[j + 2 * size] = FromF32<T>(own.g);
          gates[j + 3 * size] = FromF32<T>(own.o);
        }
      });
    });
  }
};

class LstmGrad : public RecurrentGradient {
 public:
  explicit LstmGrad(const KernelSpec& spec)
      : RecurrentGradient(spec, /*products_output=*/0), operands_(spec.call) {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
              const CarriedRows& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const dh = arguments.input<T>(0) + At(sample, t);
      const T* const gates = arguments.input<T>(2) + At(sample, t, 4);
      const T* const cells = arguments.input<T>(3) + At(sample, t);
      const T* const dc =
          operands_.dc < 0 ? nullptr : arguments.input<T>(operands_.dc) + At(sample, t);
      const T* const first = operands_.c < 0 ? nullptr : arguments.input<T>(operands_.c);
      const T* const cells_before = StateAt(arguments.input<T>(3), first, sample, before);
      T* const dx = arguments.output<T>(0) + At(sample, t, 4);
      const T* const dstate = reinterpret_cast<const T*>(row.state);
      float* const dcell = row.cells;
      Multiversion([=]() ZG_VERSION {
        if (dc != nullptr) {
          ZG_INDEPENDENT
          for (int64_t j = 0; j < size; ++j) dcell[j] += ToF32(dc[j]);
        }
        const auto run = [=](const auto& cell_before) __attribute__((always_inline)) {
          ZG_INDEPENDENT
          for (int64_t j = 0; j < size; ++j) {
            const LstmGates of_j = {ToF32(gates[j]), ToF32(gates[j + size]),
                                    ToF32(gates[j + 2 * size]), ToF32(gates[j + 3 * size])};
            const LstmGradient own = LstmGradient::Of(of_j, cell_before(j), ToF32(cells[j]),
                                                      ToF32(dh[j]) + ToF32(dstate[j]), dcell[j]);
            dcell[j] = own.cell_before;
            dx[j] = FromF32<T>(own.i);
            dx[j + size] = FromF32<T>(own.f);
            dx[j + 2 * size] = FromF32<T>(own.g);
            dx[j + 3 * size] = FromF32<T>(own.o);
          }
        };
        WithStateBefore(cells_before, run);
      });
    });
  }

  const LstmGradOperands operands_;
};

class Gru : public RecurrentLayer {
 public:
  explicit Gru(const KernelSpec& spec) : RecurrentLayer(spec) {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
              const CarriedRows& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const x = arguments.input<T>(0) + At(sample, t, 3);
      const T* const products = reinterpret_cast<const T*>(row.products);
      const T* const state_before =
          StateAt<T>(arguments.output<T>(0), First<T>(arguments, 3), sample, before);
      T* const states = arguments.output<T>(0) + At(sample, t);
      T* const gates = arguments.output<T>(1) + At(sample, t, 4);
      Multiversion([=]() ZG_VERSION {
        const auto run = [=](const auto& before) __attribute__((always_inline)) {
          ZG_INDEPENDENT
          for (int64_t j = 0; j < size; ++j) {
            const GruGates own = GruGates::Of(
                ToF32(x[j]), ToF32(x[j + size]), ToF32(x[j + 2 * size]), ToF32(products[j]),
                ToF32(products[j + size]), ToF32(products[j + 2 * size]));
            states[j] = FromF32<T>(own.State(before(j)));
            gates[j] = FromF32<T>(own.r);
            gates[j + size] = FromF32<T>(own.z);
            gates[j + 2 * size] = FromF32<T>(own.n);
            gates[j + 3 * size] = FromF32<T>(own.p_n);
          }
        };
        WithStateBefore(state_before, run);
      });
    });
  }
};

class GruGrad : public RecurrentGradient {
 public:
  explicit GruGrad(const KernelSpec& spec)
      : RecurrentGradient(spec, /*products_output=*/1), has_first_(spec.call.inputs.size() > 4) {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t before,
              const CarriedRows& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const dh = arguments.input<T>(0) + At(sample, t);
      const T* const gates = arguments.input<T>(2) + At(sample, t, 4);
      const T* const first = has_first_ ? arguments.input<T>(4) : nullptr;
      const T* const state_before = StateAt(arguments.input<T>(3), first, sample, before);
      T* const dx = arguments.output<T>(0) + At(sample, t, 3);
      T* const dproducts = arguments.output<T>(1) + At(sample, t, 3);
      const T* const dstate = reinterpret_cast<const T*>(row.state);
      T* const direct = reinterpret_cast<T*>(row.direct);
      Multiversion([=]() ZG_VERSION {
        const auto run = [=](const auto& before) __attribute__((always_inline)) {
          ZG_INDEPENDENT
          for (int64_t j = 0; j < size; ++j) {
            const GruGates of_j = {ToF32(gates[j]), ToF32(gates[j + size]),
                                   ToF32(gates[j + 2 * size]), ToF32(gates[j + 3 * size])};
            const GruGradient own =
                GruGradient::Of(of_j, before(j), ToF32(dh[j]) + ToF32(dstate[j]));
            direct[j] = FromF32<T>(own.before);
            dx[j] = FromF32<T>(own.r);
            dx[j + size] = FromF32<T>(own.z);
            dx[j + 2 * size] = FromF32<T>(own.n);
            dproducts[j + 2 * size] = FromF32<T>(own.p_n);
          }
        };
        WithStateBefore(state_before, run);
      });
      std::copy_n(dx, 2 * size, dproducts);
    });
  }

  const bool has_first_;
};

class Rnn : public RecurrentLayer {
 public:
  explicit Rnn(const KernelSpec& spec)
      : RecurrentLayer(spec), unit_{spec.call.attributes.Bool("uses_relu")} {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t,
              const CarriedRows& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const x = arguments.input<T>(0) + At(sample, t);
      const T* const products = reinterpret_cast<const T*>(row.products);
      T* const states = arguments.output<T>(0) + At(sample, t);
      const RnnUnit unit = unit_;
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          states[j] = FromF32<T>(unit.State(ToF32(x[j]) + ToF32(products[j])));
        }
      });
    });
  }

  const RnnUnit unit_;
};

class RnnGrad : public RecurrentGradient {
 public:
  explicit RnnGrad(const KernelSpec& spec)
      : RecurrentGradient(spec, /*products_output=*/0),
        unit_{spec.call.attributes.Bool("uses_relu")} {}

 private:
  void RunRow(const KernelArguments& arguments, int64_t sample, int64_t t, int64_t,
              const CarriedRows& row) const override {
    WithFloatType(call_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = call_.hidden;
      const T* const dh = arguments.input<T>(0) + At(sample, t);
      const T* const states = arguments.input<T>(2) + At(sample, t);
      T* const dx = arguments.output<T>(0) + At(sample, t);
      const T* const dstate = reinterpret_cast<const T*>(row.state);
      const RnnUnit unit = unit_;
      Multiversion([=]() ZG_VERSION {
        ZG_INDEPENDENT
        for (int64_t j = 0; j < size; ++j) {
          dx[j] = FromF32<T>(unit.Gradient(ToF32(states[j]), ToF32(dh[j]) + ToF32(dstate[j])));
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
