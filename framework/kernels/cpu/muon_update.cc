#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "framework/base/exact_sum.h"
#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/gemm_shared.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/square_terms.h"
#include "framework/kernels/muon_call.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <typename Gradient>
void SetDirections(const Gradient* g, float factor, const float* m, const MuonOptions& options,
                   int64_t count, float* m_out, float* x) {
  const float one_minus_momentum = options.one_minus_momentum;
  const bool nesterov = options.nesterov;
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      const MuonMomentum next =
          MuonMomentumStep(factor * ToF32(g[i]), m[i], one_minus_momentum, nesterov);
      m_out[i] = next.m;
      x[i] = next.direction;
    }
  });
}

void Divide(float* x, float divisor, int64_t count) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) x[i] = x[i] / divisor;
  });
}

// x = of_x x + of_y y.
void Combine(float* x, const float* y, float of_x, float of_y, int64_t count) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) x[i] = of_x * x[i] + of_y * y[i];
  });
}

// Returns the number of elements that are not finite.
int64_t SetNext(const float* p, const float* x, const MuonFactors& factors, int64_t count,
                float* out) {
  return Multiversion([=]() ZG_VERSION {
    const MuonFactors f = factors;
    int64_t others = 0;
    ZG_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
      const float next = MuonNext(p[i], x[i], f);
      others += !(next - next == 0.0f);
      out[i] = next;
    }
    return others;
  });
}

// The products of a Newton-Schulz step for matrices of one shape, which are not transposed: the
// Gram matrix of a tall one is X^T X, and multiplies it from the right.
struct StepProducts {
  StepProducts(int64_t rows, int64_t columns, int threads)
      : is_tall(rows > columns),
        side(std::min(rows, columns)),
        columns(columns),
        gram({side, side, std::max(rows, columns), is_tall, !is_tall}, threads),
        square({side, side, side}, threads),
        with_x({rows, columns, side}, threads) {}

  int64_t workspace_bytes() const {
    return std::max({gram.workspace_bytes(), square.workspace_bytes(), with_x.workspace_bytes()});
  }

  bool is_tall;
  int64_t side;
  int64_t columns;
  SharedGemm gram;
  SharedGemm square;
  SharedGemm with_x;
};

class MuonUpdate : public Kernel {
 public:
  MuonUpdate(MuonCall call, int threads) : call_(std::move(call)) {
    for (const MuonMatrix& matrix : call_.matrices) {
      const StepProducts& products =
          products_.try_emplace({matrix.rows, matrix.columns}, matrix.rows, matrix.columns, threads)
              .first->second;
      size_ = std::max(size_, AlignedFloats(matrix.size()));
      square_size_ = std::max(square_size_, AlignedFloats(matrix.side() * matrix.side()));
      gemm_bytes_ = std::max(gemm_bytes_, products.workspace_bytes());
    }
  }

  int64_t workspace_bytes() const override {
    return 2 * (size_ + square_size_) * static_cast<int64_t>(sizeof(float)) + gemm_bytes_;
  }

  Status Run(const KernelArguments& arguments) override {
    for (int i : {0, 1}) {  // everything outside of matrices is padding, and stays unchanged
      const auto* const old_values = arguments.input<float>(i == 0 ? 0 : 2);
      auto* const out = arguments.output<float>(i);
      if (out != old_values) std::memcpy(out, old_values, call_.num_elements * sizeof(float));
    }
    const float factor = call_.has_control ? arguments.input<float>(3)[0] : 1.0f;
    if (factor == 0.0f) return Status::Ok();
    int64_t num_others = 0;
    for (const MuonMatrix& matrix : call_.matrices) {
      if (matrix.part == arguments.part) num_others += Update(arguments, matrix, factor);
    }
    if (num_others == 0 || !arguments.step->stop_on_non_finite) return Status::Ok();
    return FailedPrecondition("an updated parameter is not finite");
  }

 private:
  // Returns the number of parameters that are not finite.
  int64_t Update(const KernelArguments& arguments, const MuonMatrix& matrix, float factor) const {
    float* const p = arguments.output<float>(0) + matrix.begin;
    float* const m = arguments.output<float>(1) + matrix.begin;
    auto* const x = static_cast<float*>(arguments.workspace);
    WithFloatType(call_.gradient_dtype, [&](auto zero) {
      SetDirections(arguments.input<decltype(zero)>(1) + matrix.begin, factor, m, call_.options,
                    matrix.size(), m, x);
    });
    Divide(x, std::max(NormOf(x, matrix.size()), call_.options.epsilon), matrix.size());
    const StepProducts& products = products_.at({matrix.rows, matrix.columns});
    for (int64_t step = 0; step < call_.num_steps; ++step) {
      NewtonSchulz(products, matrix.size(), x, arguments.threads);
    }
    const MuonFactors factors =
        MuonFactorsOf(call_.options, arguments.step->lr_factor,
                      MuonScale(call_.options.match_rms_adamw, matrix.rows, matrix.columns));
    return SetNext(p, x, factors, matrix.size(), p);
  }

  static float NormOf(const float* x, int64_t count) {
    int64_t words[kExactSumWords] = {};
    AddSquareTerms(x, count, words);
    ExactSum sum;
    sum.AddWords(words);
    return static_cast<float>(std::sqrt(sum.Value()));
  }

  // x and the rest of the workspace after it.
  void NewtonSchulz(const StepProducts& products, int64_t size, float* x, Threads* threads) const {
    float* const y = x + size_;
    float* const gram = y + size_;
    float* const square = gram + square_size_;
    void* const scratch = square + square_size_;
    const int64_t side = products.side, columns = products.columns;
    products.gram.Run({x, columns}, {x, columns}, nullptr, gram, side, scratch, threads);
    products.square.Run({gram, side}, {gram, side}, nullptr, square, side, scratch, threads);
    Combine(gram, square, call_.options.b, call_.options.c, side * side);
    if (products.is_tall) {
      products.with_x.Run({x, columns}, {gram, side}, nullptr, y, columns, scratch, threads);
    } else {
      products.with_x.Run({gram, side}, {x, columns}, nullptr, y, columns, scratch, threads);
    }
    Combine(x, y, call_.options.a, 1.0f, size);
  }

  const MuonCall call_;
  std::map<std::pair<int64_t, int64_t>, StepProducts> products_;  // key: rows and columns
  int64_t size_ = 0;  // floats for the largest matrix; likewise for the largest Gram matrix
  int64_t square_size_ = 0;
  int64_t gemm_bytes_ = 0;
};

StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  ZG_ASSIGN_OR_RETURN(MuonCall call, MuonCall::Of(spec));
  return std::unique_ptr<Kernel>(std::make_unique<MuonUpdate>(std::move(call), spec.threads));
}

}  // namespace

void RegisterMuonUpdateKernels(KernelRegistry& registry) { registry.Register("muon_update", Make); }

}  // namespace zg
