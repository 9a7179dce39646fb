#include "tests/testing/virtual_mesh.h"

#include <algorithm>
#include <cstring>

#include "tests/testing/virtual_ranks.h"

namespace zg::testing {
namespace {

// The parts of the ranks along one axis, under another placement along it.
StatusOr<Parts> ChangeInGroup(const Parts& group, Sbp from, Sbp to) {
  const int size = static_cast<int>(group.size());
  HeapTensor whole;
  if (from.is_partial()) {
    whole = Fold(nullptr, group, group[0].type().dtype);
  } else {
    ZG_ASSIGN_OR_RETURN(whole, Join(group, from));
  }
  if (!to.is_partial()) {
    if (Divides(whole.type().shape, to, size)) return Cut(whole, to, size, nullptr);
    return InvalidArgument("{} does not divide by {} ranks", whole.type().ToString(), size);
  }
  Parts terms;
  for (int rank = 0; rank < size; ++rank) {
    if (!from.is_split()) {
      terms.push_back(rank == 0 ? whole.Clone() : Zeros(whole.type()));
      continue;
    }
    Parts padded;
    for (const HeapTensor& part : group) padded.push_back(Zeros(part.type()));
    padded[rank] = group[rank];
    ZG_ASSIGN_OR_RETURN(HeapTensor term, Join(padded, from));
    terms.push_back(std::move(term));
  }
  return terms;
}

}  // namespace

bool IsPlaced(const ir::Graph& graph) {
  for (const ir::Node* node : graph.AllNodes()) {
    for (const ir::Value* output : node->outputs) {
      if (!output->sbp.empty()) return true;
    }
  }
  return false;
}

HeapTensor Zeros(const TensorType& type) {
  HeapTensor tensor(type);
  std::memset(tensor.data(), 0, type.bytes());
  return tensor;
}

HeapTensor Fold(const HeapTensor* start, const Parts& terms, DType dtype) {
  const TensorType type = {dtype, terms[0].type().shape};
  std::vector<double> sum = start != nullptr ? start->ToDoubles() : terms[0].ToDoubles();
  for (size_t i = start != nullptr ? 0 : 1; i < terms.size(); ++i) {
    const std::vector<double> term = terms[i].ToDoubles();
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k] = IsFloat(dtype)
                   ? static_cast<double>(static_cast<float>(sum[k]) + static_cast<float>(term[k]))
                   : sum[k] + term[k];
    }
  }
  if (IsFloat(dtype)) return HeapTensor::FromDoubles(type, sum);
  // Words of exact sums have more digits than a double.
  HeapTensor exact = start != nullptr ? start->Clone() : terms[0].Clone();
  auto* const words = static_cast<int64_t*>(exact.data());
  for (size_t i = start != nullptr ? 0 : 1; i < terms.size(); ++i) {
    const auto* const more = static_cast<const int64_t*>(terms[i].data());
    for (int64_t k = 0; k < type.shape.num_elements(); ++k) words[k] += more[k];
  }
  return exact;
}

HeapTensor NoTerm(const TensorType& type) {
  if (!IsFloat(type.dtype)) return Zeros(type);
  return HeapTensor::FromDoubles(type, std::vector<double>(type.shape.num_elements(), -0.0));
}

VirtualMesh::VirtualMesh(const ir::Graph& graph)
    : mesh_(graph.mesh()), is_placed_(IsPlaced(graph)), data_axis_(graph.mesh().FindAxis("data")) {}

int VirtualMesh::DataCoordinate(int rank) const {
  return data_axis_ < 0 || !is_placed_ ? 0 : mesh_.Coordinate(rank, data_axis_);
}

Sbp VirtualMesh::AlongData(const NdSbp& sbp) const {
  return sbp.empty() || data_axis_ < 0 ? Sbp::B() : sbp[data_axis_];
}

int64_t VirtualMesh::MicroBatch(int rank, int64_t micro_step) const {
  return is_placed_ ? micro_step * data_ranks() + DataCoordinate(rank) : micro_step;
}

// Applies f to the parts of the ranks that differ only along `axis`.
template <typename F>
StatusOr<Parts> VirtualMesh::AlongAxis(const Parts& parts, int axis, const F& f) const {
  Parts result(parts.size());
  for (int first = 0; first < num_ranks(); ++first) {
    if (mesh_.Coordinate(first, axis) != 0) continue;
    const std::vector<int> ranks = RanksAlong(first, axis);
    Parts group;
    for (const int rank : ranks) group.push_back(parts[rank]);
    ZG_ASSIGN_OR_RETURN(const Parts changed, f(group));
    for (size_t i = 0; i < ranks.size(); ++i) result[ranks[i]] = changed[i];
  }
  return result;
}

Parts VirtualMesh::Cut(const HeapTensor& logical, const NdSbp& sbp, RandomKey key) const {
  Parts parts(num_ranks(), logical);
  for (size_t axis = 0; axis < sbp.size(); ++axis) {
    parts = *AlongAxis(parts, static_cast<int>(axis), [&](const Parts& group) -> StatusOr<Parts> {
      std::mt19937 random(static_cast<unsigned>(key.stream));  // the same where another axis copies
      return testing::Cut(group[0], sbp[axis], static_cast<int>(group.size()), &random);
    });
  }
  if (sbp.empty()) parts[0] = logical.Clone();
  return parts;
}

// If several axes split one dim, the last one cuts finest: splits are removed from the last axis
// on, and added from the first.
StatusOr<Parts> VirtualMesh::ChangePlacement(Parts parts, const NdSbp& from,
                                             const NdSbp& to) const {
  NdSbp now = from;
  const auto change = [&](size_t axis, Sbp next) -> Status {
    if (now[axis] == next) return Status::Ok();
    ZG_ASSIGN_OR_RETURN(parts, AlongAxis(parts, static_cast<int>(axis), [&](const Parts& group) {
                          return ChangeInGroup(group, now[axis], next);
                        }));
    now[axis] = next;
    return Status::Ok();
  };
  for (size_t axis = to.size(); axis-- > 0;) {
    const bool is_in_the_way = !std::equal(now.begin(), now.begin() + axis, to.begin());
    if (now[axis].is_split() && is_in_the_way) ZG_RETURN_IF_ERROR(change(axis, Sbp::B()));
  }
  for (size_t axis = 0; axis < to.size(); ++axis) ZG_RETURN_IF_ERROR(change(axis, to[axis]));
  return parts;
}

StatusOr<HeapTensor> VirtualMesh::Logical(const ir::Value& value, const Parts& parts) const {
  if (value.sbp.empty()) return parts[0].Clone();
  const StatusOr<Parts> whole = ChangePlacement(parts, value.sbp, AllBroadcast(mesh_));
  if (!whole.ok()) return whole.status().WithContext("%" + value.name);
  for (int rank = 1; rank < num_ranks(); ++rank) {
    if (SameBits((*whole)[rank], (*whole)[0])) continue;
    return InvalidArgument("%{}: rank {} holds another value than rank 0", value.name, rank);
  }
  return (*whole)[0].Clone();
}

StatusOr<Parts> VirtualMesh::PartsAlongData(const ir::Value& value, const Parts& parts) const {
  if (value.sbp.empty() || data_axis_ < 0) return parts;
  NdSbp along_data = AllBroadcast(mesh_);
  along_data[data_axis_] = value.sbp[data_axis_];
  ZG_ASSIGN_OR_RETURN(const Parts whole, ChangePlacement(parts, value.sbp, along_data));
  Parts result;
  for (const int rank : mesh_.RanksAlong(0, {data_axis_})) result.push_back(whole[rank]);
  return result;
}

Status VirtualMesh::CheckSame(const ir::Value& value, const Parts& parts) const {
  for (size_t axis = 0; axis < value.sbp.size(); ++axis) {
    if (!value.sbp[axis].is_broadcast()) continue;
    for (int rank = 0; rank < num_ranks(); ++rank) {
      const int first = RanksAlong(rank, static_cast<int>(axis))[0];
      if (SameBits(parts[rank], parts[first])) continue;
      return InvalidArgument("%{} is broadcast, but ranks {} and {} hold different values",
                             value.name, first, rank);
    }
  }
  return Status::Ok();
}

}  // namespace zg::testing
