#include "tests/ir/test_ops.h"

#include <mutex>

#include "framework/ir/op_registry.h"
#include "framework/ops/register_all_ops.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

ir::OpDef TestOp(const char* name, int num_outputs) {
  ir::OpDef op;
  op.name = name;
  op.min_inputs = 0;
  op.max_inputs = -1;
  op.num_outputs = num_outputs;
  op.infer_shape = [num_outputs](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType scalar = {DType::kF32, Shape{}};
    const Types types = {
        {DType::kI64, Shape{2}}, scalar, call.inputs.empty() ? scalar : call.inputs[0]};
    return Types(types.begin(), types.begin() + num_outputs);
  };
  return op;
}

}  // namespace

void RegisterTestOps() {
  RegisterAllOps();
  static std::once_flag once;
  std::call_once(once, [] {
    ir::OpRegistry& registry = ir::OpRegistry::Global();
    registry.Register(TestOp("test_many", 3));
    registry.Register(TestOp("test_sink", 0));
    ir::OpDef options = TestOp("test_options", 1);
    options.attributes = {{"flag", false},
                          {"count", int64_t{1}},
                          {"rate", 0.5},
                          {"text", std::string("none")},
                          {"dims", std::vector<int64_t>{}},
                          {"dtype", DType::kF32},
                          {"shape", Shape{}},
                          {"placement", Sbp::B()},
                          {"sbp", NdSbp{Sbp::B()}}};
    registry.Register(std::move(options));
  });
}

}  // namespace zg
