// Rotary position embedding (Su et al., arXiv 2104.09864). Shapes: x, y (B, T, H D), the heads of D
// channels side by side. Its gradient is the rotation by the negative angles.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/rotary_frequencies.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

Status CheckAttributes(const ir::OpCall& call, const InputNames& names) {
  const ir::Attributes& attributes = call.attributes;
  const int64_t head_size = attributes.Int("head_size");
  const Shape& x = call.inputs[0].shape;
  if (x.num_dims() != 3) return Rejected(call, names, "x is not (B, T, H D)");
  if (head_size < 2 || head_size % 2 != 0 || x.dim(2) % head_size != 0) {
    return Rejected(
        call, names,
        fmt::format("the last dim of x does not divide into heads of {} channels, an even number",
                    head_size));
  }
  const double low = attributes.Float("low_frequency");
  const double high = attributes.Float("high_frequency");
  if (!(attributes.Float("theta") > 0.0) || !(attributes.Float("factor") > 0.0) || !(low > 0.0) ||
      !(high > low) || attributes.Int("original_context") < 1) {
    return InvalidArgument(
        "{}: got theta={}, factor={}, low_frequency={}, high_frequency={}, original_context={}, "
        "expected positive numbers with low_frequency < high_frequency",
        call.op->name, attributes.Float("theta"), attributes.Float("factor"), low, high,
        attributes.Int("original_context"));
  }
  const int64_t rotated = attributes.Int("rotated");
  if (rotated < 0 || rotated % 2 != 0 || rotated > head_size) {
    return InvalidArgument(
        "{}: got {} rotated channels, expected an even number up to {}, the head's", call.op->name,
        rotated, head_size);
  }
  if (!(attributes.Float("scale") > 0.0)) {
    return InvalidArgument("{}: got scale={}, expected a positive number", call.op->name,
                           attributes.Float("scale"));
  }
  if (const std::string& text = attributes.String("frequencies"); !text.empty()) {
    const int64_t pairs = (rotated == 0 ? head_size : rotated) / 2;
    const std::optional<std::vector<double>> frequencies = ParseFrequencies(text);
    if (!frequencies || static_cast<int64_t>(frequencies->size()) != pairs) {
      return InvalidArgument("{}: got the frequencies '{}', expected {} finite numbers",
                             call.op->name, text, pairs);
    }
  }
  if (call.inputs.size() == 1) return Status::Ok();
  const TensorType& positions = call.inputs[1];
  const bool fits = positions.shape == Shape{1} || positions.shape == Shape{x.dim(0)} ||
                    positions.shape == Shape{x.dim(0), x.dim(1)};
  if (positions.dtype == DType::kI64 && fits) return Status::Ok();
  return Rejected(call, names,
                  "positions are neither i64 (1) or (B), those of the first elements, nor (B, T)");
}

ir::OpDef Rotary() {
  const InputNames names = {"x", "positions"};
  ir::OpDef op;
  op.name = "rotary";
  op.doc =
      "Turns each pair of channels of a head, i and i + D/2, or `interleaved` 2i and 2i + 1, by the "
      "angle position theta^(-2i/D), or minus it if `inverse`: (a cos - b sin, b cos + a sin). The "
      "position is t, or positions[0] + t, positions[b] + t, positions[b, t]. A `factor` other than "
      "1 divides frequencies as Llama 3 does: those with a wavelength above original_context / "
      "low_frequency by all of it, those below original_context / high_frequency not at all. "
      "`frequencies`, joined by commas, are those of the pairs instead. Of each head the first `rotated` "
      "channels take part, as if D were that; 0: all. `scale` multiplies cosines and sines.";
  op.max_inputs = 2;
  op.attributes = {{"head_size", int64_t{2}, true},
                   {"theta", 10000.0},
                   {"interleaved", false},
                   {"inverse", false},
                   {"factor", 1.0},
                   {"low_frequency", 1.0},
                   {"high_frequency", 4.0},
                   {"original_context", int64_t{8192}},
                   {"frequencies", std::string()},
                   {"rotated", int64_t{0}},
                   {"scale", 1.0}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"x"}));
    ZG_RETURN_IF_ERROR(CheckAttributes(call, names));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    ir::SbpSignature split = {{Sbp::S(0)}, {Sbp::S(0)}};
    ir::SbpSignature partial = {{P}, {P}};
    const int64_t heads = call.inputs[0].shape.dim(2) / call.attributes.Int("head_size");
    ir::SbpSignature by_heads = {{Sbp::S(2)}, {Sbp::S(2)}, heads};
    if (call.inputs.size() == 2) {
      split.inputs.push_back(call.inputs[1].shape == Shape{1} ? B : Sbp::S(0));
      partial.inputs.push_back(B);
      by_heads.inputs.push_back(B);
    }
    return std::vector<ir::SbpSignature>{split, partial, by_heads};
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    std::vector<ir::Value*> inputs = context.node().inputs;
    inputs[0] = context.output_gradient();
    ir::Attributes attributes = context.node().attributes;
    attributes.Set("inverse", !attributes.Bool("inverse"));
    context.set_input_gradient(0, context.builder().Op("rotary", inputs, attributes));
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.flops = [](const ir::OpCall& call) { return 3 * call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterRotaryOps(ir::OpRegistry& registry) { registry.Register(Rotary()); }

}  // namespace zg
