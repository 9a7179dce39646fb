#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

// P -> B along all axes of the node together.
class AllReduce : public Kernel {
 public:
  AllReduce(const BoxingNode& node, Group* group, ArenaOperand input, ArenaOperand output)
      : group_(*group),
        name_(node.name),
        elements_(node.input.shape.num_elements()),
        types_(node.types()),
        has_accumulator_(node.has_accumulator),
        input_(input),
        output_(output) {}

  Status Run(const KernelArguments& arguments) override {
    const bool accumulate = has_accumulator_ && !arguments.step->first_micro_step;
    return group_.AllReduce(name_, input_, output_, elements_, types_, accumulate);
  }

 private:
  Group& group_;
  const std::string name_;
  const int64_t elements_;
  const ReductionTypes types_;
  const bool has_accumulator_;
  const ArenaOperand input_;
  const ArenaOperand output_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const BoxingContext& context) {
  const BoxingNode& node = context.node();
  ZG_ASSIGN_OR_RETURN(Group* const group, context.GroupAlong(node.axes));
  ZG_ASSIGN_OR_RETURN(const ArenaOperand input, context.OperandOf(node.node.inputs[0], node.axes));
  ZG_ASSIGN_OR_RETURN(const ArenaOperand output,
                      context.OperandOf(node.node.outputs[0], node.axes));
  return std::unique_ptr<Kernel>(new AllReduce(node, group, input, output));
}

}  // namespace

BoxingOp AllReduceBoxing() {
  return {[](const BoxingNode&) -> int64_t { return 0; }, Make};
}

}  // namespace zg
