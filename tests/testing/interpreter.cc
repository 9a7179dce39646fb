#include "tests/testing/interpreter.h"

#include "framework/base/check.h"

namespace zg::testing {

Status ExecuteInto(const KernelRegistry& kernels, const ir::OpCall& call,
                   const std::vector<HeapTensor>& inputs, const StepContext& step,
                   const std::vector<HeapTensor>& outputs, int64_t part, Threads* threads) {
  KernelSpec spec{call, {}};
  std::vector<const void*> input_addresses;
  std::vector<void*> output_addresses;
  for (const HeapTensor& input : inputs) input_addresses.push_back(input.data());
  for (const HeapTensor& output : outputs) {
    spec.outputs.push_back(output.type());
    output_addresses.push_back(output.data());
  }
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, kernels.Make(spec));
  const HeapTensor workspace(TensorType{DType::kU8, {kernel->workspace_bytes()}});
  KernelArguments arguments{input_addresses.data(), output_addresses.data(), workspace.data(),
                            &step};
  arguments.part = part;
  arguments.threads = threads;
  return kernel->Run(arguments);
}

StatusOr<std::vector<HeapTensor>> Execute(const KernelRegistry& kernels, const ir::OpCall& call,
                                          const std::vector<HeapTensor>& inputs,
                                          const StepContext& step, int64_t part) {
  ZG_ASSIGN_OR_RETURN(const std::vector<TensorType> types, call.op->infer_shape(call));
  std::vector<HeapTensor> outputs;
  for (const TensorType& type : types) outputs.emplace_back(type);
  if (call.op->aliases != nullptr) {
    for (const ir::AliasRule& rule : call.op->aliases(call)) {
      if (rule.kind != ir::AliasRule::Kind::kOutputInsideInput) continue;
      outputs[rule.output] = inputs[rule.input].View(types[rule.output], rule.offset_elements);
    }
  }
  const bool is_view = call.op->aliases != nullptr && !kernels.Has(call.op->name);
  if (!is_view) ZG_RETURN_IF_ERROR(ExecuteInto(kernels, call, inputs, step, outputs, part));
  return outputs;
}

Status Interpreter::Run(const std::vector<ir::Node*>& nodes) {
  for (const ir::Node* node : nodes) {
    std::vector<HeapTensor> inputs;
    for (const ir::Value* input : node->inputs) inputs.push_back(Get(input));
    ZG_ASSIGN_OR_RETURN(const std::vector<HeapTensor> outputs,
                        Execute(kernels_, node->Call(), inputs, step_));
    for (size_t i = 0; i < outputs.size(); ++i) values_[node->outputs[i]] = outputs[i];
  }
  return Status::Ok();
}

const HeapTensor& Interpreter::Get(const ir::Value* value) const {
  const auto found = values_.find(value);
  ZG_CHECK(found != values_.end(), "%{} has no contents", value->name);
  return found->second;
}

}  // namespace zg::testing
