#include "tests/testing/stored_tensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/testing/virtual_ranks.h"

namespace zg::testing {
namespace {

// A variable of one tensor has the tensor's name.
bool IsInPartsOfBucket(const ir::StoredTensor& tensor) {
  return tensor.storage->name != tensor.name && !tensor.split.empty();
}

Sbp SplitOf(const ir::StoredTensor& tensor) {
  return *std::find_if(tensor.split.begin(), tensor.split.end(),
                       [](Sbp sbp) { return sbp.is_split(); });
}

// The location of each part of the tensor.
std::vector<HeapTensor> Places(const ir::StoredTensor& tensor, const HeapTensor& variable) {
  const DType dtype = variable.type().dtype;
  const int num_parts = static_cast<int>(variable.type().shape.dim(0));
  const int64_t elements = variable.type().shape.dim(1);
  const std::vector<HeapTensor> like =
      Cut(HeapTensor({dtype, tensor.type.shape}), SplitOf(tensor), num_parts, nullptr);
  std::vector<HeapTensor> places;
  for (int part = 0; part < num_parts; ++part) {
    places.push_back(variable.View(like[part].type(), part * elements + tensor.offset_elements));
  }
  return places;
}

}  // namespace

bool IsInParts(const ir::Graph& graph, const ir::Value& variable) {
  return std::any_of(graph.tensors().begin(), graph.tensors().end(),
                     [&](const ir::StoredTensor& tensor) {
                       return tensor.storage == &variable && IsInPartsOfBucket(tensor);
                     });
}

HeapTensor ReadTensor(const ir::StoredTensor& tensor, const HeapTensor& variable) {
  if (!IsInPartsOfBucket(tensor)) {
    return variable.View({variable.type().dtype, tensor.type.shape}, tensor.offset_elements);
  }
  return *Join(Places(tensor, variable), SplitOf(tensor));
}

void WriteTensor(const ir::StoredTensor& tensor, const HeapTensor& contents, HeapTensor* variable) {
  std::vector<HeapTensor> parts = {contents};
  std::vector<HeapTensor> places = {variable->View(contents.type(), tensor.offset_elements)};
  if (IsInPartsOfBucket(tensor)) {
    places = Places(tensor, *variable);
    parts = Cut(contents, SplitOf(tensor), static_cast<int>(places.size()), nullptr);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    std::memcpy(places[i].data(), parts[i].data(), parts[i].type().bytes());
  }
}

}  // namespace zg::testing
