#include "framework/runtime/gradient_histograms.h"

#include <algorithm>

#include "framework/tensor/half.h"

namespace zg {

// A gradient is laid out like its parameter in f32: the stored tensors at the parameter's address
// tell which tensor each element belongs to.
void GradientHistograms::Observe(const RankMemory& memory, const Instruction& instruction) {
  if (instruction.kind() != ir::OpKind::kUpdate) return;
  const ir::Graph& graph = memory.graph();
  const ir::Value& gradient = *instruction.node->inputs[1];
  const int flat_dim = gradient.type.shape.num_dims() - 1;
  if (ShardPositionOf(graph.mesh(), gradient.sbp, memory.rank(), flat_dim).copy != 0) return;
  const TensorType type = graph.LocalType(gradient);
  const auto* const parameters = static_cast<const float*>(instruction.inputs[0]);
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    const LocalPart part = memory.PartOf(tensor);
    if (part.count == 0 || tensor.type.dtype != DType::kF32) continue;
    const int64_t offset = reinterpret_cast<const float*>(part.data) - parameters;
    const int64_t begin = std::max<int64_t>(offset, 0);
    const int64_t end = std::min(offset + part.count, type.shape.num_elements());
    if (begin >= end) continue;
    ValueHistogram& histogram = by_parameter_[tensor.name];
    WithFloatType(type.dtype, [&](auto zero) {
      const auto* const values = static_cast<const decltype(zero)*>(instruction.inputs[1]);
      for (int64_t i = begin; i < end; ++i) histogram.Add(ToF32(values[i]));
    });
  }
}

}  // namespace zg
