#include "framework/eager/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/base/random.h"
#include "framework/base/seed_of_evals.h"
#include "framework/device/cuda_device.h"
#include "framework/io/float_values.h"
#include "framework/ir/builder.h"
#include "framework/ir/differentiate.h"
#include "framework/kernels/device_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/state/initial_values.h"

namespace zg::eager {

// The owner in a Var: keeps the session, and the value in it, alive.
struct Session::Handle {
  Handle(std::shared_ptr<Session> session, ir::Value* value)
      : session(std::move(session)), value(value) {
    ++this->session->num_handles_[value];
  }
  ~Handle() { session->Release(value); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  std::shared_ptr<Session> session;
  ir::Value* value;
};

StatusOr<std::shared_ptr<Session>> Session::Create(const EagerOptions& options) {
  RegisterAllOps();
  std::unique_ptr<Device> gpu;
  if (options.gpu >= 0) {
    ZG_ASSIGN_OR_RETURN(gpu, OpenCudaDevice(options.gpu));
  }
  KernelOptions of_kernels;
  of_kernels.threads = options.threads;
  ZG_ASSIGN_OR_RETURN(const KernelRegistry* const kernels,
                      DeviceKernels(gpu == nullptr ? CpuDevice() : *gpu, of_kernels));
  auto session = std::make_shared<Session>(std::move(gpu), kernels);
  ZG_RETURN_IF_ERROR(session->Start(options));
  return session;
}

Session::Session(std::unique_ptr<Device> gpu, const KernelRegistry* kernels)
    : gpu_(std::move(gpu)),
      device_(gpu_ == nullptr ? CpuDevice() : *gpu_),
      pool_(&device_),
      kernels_(kernels, &device_) {}

Status Session::Start(const EagerOptions& options) {
  context_.seed = options.seed;
  trace_.emplace(&graph_, graph_.section(ir::SectionKind::kForward), &variables_, this);
  ZG_RETURN_IF_ERROR(SetTraining(options.training));
  if (options.init.empty()) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(initial_values_, Weights::Open(options.init));
  name_in_file_ = options.init_names;
  return Status::Ok();
}

Status Session::SetTraining(bool training) {
  trace_->set_training(training);
  return ContextChanged();
}

Status Session::ContextChanged() {
  StepContext context = context_;
  if (!trace_->training()) context.seed = SeedOfEvals(context.seed, context.step - 1);
  return kernels_.SetContext(context);
}

void Session::End() {
  ZeroGradients();
  eval_weights_.clear();
  trace_.reset();
}

std::shared_ptr<Session> Session::Of(const Var& var) {
  if (var.owner() == nullptr) return nullptr;
  return std::static_pointer_cast<const Handle>(var.owner())->session;
}

std::shared_ptr<const void> Session::Hold(ir::Value* value) {
  return std::make_shared<Handle>(shared_from_this(), value);
}

void Session::Fail(const Status& status) { nn::EndProcess(status); }

// ---------------------------------------------------------------------------------------------
// Running nodes.

StatusOr<Session::Memory> Session::Allocate(int64_t bytes) {
  Memory memory;
  ZG_ASSIGN_OR_RETURN(memory.owner, pool_.Take(bytes));
  memory.data = memory.owner.get();
  memory.step = context_.step;
  return memory;
}

Status Session::Allocate(const ir::Value& value) {
  StatusOr<Memory> memory = Allocate(value.type.bytes());
  if (!memory.ok()) return memory.status().WithContext(value.name);
  memory_[&value] = *std::move(memory);
  return Status::Ok();
}

Status Session::Run(ir::Node* node) {
  switch (node->op->traits.kind) {
    case ir::OpKind::kVariable:
      return Initialize(*node->outputs[0]);
    case ir::OpKind::kInput:
      return Allocate(*node->outputs[0]);
    case ir::OpKind::kView:
      return RunView(*node);
    case ir::OpKind::kPlace:  // there is one rank
      memory_[node->outputs[0]] = memory_.at(node->inputs[0]);
      return Status::Ok();
    case ir::OpKind::kNextValue:
      return AddNextValue(node);
    default:
      return RunKernel(*node);
  }
}

void Session::HasRun(ir::Node* node) {
  if (keeps_history_ || node->inputs.empty()) return;
  const std::vector<ir::Value*> inputs = node->inputs;
  graph_.DropInputs(node);
  std::vector<ir::Node*> producers;
  for (const ir::Value* input : inputs) producers.push_back(input->producer);
  EraseUnused(std::move(producers));
}

Status Session::RunKernel(const ir::Node& node) {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const ir::Value* input : node.inputs) inputs.push_back(memory_.at(input).data);
  for (const ir::Value* output : node.outputs) {
    ZG_RETURN_IF_ERROR(Allocate(*output));
    outputs.push_back(memory_.at(output).data);
  }
  return kernels_.Run(node, inputs, outputs, &pool_).WithContext(node.scope);
}

Status Session::RunView(const ir::Node& node) {
  for (const ir::AliasRule& rule : node.op->aliases(node.Call())) {
    if (rule.kind != ir::AliasRule::Kind::kOutputInsideInput) continue;
    const ir::Value* output = node.outputs[rule.output];
    Memory view = memory_.at(node.inputs[rule.input]);
    view.data += rule.offset_elements * SizeOf(output->type.dtype);
    view.step = context_.step;
    memory_[output] = std::move(view);
  }
  return Status::Ok();
}

Status Session::Initialize(const ir::Value& variable) {
  ZG_RETURN_IF_ERROR(Allocate(variable));
  std::vector<float> values(variable.type.shape.num_elements());
  ZG_RETURN_IF_ERROR(FillInitialValues(*graph_.FindTensor(variable.name), &values));
  return device_.Write(memory_.at(&variable).data, values.data(), variable.type.bytes());
}

Status Session::FillInitialValues(const ir::StoredTensor& tensor,
                                  std::vector<float>* values) const {
  const auto count = static_cast<int64_t>(values->size());
  if (!initial_values_) {
    const RandomKey key = FoldIn(RandomKey{context_.seed}, tensor.name);
    ZG_ASSIGN_OR_RETURN(const InitialValues initial,
                        InitialValues::Of(tensor.initializer, tensor.name, key, tensor.type.shape));
    initial.Fill(0, count, values->data());
    return Status::Ok();
  }
  const std::string name = name_in_file_ ? name_in_file_(tensor.name) : tensor.name;
  const auto found = initial_values_->tensors().find(name);
  const bool is_there = found != initial_values_->tensors().end();
  const SafetensorsEntry* const entry = is_there ? found->second.entry : nullptr;
  if (entry == nullptr || entry->shape != tensor.type.shape.dims() || !IsFloatValue(entry->dtype)) {
    return InvalidArgument("{}: '{}' {}, expected {}", initial_values_->path(), name,
                           entry == nullptr
                               ? "is missing"
                               : fmt::format("has the shape {}", Shape(entry->shape).ToString()),
                           tensor.type.ToString());
  }
  ReadFloatValues(entry->dtype, found->second.data, count, values->data());
  return Status::Ok();
}

Var Session::Input(const TensorType& type, const std::string& name) {
  return trace_->Append("input", {},
                        {{"name", std::string("x")}, {"dtype", type.dtype}, {"shape", type.shape}},
                        name);
}

StatusOr<Var> Session::Constant(const TensorType& type, const void* data) {
  const Var var = Input(type, "x");
  ZG_RETURN_IF_ERROR(device_.Write(memory_.at(var.value()).data, data, type.bytes()));
  return var;
}

StatusOr<Var> Session::CopyOf(const ir::Value& value, const std::string& name) {
  const Var var = Input(value.type, name);
  ZG_RETURN_IF_ERROR(
      device_.Copy(memory_.at(var.value()).data, memory_.at(&value).data, value.type.bytes()));
  return var;
}

StatusOr<const std::byte*> Session::Read(const ir::Value& value,
                                         std::vector<std::byte>* scratch) const {
  return device_.Read(memory_.at(&value).data, value.type.bytes(), scratch);
}

// ---------------------------------------------------------------------------------------------
// Lifetime of values.

bool Session::IsUsed(const ir::Value* value) const {
  return !value->users.empty() || num_handles_.count(value) != 0;
}

void Session::Release(ir::Value* value) {
  const auto found = num_handles_.find(value);
  if (--found->second > 0) return;
  num_handles_.erase(found);
  EraseUnused({value->producer});
}

void Session::EraseUnused(std::vector<ir::Node*> candidates) {
  std::unordered_set<const ir::Node*> erased;  // some candidates occur several times
  std::vector<Var> dead;                       // gradients, whose handles are released when
                                               // everything else is done
  while (!candidates.empty()) {
    ir::Node* const candidate = candidates.back();
    candidates.pop_back();
    if (erased.count(candidate) != 0) continue;
    const ir::OpKind kind = candidate->op->traits.kind;
    if (kind == ir::OpKind::kVariable || kind == ir::OpKind::kNextValue) continue;
    const auto& outputs = candidate->outputs;
    if (std::any_of(outputs.begin(), outputs.end(), [&](auto* one) { return IsUsed(one); })) {
      continue;
    }
    for (const ir::Value* output : outputs) {
      memory_.erase(output);
      leaves_.erase(output);
      if (const auto gradient = gradients_.find(output); gradient != gradients_.end()) {
        dead.push_back(std::move(gradient->second));
        gradients_.erase(gradient);
      }
    }
    for (const ir::Value* input : candidate->inputs) candidates.push_back(input->producer);
    erased.insert(candidate);
    graph_.Erase(candidate);
  }
}

}  // namespace zg::eager
