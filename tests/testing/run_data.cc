#include "tests/testing/run_data.h"

#include <string_view>
#include <vector>

#include "framework/base/random.h"
#include "tests/testing/stored_tensors.h"

namespace zg::testing {
namespace {

// Smaller than every vocabulary and number of classes in tests.
constexpr int64_t kTokenIds = 3;

HeapTensor RandomTensor(const TensorType& type, RandomKey key, double low, double high) {
  std::vector<double> values(type.shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * UniformAt(key, i);
  return HeapTensor::FromDoubles(type, values);
}

HeapTensor RandomData(const TensorType& type, RandomKey key) {
  if (type.dtype == DType::kI64) return RandomTensor(type, key, 0, kTokenIds);
  if (type.dtype == DType::kBool) {
    std::vector<double> values(type.shape.num_elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = UniformAt(key, i) < 0.5f ? 1.0 : 0.0;
    return HeapTensor::FromDoubles(type, values);
  }
  return RandomTensor(type, key, -1, 1);
}

// Each element off by a share of itself.
HeapTensor WithNoise(const HeapTensor& exact, RandomKey key, double noise) {
  if (noise == 0 || !IsFloat(exact.type().dtype)) return exact;
  std::vector<double> values = exact.ToDoubles();
  for (size_t i = 0; i < values.size(); ++i) values[i] *= 1 + noise * (2 * UniformAt(key, i) - 1);
  return HeapTensor::FromDoubles(exact.type(), values);
}

RandomKey Key(unsigned seed, std::string_view name, int64_t index) {
  return FoldIn(FoldIn(RandomKey{seed, 0}, name), static_cast<uint64_t>(index));
}

HeapTensor ExactTensor(const ir::Graph& graph, const ir::StoredTensor& tensor,
                       const RunOptions& options) {
  const auto given = options.tensors.find(tensor.name);
  if (given != options.tensors.end()) return given->second;
  if (!tensor.copy_of.empty()) {
    const ir::StoredTensor& original = *graph.FindTensor(tensor.copy_of);
    return HeapTensor::FromDoubles(tensor.type, ExactTensor(graph, original, options).ToDoubles());
  }
  const std::string initializer = tensor.initializer.ToString();
  if (initializer == "zeros") return Zeros(tensor.type);
  if (initializer == "ones") {
    return HeapTensor::FromDoubles(tensor.type,
                                   std::vector<double>(tensor.type.shape.num_elements(), 1.0));
  }
  return RandomTensor(tensor.type, Key(options.seed, tensor.name, 0), -0.5, 0.5);
}

}  // namespace

HeapTensor InitialTensor(const ir::Graph& graph, const ir::StoredTensor& tensor,
                         const RunOptions& options) {
  // That of a copy is the one of its original.
  const std::string& name = tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
  return WithNoise(ExactTensor(graph, tensor, options), Key(options.seed, name, -1), options.noise);
}

Parts InitialVariable(const ir::Graph& graph, const ir::Value& variable, const VirtualMesh& ranks,
                      const RunOptions& options) {
  HeapTensor logical = Zeros(variable.type);
  bool has_tensors = false;
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    if (tensor.storage != &variable) continue;
    has_tensors = true;
    WriteTensor(tensor, InitialTensor(graph, tensor, options), &logical);
  }
  if (!has_tensors) logical = RandomData(variable.type, Key(options.seed, variable.name, 0));
  return ranks.Cut(logical, variable.sbp, Key(options.seed, variable.name, 1));
}

Parts Feed(const ir::Node& node, const VirtualMesh& ranks, const RunOptions& options, int64_t step,
           int64_t micro_step) {
  const unsigned seed = options.seed;
  const auto data = [&](const TensorType& type, RandomKey key) {
    return WithNoise(RandomData(type, key), FoldIn(key, "noise"), options.noise);
  };
  const ir::Value& value = *node.outputs[0];
  const bool is_input = node.op->name == "input";
  const std::string& name = is_input ? node.attributes.String("name") : value.name;
  const int64_t run = (step * 1000 + micro_step) * 1000;
  if (!is_input) {
    return ranks.Cut(data(value.type, Key(seed, name, run)), value.sbp, Key(seed, name, run + 1));
  }
  const int64_t first = step * 1000;
  const Sbp along_data = ranks.AlongData(value.sbp);
  if (!along_data.is_split()) {
    // A broadcast input is the same for all micro-batches.
    const bool by_micro_batch = !node.attributes.Sbp("placement").is_broadcast();
    const int64_t index = by_micro_batch ? first + ranks.MicroBatch(0, micro_step) : first;
    return ranks.Cut(data(value.type, Key(seed, name, index)), value.sbp, Key(seed, name, run));
  }
  NdSbp others = value.sbp;
  others[ranks.data_axis()] = Sbp::B();
  TensorType own = value.type;
  const int dim = along_data.dim();
  own.shape.set_dim(dim, own.shape.dim(dim) / ranks.data_ranks());
  Parts parts;
  for (int rank = 0; rank < ranks.num_ranks(); ++rank) {
    const int64_t index = first + ranks.MicroBatch(rank, micro_step);
    parts.push_back(ranks.Cut(data(own, Key(seed, name, index)), others, {})[rank]);
  }
  return parts;
}

}  // namespace zg::testing
