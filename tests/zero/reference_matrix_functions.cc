// Functions of matrices, and special functions.
#include <limits>
#include <map>
#include <string>

#include "framework/nn/nn.h"
#include "tests/zero/reference_functions.h"

namespace zg {
namespace {

Var Regular(Var a) { return slice(a, 2, 0, 3) * 0.3 + 2.0 * roll(eye(3), 1, 1); }
Var Definite(Var a) { return matmul(a, transpose(a, 1, 2)) + eye(3); }
Var Positive(Var x) { return x * x + 0.5; }

// Infinite above 0.5, NaN below -0.5.
Var WithHoles(Var a) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return where(a > 0.5, kInfinity, where(a < -0.5, std::numeric_limits<double>::quiet_NaN(), a));
}

}  // namespace

const std::map<std::string, Function>& MatrixFunctions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"solve", [](Var a, Var b) { return solve(Regular(a), b); }},
      {"solve_of_one_for_all", [](Var a, Var b) { return solve(Regular(a), b); }},
      {"solve_of_a_vector", [](Var a, Var b) { return solve(Regular(a), b); }},
      {"inverse", [](Var a, Var b) { return inverse(Regular(a)) * b; }},
      {"det", [](Var a, Var b) { return det(Regular(a)) * b; }},
      {"slogdet", [](Var a, Var b) { return slogdet(Regular(-a)).logabsdet * b; }},
      {"logdet", [](Var a, Var b) { return logdet(Definite(a)) * b; }},
      {"cholesky", [](Var a, Var b) { return cholesky(Definite(a)) * b; }},
      {"cholesky_solve", [](Var a, Var b) { return cholesky_solve(b, cholesky(Definite(a))); }},
      {"solve_triangular", [](Var a, Var b) { return solve_triangular(Definite(a), b, false); }},
      {"solve_triangular_upper",
       [](Var a, Var b) { return solve_triangular(Definite(a), b, true, /*unit=*/true); }},
      {"matrix_power", [](Var a, Var b) { return matrix_power(Regular(a) * 0.5, 5) * b; }},
      {"matrix_power_below_0", [](Var a, Var b) { return matrix_power(Regular(a), -2) * b; }},
      {"trace", [](Var a, Var b) { return trace(Regular(a)) * b; }},
      {"cross", [](Var a, Var b) { return cross(a, b, 1); }},
      {"kron", [](Var a, Var b) { return kron(select(a, 0, 0), b); }},
      {"erfc", [](Var a, Var b) { return erfc(a) * b; }},
      {"erfcx", [](Var a, Var b) { return erfcx(a) * b; }},
      {"erfinv", [](Var a, Var b) { return erfinv(tanh(a) * 0.9) * b; }},
      {"ndtr", [](Var a, Var b) { return ndtr(a) * b; }},
      {"log_ndtr", [](Var a, Var b) { return log_ndtr(a * 4.0) * b; }},
      {"lgamma", [](Var a, Var b) { return lgamma(Positive(a)) * b; }},
      {"lgamma_below_0", [](Var a, Var b) { return lgamma(round(a) + tanh(a) * 0.25 - 2.5) * b; }},
      {"digamma", [](Var a, Var b) { return digamma(Positive(a)) * b; }},
      {"logit", [](Var a, Var b) { return logit(sigmoid(a) * 0.9) * b; }},
      {"xlogy", [](Var a, Var b) { return xlogy(relu(a), Positive(b)); }},
      {"sinc", [](Var a, Var b) { return sinc(a) * b; }},
      {"hypot", [](Var a, Var b) { return hypot(a, b); }},
      {"frac", [](Var a, Var b) { return frac(a) * b; }},
      {"remainder", [](Var a, Var b) { return remainder(a, exp(b)); }},
      {"fmod", [](Var a, Var b) { return fmod(a, exp(b)); }},
      {"nan_to_num", [](Var a, Var b) { return nan_to_num(WithHoles(a), 3.0, 7.0, 0.0) * b; }},
  };
  return *functions;
}

}  // namespace zg
