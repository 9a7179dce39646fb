#include "tests/testing/random_domain.h"

#include <algorithm>
#include <vector>

namespace zg::testing {

ir::Value* InDomain(const std::string& op, size_t index, ir::Value* x, const NodeMaker& make) {
  const auto is_one_of = [&](std::initializer_list<const char*> ops) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  const bool is_base =
      op == "power" || (op == "power_grad" && index == 1) || (op == "pow" && index == 0);
  if (is_base) x = make("clamp_max", {x}, {{"high", 1.0}});
  if (is_base || (op == "pow" && index == 1)) x = make("clamp_min", {x}, {{"low", -1.0}});
  if (is_base ||
      is_one_of({"sqrt", "rsqrt", "log", "reciprocal", "lgamma", "digamma", "trigamma"}) ||
      (op == "divide" && index == 1)) {
    return make("shift", {make("square", {x}, {})}, {{"offset", 0.5}});
  }
  const bool jumps = op == "sign" || (index == 1 && is_one_of({"atan2", "atan2_slope"})) ||
                     (index == 1 && is_one_of({"relu_grad", "leaky_relu_grad", "elu_grad",
                                               "clamp_min_grad", "clamp_max_grad"}));
  if (jumps) return make("shift", {x}, {{"offset", 8.0}});  // away from there
  if (is_one_of({"floor", "round"})) {                      // to [8.125, 8.375]
    return make("shift", {make("scale", {make("tanh", {x}, {})}, {{"factor", 0.125}})},
                {{"offset", 8.25}});
  }
  if (op == "erfinv") return make("scale", {make("tanh", {x}, {})}, {{"factor", 0.75}});
  if (op == "erfcx") return make("clamp_min", {x}, {{"low", -1.0}});
  const bool is_matrix = is_one_of({"inverse", "slogdet", "cholesky"}) ||
                         (index == 0 && is_one_of({"solve", "solve_triangular"}));
  if (is_matrix) {  // its diagonal outweighs the rest
    const int64_t n = x->type.shape.dim(-1);
    ir::Value* const columns = make("iota", {}, {{"size", n}});
    const std::vector<int64_t> last = {1};
    ir::Value* const rows = make("expand", {columns}, {{"dims", last}, {"sizes", last}});
    return make("masked_fill",
                {make("scale", {make("tanh", {x}, {})}, {{"factor", 0.125}}),
                 make("equal", {columns, rows}, {})},
                {{"value", 2.0}});
  }
  if (op == "log1p") return make("square", {x}, {});
  const bool is_exponent =
      op == "exp" || op == "expm1" || (index == 1 && is_one_of({"pow", "log_softmax_grad"}));
  return is_exponent ? make("clamp_max", {x}, {{"high", 2.0}}) : x;
}

}  // namespace zg::testing
