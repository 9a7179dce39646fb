#include "tests/testing/virtual_ranks.h"

#include <cmath>
#include <cstring>

#include "framework/base/check.h"

namespace zg::testing {
namespace {

TensorType WithDim(const TensorType& type, int dim, int64_t size) {
  TensorType result = type;
  result.shape.set_dim(dim, size);
  return result;
}

// The contiguous bytes within one index of all dims before the split one, and within one of its
// groups.
int64_t ChunkBytes(const TensorType& type, Sbp split) {
  int64_t bytes = SizeOf(type.dtype);
  for (int i = split.dim(); i < type.shape.num_dims(); ++i) bytes *= type.shape.dim(i);
  return bytes / split.groups();
}

enum class Direction { kFromWhole, kToWhole };

// Copies between a rank's part and its place in the whole.
void CopySlice(const HeapTensor& whole, const HeapTensor& part, Sbp split, int rank,
               Direction direction) {
  const int64_t whole_chunk = ChunkBytes(whole.type(), split);
  const int64_t part_chunk = ChunkBytes(part.type(), split);
  for (int64_t chunk = 0; chunk * part_chunk < part.type().bytes(); ++chunk) {
    char* const in_whole =
        static_cast<char*>(whole.data()) + chunk * whole_chunk + rank * part_chunk;
    char* const in_part = static_cast<char*>(part.data()) + chunk * part_chunk;
    const bool from_whole = direction == Direction::kFromWhole;
    std::memcpy(from_whole ? in_part : in_whole, from_whole ? in_whole : in_part, part_chunk);
  }
}

std::vector<HeapTensor> RandomTerms(const HeapTensor& whole, int num_ranks, std::mt19937* random) {
  std::uniform_real_distribution<double> distribution(0.5, 1.0);
  std::vector<double> rest = whole.ToDoubles();
  std::vector<HeapTensor> parts;
  for (int rank = 0; rank + 1 < num_ranks; ++rank) {
    std::vector<double> term(rest.size());
    for (size_t i = 0; i < rest.size(); ++i) {
      const double draw = distribution(*random);
      term[i] = IsFloat(whole.type().dtype) ? static_cast<float>(draw)
                                            : std::floor(rest[i] * draw / num_ranks);
      rest[i] -= term[i];
    }
    parts.push_back(HeapTensor::FromDoubles(whole.type(), term));
  }
  parts.push_back(HeapTensor::FromDoubles(whole.type(), rest));
  return parts;
}

}  // namespace

bool Divides(const Shape& shape, Sbp sbp, int num_ranks) {
  return !sbp.is_split() || shape.dim(sbp.dim()) % (sbp.groups() * num_ranks) == 0;
}

std::vector<HeapTensor> Cut(const HeapTensor& whole, Sbp sbp, int num_ranks, std::mt19937* random) {
  ZG_CHECK(Divides(whole.type().shape, sbp, num_ranks), "{} does not divide by {} ranks",
           whole.type().ToString(), num_ranks);
  if (sbp.is_partial()) return RandomTerms(whole, num_ranks, random);
  std::vector<HeapTensor> parts;
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (sbp.is_broadcast()) {
      parts.push_back(whole.Clone());
      continue;
    }
    const int64_t size = whole.type().shape.dim(sbp.dim()) / num_ranks;
    parts.emplace_back(WithDim(whole.type(), sbp.dim(), size));
    CopySlice(whole, parts.back(), sbp, rank, Direction::kFromWhole);
  }
  return parts;
}

StatusOr<HeapTensor> Join(const std::vector<HeapTensor>& parts, Sbp sbp) {
  const TensorType& type = parts[0].type();
  const int num_ranks = static_cast<int>(parts.size());
  if (sbp.is_split()) {
    HeapTensor whole(WithDim(type, sbp.dim(), type.shape.dim(sbp.dim()) * num_ranks));
    for (int rank = 0; rank < num_ranks; ++rank) {
      CopySlice(whole, parts[rank], sbp, rank, Direction::kToWhole);
    }
    return whole;
  }
  if (sbp.is_broadcast()) {
    for (int rank = 1; rank < num_ranks; ++rank) {
      if (!SameBits(parts[rank], parts[0])) {
        return InvalidArgument("broadcast parts {} of ranks 0 and {} differ", type.ToString(),
                               rank);
      }
    }
    return parts[0];
  }
  std::vector<double> sum(type.shape.num_elements(), 0.0);
  for (const HeapTensor& part : parts) {
    const std::vector<double> term = part.ToDoubles();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  }
  return HeapTensor::FromDoubles(type, sum);
}

}  // namespace zg::testing
