#include "framework/ops/update_program.h"

#include <algorithm>

namespace zg {
namespace {

Status CheckResults(const std::vector<int64_t>& results) {
  if (results.empty() || results.size() > kMaxUpdateStates + 1) {
    return InvalidArgument(
        "elementwise_update: got {} results, expected the new parameter and at most {} states",
        results.size(), kMaxUpdateStates);
  }
  return Status::Ok();
}

Status MarkScalars(UpdateProgram* program) {
  for (const ElementwiseStatement& statement : program->statements) {
    const bool is_scalar =
        std::all_of(statement.operands.begin(), statement.operands.end(),
                    [&](const ElementwiseOperand& operand) { return program->IsScalar(operand); });
    if (is_scalar && !IsScalarOp(statement.op->code)) {
      return InvalidArgument(
          "elementwise_update: {} is not computed for a scalar; use arithmetic, "
          "exp, log, sqrt, minimum or maximum",
          statement.op->op);
    }
    program->is_scalar.push_back(is_scalar);
  }
  return Status::Ok();
}

Status CheckNorms(const ir::OpCall& call, UpdateProgram* program) {
  const int first_norm = program->num_tensors + kNumUpdateScalars;
  for (const ElementwiseStatement& statement : program->statements) {
    program->needs_norm.push_back(std::any_of(
        statement.operands.begin(), statement.operands.end(), [&](const ElementwiseOperand& from) {
          return from.is_input ? from.index >= first_norm : program->needs_norm[from.index];
        }));
  }
  for (const int norm : program->norms) {
    if (!program->is_scalar[norm] && !program->needs_norm[norm]) continue;
    return InvalidArgument("{}: the norm of t{}, expected one of elements that depend on no norm",
                           call.op->name, norm);
  }
  return Status::Ok();
}

void AssignSlots(UpdateProgram* program) {
  const size_t count = program->statements.size();
  std::vector<size_t> last_use(count);
  for (size_t i = 0; i < count; ++i) {
    last_use[i] = i;
    for (const ElementwiseOperand& operand : program->statements[i].operands) {
      if (!operand.is_input) last_use[operand.index] = i;
    }
  }
  // Until everything is computed.
  for (const int result : program->results) last_use[result] = count;
  for (const int norm : program->norms) last_use[norm] = count;
  std::vector<int> free_slots;
  program->slots.assign(count, -1);
  for (size_t i = 0; i < count; ++i) {
    if (program->is_scalar[i]) continue;
    for (size_t t = 0; t < i; ++t) {
      if (last_use[t] == i && program->slots[t] >= 0) free_slots.push_back(program->slots[t]);
    }
    if (free_slots.empty()) free_slots.push_back(program->num_slots++);
    program->slots[i] = free_slots.back();
    free_slots.pop_back();
  }
}

}  // namespace

bool IsScalarOp(ElementwiseCode code) {
  switch (code) {
    case ElementwiseCode::kAdd:
    case ElementwiseCode::kSubtract:
    case ElementwiseCode::kMultiply:
    case ElementwiseCode::kDivide:
    case ElementwiseCode::kMaximum:
    case ElementwiseCode::kMinimum:
    case ElementwiseCode::kClampMin:
    case ElementwiseCode::kClampMax:
    case ElementwiseCode::kScale:
    case ElementwiseCode::kShift:
    case ElementwiseCode::kReciprocal:
    case ElementwiseCode::kSquare:
    case ElementwiseCode::kSqrt:
    case ElementwiseCode::kRsqrt:
    case ElementwiseCode::kExp:
    case ElementwiseCode::kLog:
    case ElementwiseCode::kSign:
      return true;
    default:
      return false;
  }
}

StatusOr<UpdateProgram> ParseUpdateProgram(const ir::OpCall& call) {
  const std::vector<int64_t>& results = call.attributes.Ints("results");
  ZG_RETURN_IF_ERROR(CheckResults(results));
  UpdateProgram program;
  program.num_tensors = static_cast<int>(results.size()) + 1;
  std::vector<int64_t> kept = results;
  if (call.attributes.Has("norms")) {
    for (const int64_t norm : call.attributes.Ints("norms")) {
      program.norms.push_back(static_cast<int>(norm));
      kept.push_back(norm);
    }
  }
  ZG_ASSIGN_OR_RETURN(
      program.statements,
      ParseElementwiseProgram(call.attributes.String("program"),
                              program.num_tensors + program.num_scalar_inputs(), kept));
  ZG_RETURN_IF_ERROR(MarkScalars(&program));
  ZG_RETURN_IF_ERROR(CheckNorms(call, &program));
  for (const int64_t result : results) {
    if (program.is_scalar[result]) {
      return InvalidArgument("elementwise_update: result t{} is a scalar, expected elements",
                             result);
    }
    program.results.push_back(static_cast<int>(result));
  }
  AssignSlots(&program);
  return program;
}

}  // namespace zg
