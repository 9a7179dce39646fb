#include "framework/nn/over_tokens.h"

#include <vector>

#include "framework/nn/decoding.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/reductions.h"
#include "framework/nn/trace.h"

namespace zg {

Var recurrence_over_tokens(Var decay, Var x) {
  return nn::Checked("recurrence_over_tokens", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("recurrence_over_tokens")
                           .CheckUsable(decay)
                           .WithContext("recurrence_over_tokens: decay"));
    if (x.shape().num_dims() < 2 || decay.shape() != x.shape()) {
      return InvalidArgument("{}: got a decay {}, expected both (B, S, ...)",
                             nn::Caller("recurrence_over_tokens", x), decay.shape().ToString());
    }
    nn::Decoding* const decoding = nn::Decoding::Current();
    if (decoding == nullptr) return linear_recurrence(decay, x, 1);
    // What the last run has left is added to the first element, and -0, which changes no bit, to the
    // others; in f32 also in mixed precision, because a sum with an f32 operand is f32.
    const int64_t size = x.dim(1);
    Dims shape = x.shape().dims();
    shape.erase(shape.begin(), shape.begin() + 2);
    const Var left = decoding->State(x, shape, "recurrence");
    const Var carried = slice(decay, 1, 0, 1) * unsqueeze(left, 1);
    const Var h = linear_recurrence(decay, x + pad(carried, 1, 0, size - 1, -0.0), 1);
    decoding->Keep(select(h, 1, size - 1), "recurrence");
    return h;
  });
}

Var selective_scan(Var x, Var step, Var a, Var b, Var c) {
  return nn::Checked("selective_scan", x, [&]() -> StatusOr<Var> {
    std::vector<Var> operands = {x, step, a, b, c};
    nn::Decoding* const decoding = nn::Decoding::Current();
    if (decoding != nullptr && a.shape().num_dims() == 2) {
      operands.push_back(decoding->State(x, a.shape().dims(), "scan"));
    }
    const std::vector<Var> results = nn::append_all("selective_scan", operands);
    if (results.empty()) return Var();
    if (decoding != nullptr) decoding->Keep(results[1], "scan");
    return results[0];
  });
}

Var with_earlier_tokens(Var x, int64_t count) {
  return nn::Checked("with_earlier_tokens", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() != 3 || count < 1) {
      return InvalidArgument("{}: got {} earlier tokens, expected at least 1, of x (B, S, C)",
                             nn::Caller("with_earlier_tokens", x), count);
    }
    nn::Decoding* const decoding = nn::Decoding::Current();
    if (decoding == nullptr) return pad(x, 1, count, 0);
    const Var all = concat({decoding->State(x, {count, x.dim(2)}, "earlier"), x}, 1);
    decoding->Keep(slice(all, 1, x.dim(1), x.dim(1) + count), "earlier");
    return all;
  });
}

}  // namespace zg
