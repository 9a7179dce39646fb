// Adafactor's update of matrices (arXiv 1804.04235, as in torch.optim.Adafactor): the second moment
// of an element is estimated from one of its row and one of its column, which are the states.
// Parameters are in a bucket (bucket_parts.h), of which a rank may have a part that cuts matrices
// anywhere, or a part of each of them; the states are whole on every rank. The values that an
// update needs from whole tensors are sums of integers, which are summed over the ranks. The pass
// sum-factors inserts them before it:
//   tensor_square_sums (normed_update.cc) of the parameter and its gradient, before all
//   factor_sums, the squares of the gradient by rows and by columns, counted in a unit that the
//     gradient's whole square sum says (kernels/math/factored_math.h)
//   factored_step_sums, the square sums of the step
#include "framework/base/exact_sum.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/bucket_parts.h"
#include "framework/ops/factored_shapes.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/update_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

constexpr int kNumTensors = 4;   // p, g, rows, columns
constexpr int kNumMeasures = 4;  // norms, factor sums, step sums, begins

TensorType I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

Status CheckMatrices(const ir::OpCall& call, const TensorType& g) {
  const std::vector<int64_t>& matrices = call.attributes.Ints("matrices");
  if (matrices.empty() && g.shape.num_dims() < 2) {
    return InvalidArgument("{}: g is {}, expected a matrix, or a bucket and its `matrices`",
                           call.op->name, g.ToString());
  }
  ZG_RETURN_IF_ERROR(CheckMatricesAttribute(call));
  const size_t num_blocks = call.attributes.Ints("blocks").size();
  const bool has_parts = !matrices.empty() && g.shape.num_dims() == 2;
  if (num_blocks != (has_parts ? matrices.size() / 4 : 0)) {
    return InvalidArgument(
        "{}: got {} numbers in `blocks` for {} matrices in a bucket {}, expected "
        "one for each in a bucket of several parts",
        call.op->name, num_blocks, matrices.size() / 4, g.ToString());
  }
  int64_t end = 0;
  for (const FactoredTensor& tensor : FactoredTensorsOf(call).tensors) {
    if (tensor.begin < end || tensor.begin % kSquareSumTermElements != 0) {
      return InvalidArgument(
          "{}: got a tensor of {} elements at {}, expected it behind the one before, at a multiple "
          "of {}",
          call.op->name, tensor.size(), tensor.begin, kSquareSumTermElements);
    }
    const bool cuts = tensor.parts > 1 && tensor.size() > 0;
    if (cuts && (tensor.block < 1 || tensor.size() % tensor.parts != 0 ||
                 tensor.part_size() % tensor.block != 0)) {
      return InvalidArgument(
          "{}: got blocks of {} elements for a tensor of {} in {} parts, expected "
          "as many for each part",
          call.op->name, tensor.block, tensor.size(), tensor.parts);
    }
    end = tensor.begin + tensor.part_size();
  }
  return Status::Ok();
}

Status CheckInput(const ir::OpCall& call, int index, std::string_view name,
                  const TensorType& expected) {
  const TensorType& got = call.inputs[index];
  if (got == expected) return Status::Ok();
  return InvalidArgument("{}: {} is {}, expected {}", call.op->name, name, got.ToString(),
                         expected.ToString());
}

// The sums at the end of the inputs begin at `first`; the last of them is the begin of the parts.
Status CheckMeasures(const ir::OpCall& call, int first, const FactoredTensors& matrices) {
  const auto tensors = static_cast<int64_t>(matrices.tensors.size());
  const int last = static_cast<int>(call.inputs.size()) - 1;
  const TensorType types[] = {I64({tensors, 2, kExactSumWords}),
                              I64({2, matrices.num_rows + matrices.num_columns}),
                              I64({tensors, 1, kExactSumWords})};
  constexpr std::string_view kNames[] = {"norms", "factor_sums", "step_sums"};
  for (int i = first; i < last; ++i) {
    ZG_RETURN_IF_ERROR(CheckInput(call, i, kNames[i - first], types[i - first]));
  }
  const TensorType& begins = call.inputs[last];
  const int dims = call.inputs[0].shape.num_dims();
  if (begins.dtype == DType::kI64 && begins.shape.num_dims() == dims) return Status::Ok();
  return InvalidArgument("{}: begins is {}, expected i64 of the parts of a bucket {}",
                         call.op->name, begins.ToString(), call.inputs[0].ToString());
}

// The states' types: flat in a bucket, else [.., R, 1] and [.., 1, C].
Types StateTypes(const ir::OpCall& call, const TensorType& g) {
  if (!call.attributes.Ints("matrices").empty()) {
    const FactoredTensors matrices = FactoredTensorsOf(call);
    return {{DType::kF32, {matrices.num_rows}}, {DType::kF32, {matrices.num_columns}}};
  }
  Shape rows = g.shape, columns = g.shape;
  rows.set_dim(-1, 1);
  columns.set_dim(-2, 1);
  return {{DType::kF32, rows}, {DType::kF32, columns}};
}

// Whether the input at `index`, after the previous ones, is the control.
bool HasControl(const ir::OpCall& call, int index) {
  return index < static_cast<int>(call.inputs.size()) && IsFloat(call.inputs[index].dtype);
}

Status CheckControl(const ir::OpCall& call, int index) {
  if (!HasControl(call, index)) return Status::Ok();
  return CheckInput(call, index, "control", {DType::kF32, {2}});
}

void AddHyperparameters(ir::OpDef* op) {
  op->attributes.push_back({"beta2_decay", -0.8});
  op->attributes.push_back({"epsilon1", 0.0});
  op->attributes.push_back({"epsilon2", 0.0});
  op->attributes.push_back({"clip_threshold", 1.0});
  op->attributes.push_back({"matrices", std::vector<int64_t>{}});
  op->attributes.push_back({"blocks", std::vector<int64_t>{}});
  op->attributes.push_back({kWholeBucket, Shape{}});
  op->localize = SetWholeBucket;
}

// Split along the bucket are the first `num_split` inputs, the begins, and output 0, unless it is a
// sum. Everything else is whole.
std::vector<ir::SbpSignature> Placements(const ir::OpCall& call, int num_split, bool sums) {
  std::vector<ir::SbpSignature> signatures;
  if (call.attributes.Ints("matrices").empty()) return signatures;
  for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
    const Sbp split = Sbp::S(dim);
    ir::SbpSignature& signature = signatures.emplace_back();
    signature.inputs.assign(call.inputs.size(), Sbp::B());
    for (int i = 0; i < num_split; ++i) signature.inputs[i] = split;
    if (call.inputs.back().dtype == DType::kI64) signature.inputs.back() = split;
    signature.outputs.assign(call.op->num_outputs, Sbp::B());
    signature.outputs[0] = sums ? Sbp::P() : split;
  }
  return signatures;
}

ir::OpDef Measure(std::string name, std::string doc) {
  ir::OpDef op = UpdateOp(std::move(name), std::move(doc), /*counts=*/true);
  op.traits.kind = ir::OpKind::kCompute;
  op.aliases = nullptr;
  op.max_inputs = -1;
  AddHyperparameters(&op);
  return op;
}

ir::OpDef FactorSums() {
  ir::OpDef op = Measure(
      op_names::kFactorSums,
      "The sums of the squares of the gradient g by rows and, behind them, by columns of the "
      "`matrices` in a bucket, in two digits that are counted in a unit of the tensor's norm. "
      "Inputs: g, perhaps the control, norms, and where equal parts of the bucket begin, of which "
      "the first is this part's.");
  op.min_inputs = 3;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckMatrices(call, call.inputs[0]));
    ZG_RETURN_IF_ERROR(CheckControl(call, 1));
    const FactoredTensors matrices = FactoredTensorsOf(call);
    ZG_RETURN_IF_ERROR(CheckMeasures(call, HasControl(call, 1) ? 2 : 1, matrices));
    return Types{I64({2, matrices.num_rows + matrices.num_columns})};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return Placements(call, 1, /*sums=*/true); };
  op.flops = [](const ir::OpCall& call) { return 8 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef FactoredStepSums() {
  ir::OpDef op = Measure(
      op_names::kFactoredStepSums,
      "Of each tensor of `matrices` the square sum of the step g / sqrt(max(estimate, epsilon1^2)) "
      "of factored_update, exact in the form of ExactSum. Inputs: g, the old rows and columns, "
      "perhaps the control, norms, factor_sums, and where parts of the bucket begin.");
  op.min_inputs = 6;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckMatrices(call, call.inputs[0]));
    const Types states = StateTypes(call, call.inputs[0]);
    ZG_RETURN_IF_ERROR(CheckInput(call, 1, "rows", states[0]));
    ZG_RETURN_IF_ERROR(CheckInput(call, 2, "columns", states[1]));
    ZG_RETURN_IF_ERROR(CheckControl(call, 3));
    const FactoredTensors matrices = FactoredTensorsOf(call);
    ZG_RETURN_IF_ERROR(CheckMeasures(call, HasControl(call, 3) ? 4 : 3, matrices));
    const auto tensors = static_cast<int64_t>(matrices.tensors.size());
    return Types{I64({tensors, 1, kExactSumWords})};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return Placements(call, 1, /*sums=*/true); };
  op.flops = [](const ir::OpCall& call) { return 6 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef FactoredUpdate() {
  ir::OpDef op = UpdateOp(
      op_names::kFactoredUpdate,
      "Adafactor: with s = number^beta2_decay, rows and columns become r + s (mean of g^2 - r), "
      "the estimate is row column / max(mean of rows, epsilon1), u = g / sqrt(max(estimate, "
      "epsilon1^2)), and p = p - lr weight_decay p - max(epsilon2, rms(p)) min(lr, 1 / sqrt(number)) "
      "/ max(1, rms(u) / clip_threshold) u. In a bucket of `matrices` the last inputs are their "
      "norms, factor_sums, step_sums and where parts of it begin; otherwise p is whole.",
      /*counts=*/true);
  op.min_inputs = kNumTensors;
  op.max_inputs = kNumTensors + 1 + kNumMeasures;
  op.num_outputs = 3;
  AddHyperparameters(&op);
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& p = call.inputs[0];
    TensorType g = call.inputs[1];
    if (IsFloat(g.dtype)) g.dtype = DType::kF32;
    if (p.dtype != DType::kF32 || p != g) {
      return InvalidArgument("{}: got p {} and g {}, expected p in f32 and g of its shape",
                             call.op->name, p.ToString(), call.inputs[1].ToString());
    }
    ZG_RETURN_IF_ERROR(CheckMatrices(call, p));
    const Types states = StateTypes(call, p);
    ZG_RETURN_IF_ERROR(CheckInput(call, 2, "rows", states[0]));
    ZG_RETURN_IF_ERROR(CheckInput(call, 3, "columns", states[1]));
    ZG_RETURN_IF_ERROR(CheckControl(call, kNumTensors));
    const int first = kNumTensors + (HasControl(call, kNumTensors) ? 1 : 0);
    const int num_measures = static_cast<int>(call.inputs.size()) - first;
    if (num_measures != 0) {
      if (num_measures != kNumMeasures) {
        return InvalidArgument(
            "{}: got {} measures, expected norms, factor_sums, step_sums, begins", call.op->name,
            num_measures);
      }
      ZG_RETURN_IF_ERROR(CheckMeasures(call, first, FactoredTensorsOf(call)));
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "lr"));
    ZG_RETURN_IF_ERROR(CheckRange(call, "weight_decay"));
    return Types{p, states[0], states[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) { return Placements(call, 2, /*sums=*/false); };
  op.flops = [](const ir::OpCall& call) { return 9 * call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterFactoredUpdateOps(ir::OpRegistry& registry) {
  registry.Register(FactorSums());
  registry.Register(FactoredStepSums());
  registry.Register(FactoredUpdate());
}

}  // namespace zg
