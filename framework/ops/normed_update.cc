// The update by a rule that uses norms of whole tensors, such as LAMB's (nn/optimizers.h).
// Parameters are in a bucket (bucket_parts.h), of which a rank may have a part. tensor_square_sums
// computes the exact square sums of the part's tensors, which are summed over the ranks, also over
// those that have parts of the tensors, and normed_update reads them. The pass tensor-norms inserts
// the former before the latter.
#include <algorithm>

#include "framework/base/exact_sum.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/bucket_parts.h"
#include "framework/ops/op_names.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/update_program.h"
#include "framework/ops/update_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

int NumTensors(const ir::OpCall& call) {  // parameter, gradient and states
  return static_cast<int>(call.attributes.Ints("results").size()) + 1;
}

bool IsI64(const TensorType& type) { return type.dtype == DType::kI64; }

// The type of tensor_square_sums' result. Error: tensors that overlap, or begin inside a term.
StatusOr<TensorType> SumsType(const ir::OpCall& call) {
  const std::vector<int64_t>& tensors = call.attributes.Ints("tensors");
  int64_t end = 0;
  for (size_t i = 0; i + 1 < tensors.size(); i += 2) {
    if (tensors[i] < end || tensors[i] % kSquareSumTermElements != 0 || tensors[i + 1] < 0 ||
        std::max(tensors[i], tensors[i + 1]) > Shape::kMaxElements) {
      return InvalidArgument(
          "{}: got a tensor of {} elements at {}, expected it behind the one before, at a multiple of "
          "{}",
          call.op->name, tensors[i + 1], tensors[i], kSquareSumTermElements);
    }
    end = tensors[i] + tensors[i + 1];
  }
  if (tensors.empty() || tensors.size() % 2 != 0) {
    return InvalidArgument("{}: got {} numbers in `tensors`, expected begin and size of each",
                           call.op->name, tensors.size());
  }
  const auto num_norms = static_cast<int64_t>(call.attributes.Ints("norms").size());
  const auto num_tensors = static_cast<int64_t>(tensors.size()) / 2;
  return TensorType{DType::kI64, Shape{num_tensors, num_norms, kExactSumWords}};
}

Status CheckBegins(const ir::OpCall& call) {
  const TensorType& begins = call.inputs.back();
  const int dims = call.inputs[0].shape.num_dims();
  if (IsI64(begins) && (dims == 1 || dims == 2) && begins.shape.num_dims() == dims) {
    return Status::Ok();
  }
  return InvalidArgument(
      "{}: got begins {} for p {}, expected i64 of the parts of a bucket, and as "
      "many dims",
      call.op->name, begins.ToString(), call.inputs[0].ToString());
}

// The call without the inputs after the parameter, gradient, states and optional control.
ir::OpCall WithoutMeasures(const ir::OpCall& call) {
  ir::OpCall tensors = call;
  while (!tensors.inputs.empty() && IsI64(tensors.inputs.back())) tensors.inputs.pop_back();
  return tensors;
}

bool IsInBucket(const ir::OpCall& call) { return !call.attributes.Ints("tensors").empty(); }

// Every part has its own begin; sums and control are whole. `outputs`: for a bucket that is split
// that way.
std::vector<ir::SbpSignature> Placements(const ir::OpCall& call,
                                         const std::function<std::vector<Sbp>(Sbp)>& outputs) {
  std::vector<ir::SbpSignature> signatures;
  // A part without sums cannot know norms; in a bucket it will get them.
  if (!IsInBucket(call)) return signatures;
  for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
    const Sbp split = Sbp::S(dim);
    ir::SbpSignature& signature = signatures.emplace_back();
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const bool is_begins = i + 1 == call.inputs.size() && IsI64(call.inputs[i]);
      const bool is_split = static_cast<int>(i) < NumTensors(call) || is_begins;
      signature.inputs.push_back(is_split ? split : Sbp::B());
    }
    signature.outputs = outputs(split);
  }
  return signatures;
}

void AddProgram(ir::OpDef* op) {
  op->max_inputs = -1;
  op->attributes.push_back({"program", std::string(), true});
  op->attributes.push_back({"results", std::vector<int64_t>{}, true});
  op->attributes.push_back({"eval_program", std::string()});
  op->attributes.push_back({"norms", std::vector<int64_t>{}, true});
  op->attributes.push_back({"tensors", std::vector<int64_t>{}});
  op->attributes.push_back({kWholeBucket, Shape{}});
  op->localize = SetWholeBucket;
}

int64_t ProgramFlops(const ir::OpCall& call, bool without_norms) {
  const UpdateProgram program = *ParseUpdateProgram(call);
  int64_t flops = without_norms ? 2 * static_cast<int64_t>(program.norms.size()) : 0;
  for (size_t i = 0; i < program.statements.size(); ++i) {
    if (program.is_scalar[i] || (without_norms && program.needs_norm[i])) continue;
    flops += program.statements[i].op->flops;
  }
  return flops * call.inputs[0].shape.num_elements();
}

ir::OpDef TensorSquareSums() {
  ir::OpDef op = UpdateOp(
      op_names::kTensorSquareSums,
      "Of each tensor in a bucket, and of each of the statements `norms` of a normed_update's "
      "program, the square sum, exact in the form of ExactSum: the inputs are those of the update, and "
      "last the bucket's elements at which equal parts begin, of which the first is this part's. "
      "`tensors` has begin and size of each, where the bucket is (parts, elements) of each part of it.",
      /*counts=*/true);
  op.traits.kind = ir::OpKind::kCompute;
  op.aliases = nullptr;
  op.min_inputs = 3;
  AddProgram(&op);
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_ASSIGN_OR_RETURN(const UpdateProgram program, ParseUpdateProgram(call));
    ZG_RETURN_IF_ERROR(CheckBegins(call));
    ZG_RETURN_IF_ERROR(
        UpdateTypes(WithoutMeasures(call), static_cast<int>(program.results.size()) - 1).status());
    ZG_ASSIGN_OR_RETURN(const TensorType sums, SumsType(call));
    return Types{sums};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Placements(call, [](Sbp) { return std::vector<Sbp>{Sbp::P()}; });
  };
  op.flops = [](const ir::OpCall& call) { return ProgramFlops(call, /*without_norms=*/true); };
  return op;
}

ir::OpDef NormedUpdate() {
  ir::OpDef op = UpdateOp(
      op_names::kNormedUpdate,
      "elementwise_update, whose program reads further scalars: the norms of its statements "
      "`norms`, each over a whole tensor, and the tensor's number of elements. In a bucket of "
      "`tensors` the last inputs are their tensor_square_sums, and where parts of the bucket begin; "
      "otherwise p is one tensor, and whole.",
      /*counts=*/true);
  op.num_outputs = -1;
  AddProgram(&op);
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_ASSIGN_OR_RETURN(const UpdateProgram program, ParseUpdateProgram(call));
    if (IsI64(call.inputs.back())) {
      ZG_RETURN_IF_ERROR(CheckBegins(call));
      ZG_ASSIGN_OR_RETURN(const TensorType sums, SumsType(call));
      const TensorType& got = call.inputs[call.inputs.size() - 2];
      if (got != sums) {
        return InvalidArgument("normed_update: the square sums are {}, expected {}", got.ToString(),
                               sums.ToString());
      }
    }
    return UpdateTypes(WithoutMeasures(call), static_cast<int>(program.results.size()) - 1);
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Placements(call, [num_outputs = NumTensors(call) - 1](Sbp split) {
      return std::vector<Sbp>(num_outputs, split);
    });
  };
  op.flops = [](const ir::OpCall& call) { return ProgramFlops(call, /*without_norms=*/false); };
  return op;
}

}  // namespace

void RegisterNormedUpdateOps(ir::OpRegistry& registry) {
  registry.Register(TensorSquareSums());
  registry.Register(NormedUpdate());
}

}  // namespace zg
