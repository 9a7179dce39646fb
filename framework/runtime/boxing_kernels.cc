#include "framework/runtime/boxing_kernels.h"

#include <unordered_set>

#include "framework/base/check.h"

namespace zg {
namespace {

// A value seen as [outer, dim, inner], in bytes.
struct DimView {
  int64_t outer = 1;
  int64_t size = 1;         // elements of the dim
  int64_t inner_bytes = 1;  // of one element of the dim
};

DimView ViewDim(const TensorType& type, int dim) {
  DimView view;
  for (int i = 0; i < dim; ++i) view.outer *= type.shape.dim(i);
  view.size = type.shape.dim(dim);
  view.inner_bytes = SizeOf(type.dtype);
  for (int i = dim + 1; i < type.shape.num_dims(); ++i) view.inner_bytes *= type.shape.dim(i);
  return view;
}

// Between `whole` and the part-th of its `parts` equal parts along the viewed dim, contiguous at
// `part_data`.
enum class Direction { kTake, kPut };
Status CopyPart(Device& device, const DimView& view, int64_t parts, int64_t part, std::byte* whole,
                std::byte* part_data, Direction direction) {
  CopiedRows rows;
  rows.bytes = view.size / parts * view.inner_bytes;
  rows.count = view.outer;
  std::byte* const in_whole = whole + part * rows.bytes;
  const int64_t whole_stride = parts * rows.bytes;
  if (direction == Direction::kTake) {
    rows.to = part_data;
    rows.to_stride = rows.bytes;
    rows.from = in_whole;
    rows.from_stride = whole_stride;
  } else {
    rows.to = in_whole;
    rows.to_stride = whole_stride;
    rows.from = part_data;
    rows.from_stride = rows.bytes;
  }
  return device.Copy(rows);
}

class BoxingKernel : public Kernel {
 public:
  BoxingKernel(const ir::Graph& graph, const ir::Node& node, const MemoryPlan& plan,
               Communicator* communicator)
      : communicator_(*communicator),
        device_(communicator->device()),
        op_(node.op->name),
        name_(node.outputs[0]->name),
        logical_(node.outputs[0]->type),
        local_input_(graph.LocalType(*node.inputs[0])),
        local_output_(graph.LocalType(*node.outputs[0])),
        num_ranks_(communicator->size()),
        rank_(communicator->rank()),
        input_(OperandOf(plan, node.inputs[0])),
        output_(OperandOf(plan, node.outputs[0])),
        has_accumulator_(node.inputs.size() == 2) {
    if (node.attributes.Has("dim")) dim_ = static_cast<int>(node.attributes.Int("dim"));
    if (op_ == "all_to_all") {
      from_ = static_cast<int>(node.attributes.Int("from"));
      to_ = static_cast<int>(node.attributes.Int("to"));
    }
    const auto workspace = plan.workspaces.find(&node);
    if (workspace != plan.workspaces.end())
      workspace_.offset = plan.buffers[workspace->second].offset;
  }

  Status Run(const KernelArguments& arguments) override {
    // A constant input is never written; the casts are for the shared copy routine.
    auto* input = static_cast<std::byte*>(const_cast<void*>(arguments.inputs[0]));
    auto* output = static_cast<std::byte*>(arguments.outputs[0]);
    auto* workspace = static_cast<std::byte*>(arguments.workspace);
    const bool accumulate = has_accumulator_ && !arguments.step->first_micro_step;
    const int64_t part_bytes = logical_.bytes() / num_ranks_;
    const ReductionTypes types = {local_input_.dtype, local_output_.dtype};
    if (op_ == "all_reduce") {
      return communicator_.world().AllReduce(name_, input_, output_, logical_.shape.num_elements(),
                                             types, accumulate);
    }
    if (op_ == "reduce_scatter") {
      ArenaOperand source = input_;
      if (dim_ != 0) {
        const DimView view = ViewDim(local_input_, dim_);  // whole: a term of the sum
        const int64_t term_bytes = local_input_.bytes() / num_ranks_;
        for (int part = 0; part < num_ranks_; ++part) {
          ZG_RETURN_IF_ERROR(CopyPart(device_, view, num_ranks_, part, input,
                                      workspace + part * term_bytes, Direction::kTake));
        }
        source = workspace_;
      }
      return communicator_.world().ReduceScatter(name_, source, output_,
                                                 logical_.shape.num_elements(), types, accumulate);
    }
    if (op_ == "all_gather") {
      if (dim_ == 0) return communicator_.world().AllGather(name_, input_, output_, part_bytes);
      ZG_RETURN_IF_ERROR(communicator_.world().AllGather(name_, input_, workspace_, part_bytes));
      const DimView view = ViewDim(logical_, dim_);
      for (int part = 0; part < num_ranks_; ++part) {
        ZG_RETURN_IF_ERROR(CopyPart(device_, view, num_ranks_, part, output,
                                    workspace + part * part_bytes, Direction::kPut));
      }
      return Status::Ok();
    }
    if (op_ == "all_to_all") return AllToAll(input, output, workspace);
    if (op_ == "local_slice") {
      if (dim_ == 0) return Status::Ok();  // a view
      return CopyPart(device_, ViewDim(logical_, dim_), num_ranks_, rank_, input, output,
                      Direction::kTake);
    }
    ZG_CHECK(op_ == "local_term", "{} is not a boxing op", op_);
    return LocalTerm(input, output);
  }

 private:
  static ArenaOperand OperandOf(const MemoryPlan& plan, const ir::Value* value) {
    return {plan.BaseOffset(value), plan.RankStride(value)};
  }

  // Cuts the local part along `to`, exchanges, and joins what arrives along `from`.
  Status AllToAll(std::byte* input, std::byte* output, std::byte* workspace) {
    const int64_t local_bytes = local_input_.bytes();
    const int64_t part_bytes = local_bytes / num_ranks_;
    const DimView cut = ViewDim(local_input_, to_);
    const DimView join = ViewDim(local_output_, from_);
    for (int part = 0; part < num_ranks_; ++part) {
      ZG_RETURN_IF_ERROR(CopyPart(device_, cut, num_ranks_, part, input,
                                  workspace + part * part_bytes, Direction::kTake));
    }
    const ArenaOperand received = {workspace_.offset + local_bytes, 0};
    ZG_RETURN_IF_ERROR(communicator_.world().AllToAll(name_, workspace_, received, part_bytes));
    for (int part = 0; part < num_ranks_; ++part) {
      ZG_RETURN_IF_ERROR(CopyPart(device_, join, num_ranks_, part, output,
                                  workspace + local_bytes + part * part_bytes, Direction::kPut));
    }
    return Status::Ok();
  }

  Status LocalTerm(std::byte* input, std::byte* output) {
    if (dim_ < 0 && rank_ == 0) return device_.Copy(output, input, logical_.bytes());
    ZG_RETURN_IF_ERROR(device_.Zero(output, logical_.bytes()));
    if (dim_ < 0) return Status::Ok();
    return CopyPart(device_, ViewDim(logical_, dim_), num_ranks_, rank_, output, input,
                    Direction::kPut);
  }

  Communicator& communicator_;
  Device& device_;
  std::string op_;
  std::string name_;
  TensorType logical_;
  TensorType local_input_;
  TensorType local_output_;
  int num_ranks_;
  int rank_;
  ArenaOperand input_;
  ArenaOperand output_;
  ArenaOperand workspace_;
  bool has_accumulator_;
  int dim_ = 0;
  int from_ = 0;
  int to_ = 0;
};

}  // namespace

bool IsBoxing(const ir::Node& node) {
  static const std::unordered_set<std::string> ops = {"all_reduce", "reduce_scatter", "all_gather",
                                                      "all_to_all", "local_slice",    "local_term"};
  return ops.count(node.op->name) != 0;
}

int64_t BoxingWorkspaceBytes(const ir::Graph& graph, const ir::Node& node) {
  if (node.op->name == "all_to_all") return 2 * graph.LocalType(*node.inputs[0]).bytes();
  const bool gathers = node.op->name == "all_gather";
  if (!gathers && node.op->name != "reduce_scatter") return 0;
  if (node.attributes.Int("dim") == 0) return 0;
  return gathers ? node.outputs[0]->type.bytes() : node.inputs[0]->type.bytes();
}

std::unique_ptr<Kernel> MakeBoxingKernel(const ir::Graph& graph, const ir::Node& node,
                                         const MemoryPlan& plan, Communicator* communicator) {
  return std::make_unique<BoxingKernel>(graph, node, plan, communicator);
}

}  // namespace zg
