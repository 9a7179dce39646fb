#include "framework/nn/buffer.h"

#include "framework/nn/trace.h"

namespace zg::nn {

void Buffer::update(Var next) const {
  const std::string who = fmt::format("buffer '{}'", path());
  Trace& trace = Trace::Of(who);
  if (!trace.status().ok()) return;
  if (!trace.training()) {
    trace.Fail(
        InvalidArgument("{}: updated in an eval function, expected in the training function", who));
    return;
  }
  const Var self = *this;
  if (const Status usable = trace.CheckUsable(next); !usable.ok()) {
    trace.Fail(usable.WithContext(who + ": the next value"));
    return;
  }
  if (next.shape() != shape() || !IsFloat(next.dtype())) {
    trace.Fail(InvalidArgument("{}: got a next value {}, expected {}", who,
                               next.value()->type.ToString(), self.value()->type.ToString()));
    return;
  }
  trace.Append("next_value", {self, next});
}

bool is_training() { return Trace::Of("is_training").training(); }

}  // namespace zg::nn
