#include "framework/state/tensor_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "framework/comm/communicator.h"
#include "framework/state/gather_tensor.h"

namespace zg {
namespace {

// Elements exchanged at once: every rank holds them several times.
constexpr int64_t kChunkElements = int64_t{1} << 17;

Status CheckRank(const Executor& executor, const char* what, int rank) {
  const int size = executor.communicator().size();
  if (rank >= 0 && rank < size) return Status::Ok();
  return InvalidArgument("{}: got rank {}, expected one of 0 to {}", what, rank, size - 1);
}

LocalElements AllElements(const Shape& shape) {
  LocalElements all;
  all.count = shape.num_elements();
  return all;
}

// "elements 0 to 12", or, for a part in runs, its number of elements and the first one.
std::string Describe(const LocalElements& elements) {
  if (!elements.is_range()) {
    return fmt::format("{} elements from {} on in runs of {}, one every {}", elements.count,
                       elements.begin, elements.run, elements.stride);
  }
  return fmt::format("elements {} to {}", elements.begin, elements.begin + elements.count);
}

bool Contains(const LocalElements& all, const LocalElements& needed) {
  bool contains = true;
  needed.ForEachRun([&](int64_t element, int64_t, int64_t length) {
    contains = contains && all.Within(element, element + length).count == length;
  });
  return contains;
}

// The problem with a tensor's values; empty if they have the elements `needed`.
std::string Problem(const ir::StoredTensor& tensor, const TensorValues& got,
                    const LocalElements& needed) {
  if (got.shape != tensor.type.shape) {
    return fmt::format("'{}': got shape {}, expected {}", tensor.name, got.shape.ToString(),
                       tensor.type.shape.ToString());
  }
  if (static_cast<int64_t>(got.values.size()) != got.elements.count) {
    return fmt::format("'{}': got {} values for {} elements", tensor.name, got.values.size(),
                       got.elements.count);
  }
  if (Contains(got.elements, needed)) return "";
  return fmt::format("'{}': got {}, expected {}", tensor.name, Describe(got.elements),
                     Describe(needed));
}

Status CheckValues(const Executor& executor, TensorRole role, const NamedValues& values,
                   bool is_whole, const std::vector<ScopePattern>& may_lack = {}) {
  std::string problems;
  std::set<std::string_view> known;
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    known.insert(tensor->name);
    const auto found = values.find(tensor->name);
    if (found == values.end() && MatchesAny(may_lack, tensor->name)) continue;
    LocalElements needed = AllElements(tensor->type.shape);
    if (!is_whole) {
      ZG_ASSIGN_OR_RETURN(needed, executor.LocalPartOf(*tensor));
    }
    const std::string problem = found == values.end() ? fmt::format("'{}' is missing", tensor->name)
                                                      : Problem(*tensor, found->second, needed);
    if (!problem.empty()) problems += "\n  " + problem;
  }
  for (const auto& [name, tensor] : values) {
    if (known.count(name) == 0) problems += fmt::format("\n  '{}' is not known", name);
  }
  if (problems.empty()) return Status::Ok();
  return InvalidArgument(
      "the tensors do not fit this rank's:{}\n  hint: {}", problems,
      is_whole ? "give the whole tensors, as they were consolidated, or say what may be "
                 "missing (may_lack)"
               : "give this rank's own tensors, or whole ones");
}

}  // namespace

TensorValues WholeTensor(const Shape& shape, std::vector<float> values) {
  return {shape, AllElements(shape), std::move(values)};
}

StatusOr<NamedValues> ConsolidateTensors(Executor& executor, TensorRole role, int to) {
  ZG_RETURN_IF_ERROR(CheckRank(executor, "consolidate", to));
  const bool is_target = executor.communicator().rank() == to;
  NamedValues whole;
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    std::vector<float> values;
    if (is_target) values.reserve(tensor->type.shape.num_elements());
    ZG_RETURN_IF_ERROR(ForEachChunk(executor, *tensor, "consolidate tensor",
                                    [&](int64_t, const float* chunk, int64_t count) {
                                      if (!is_target) return;
                                      values.insert(values.end(), chunk, chunk + count);
                                    }));
    if (is_target) whole[tensor->name] = WholeTensor(tensor->type.shape, std::move(values));
  }
  return whole;
}

Status ScatterTensors(Executor& executor, TensorRole role, const NamedValues& whole, int from,
                      const std::vector<ScopePattern>& may_lack) {
  ZG_RETURN_IF_ERROR(CheckRank(executor, "scatter", from));
  Communicator& communicator = executor.communicator();
  const bool is_source = communicator.rank() == from;
  ZG_RETURN_IF_ERROR(ExchangeStatus(
      communicator, "scatter",
      is_source ? CheckValues(executor, role, whole, /*is_whole=*/true, may_lack) : Status::Ok()));
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    const int64_t elements = tensor->type.shape.num_elements();
    for (int64_t begin = 0; begin < elements; begin += kChunkElements) {
      const int64_t end = std::min(elements, begin + kChunkElements);
      const auto given = is_source ? whole.find(tensor->name) : whole.end();
      std::string mine;
      if (given != whole.end()) {
        const float* values = given->second.values.data() + begin;
        mine.assign(reinterpret_cast<const char*>(values), (end - begin) * sizeof(float));
      }
      ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          communicator.Exchange("scatter tensor", mine));
      if (all[from].empty()) break;  // the rank has no values for it
      const auto* chunk = reinterpret_cast<const uint8_t*>(all[from].data());
      ZG_RETURN_IF_ERROR(SetElements(executor, tensor->name, begin, end,
                                     [&](int64_t first, int64_t last, float* values) {
                                       std::memcpy(values, chunk + (first - begin) * sizeof(float),
                                                   (last - first) * sizeof(float));
                                     }));
    }
  }
  return Status::Ok();
}

StatusOr<NamedValues> LocalTensors(const Executor& executor, TensorRole role) {
  NamedValues local;
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    ZG_ASSIGN_OR_RETURN(const LocalPart part, executor.LocalPartOf(*tensor));
    TensorValues values = {tensor->type.shape, part, std::vector<float>(part.count)};
    auto* const bytes = reinterpret_cast<std::byte*>(values.values.data());
    ZG_RETURN_IF_ERROR(
        ReadLocalValues(executor, *tensor, 0, part.count,
                        [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) {
                          std::memcpy(bytes + offset_bytes, data, size_bytes);
                          return Status::Ok();
                        }));
    local[tensor->name] = std::move(values);
  }
  return local;
}

Status SetLocalTensors(Executor& executor, TensorRole role, const NamedValues& values) {
  ZG_RETURN_IF_ERROR(ExchangeStatus(executor.communicator(), "set tensors",
                                    CheckValues(executor, role, values, /*is_whole=*/false)));
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    const TensorValues& given = values.find(tensor->name)->second;
    const auto copy = [&](int64_t first, int64_t last, float* target) {
      const LocalElements range = given.elements.Within(first, last);
      const auto* const from =
          given.values.data() + (range.storage_offset - given.elements.storage_offset);
      std::copy_n(from, last - first, target);
    };
    Status status;
    ZG_ASSIGN_OR_RETURN(const LocalElements local, executor.LocalPartOf(*tensor));
    local.ForEachRun([&](int64_t element, int64_t, int64_t length) {
      if (status.ok())
        status = SetElements(executor, tensor->name, element, element + length, copy);
    });
    ZG_RETURN_IF_ERROR(status);
  }
  return Status::Ok();
}

}  // namespace zg
