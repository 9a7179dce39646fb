#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

bool BringsDimToFront(const BoxingNode& node) {
  return !IsFirstLongDim(node.input.shape, node.Dim("dim"));
}

// P -> S(dim) along all axes of the node.
class ReduceScatter : public Kernel {
 public:
  ReduceScatter(const BoxingNode& node, Device* device, Group* group, ArenaOperand input,
                ArenaOperand output, ArenaOperand workspace)
      : device_(*device),
        group_(*group),
        name_(node.name),
        elements_(node.input.shape.num_elements()),
        types_(node.types()),
        has_accumulator_(node.has_accumulator),
        brings_dim_to_front_(BringsDimToFront(node)),
        view_(ViewDim(node.input, node.Dim("dim"))),
        source_(brings_dim_to_front_ ? workspace : input),
        output_(output) {}

  Status Run(const KernelArguments& arguments) override {
    if (brings_dim_to_front_) {
      ZG_RETURN_IF_ERROR(TakeParts(device_, view_, group_.size(),
                                   static_cast<const std::byte*>(arguments.inputs[0]),
                                   static_cast<std::byte*>(arguments.workspace)));
    }
    const bool accumulate = has_accumulator_ && !arguments.step->first_micro_step;
    return group_.ReduceScatter(name_, source_, output_, elements_, types_, accumulate);
  }

 private:
  Device& device_;
  Group& group_;
  const std::string name_;
  const int64_t elements_;
  const ReductionTypes types_;
  const bool has_accumulator_;
  const bool brings_dim_to_front_;
  const DimView view_;
  const ArenaOperand source_;
  const ArenaOperand output_;
};

// P -> S(0) along some axes and B along the others: one sum over all of them, in rank order, of
// which every rank owns a part; then the ranks along the others gather the parts of their shard
// (comm/group.h).
class ReduceScatterAndCopy : public Kernel {
 public:
  ReduceScatterAndCopy(const BoxingNode& node, Device* device, Group* all, Group* copies,
                       ArenaOperand input, ArenaOperand output, ArenaOperand part)
      : device_(*device),
        all_(*all),
        copies_(*copies),
        name_(node.name),
        elements_(node.input.shape.num_elements()),
        part_bytes_(node.output.bytes() / copies->size()),
        types_(node.types()),
        has_accumulator_(node.has_accumulator),
        input_(input),
        output_(output),
        part_(part) {}

  Status Run(const KernelArguments& arguments) override {
    const bool accumulate = has_accumulator_ && !arguments.step->first_micro_step;
    if (accumulate) {
      const auto* const sums = static_cast<const std::byte*>(arguments.outputs[0]);
      ZG_RETURN_IF_ERROR(
          device_.Copy(arguments.workspace, sums + copies_.rank() * part_bytes_, part_bytes_));
    }
    ZG_RETURN_IF_ERROR(all_.ReduceScatter(name_, input_, part_, elements_, types_, accumulate));
    return copies_.AllGather(name_, part_, output_, part_bytes_);
  }

 private:
  Device& device_;
  Group& all_;
  Group& copies_;
  const std::string name_;
  const int64_t elements_;
  const int64_t part_bytes_;  // of the output; this rank sums it
  const ReductionTypes types_;
  const bool has_accumulator_;
  const ArenaOperand input_;
  const ArenaOperand output_;
  const ArenaOperand part_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const BoxingContext& context) {
  const BoxingNode& node = context.node();
  // The parts of one shard must be consecutive.
  std::vector<int> axes = node.split_axes;
  axes.insert(axes.end(), node.copied_axes.begin(), node.copied_axes.end());
  ZG_ASSIGN_OR_RETURN(Group* const group, context.GroupAlong(axes));
  ZG_ASSIGN_OR_RETURN(const ArenaOperand input, context.OperandOf(node.node.inputs[0], axes));
  if (node.copied_axes.empty()) {
    ZG_ASSIGN_OR_RETURN(const ArenaOperand output, context.OperandOf(node.node.outputs[0], axes));
    return std::unique_ptr<Kernel>(
        new ReduceScatter(node, &context.device(), group, input, output, context.Workspace()));
  }
  const int num_copies = node.NumRanksAlong(node.copied_axes);
  if (BringsDimToFront(node) || node.output.shape.num_elements() % num_copies != 0) {
    return InvalidArgument(
        "reduce_scatter of %{}: got parts {} along dim {}, expected parts along the first dim with a "
        "multiple of {} elements, where copies are kept along other axes of mesh({}); reduce to B "
        "and slice",
        node.node.inputs[0]->name, node.output.ToString(), node.Dim("dim"), num_copies,
        node.mesh.ToString());
  }
  ZG_ASSIGN_OR_RETURN(Group* const copies, context.GroupAlong(node.copied_axes));
  ZG_ASSIGN_OR_RETURN(const ArenaOperand output,
                      context.OperandOf(node.node.outputs[0], node.copied_axes));
  return std::unique_ptr<Kernel>(new ReduceScatterAndCopy(node, &context.device(), group, copies,
                                                          input, output, context.Workspace()));
}

int64_t WorkspaceBytes(const BoxingNode& node) {
  if (!node.copied_axes.empty()) {
    return node.output.bytes() / node.NumRanksAlong(node.copied_axes);
  }
  return BringsDimToFront(node) ? node.input.bytes() : 0;
}

}  // namespace

BoxingOp ReduceScatterBoxing() { return {WorkspaceBytes, Make}; }

}  // namespace zg
