#include "framework/state/tensor_state.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "framework/base/check.h"
#include "framework/base/random.h"
#include "framework/io/float_values.h"
#include "framework/io/sha256.h"
#include "framework/io/weights.h"
#include "framework/runtime/non_finite.h"
#include "framework/state/gather_tensor.h"
#include "framework/state/initial_values.h"
#include "framework/state/widened_values.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kRoundedChunkElements = int64_t{1} << 14;

// Elements copied at once between a device and the host.
constexpr int64_t kPieceElements = int64_t{1} << 20;

// Writes the elements [begin, end) of a tensor to host memory, rounded to its dtype one chunk at a
// time.
void FillHost(DType dtype, int64_t begin, int64_t end, const FillElements& fill, std::byte* data) {
  if (dtype == DType::kF32) {
    fill(begin, end, reinterpret_cast<float*>(data));
    return;
  }
  std::vector<float> chunk(std::min(end - begin, kRoundedChunkElements));
  for (; begin < end; begin += kRoundedChunkElements) {
    const int64_t count = std::min(kRoundedChunkElements, end - begin);
    fill(begin, begin + count, chunk.data());
    if (dtype == DType::kU8) {
      for (int64_t i = 0; i < count; ++i) data[i] = static_cast<std::byte>(chunk[i]);
      data += count;
      continue;
    }
    WithFloatType(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(data)[i] = FromF32<T>(chunk[i]);
    });
    data += count * SizeOf(dtype);
  }
}

// Writes those of the elements [begin, end) that this rank holds to their place in the arena.
Status WriteElements(Executor& executor, const ir::StoredTensor& tensor, int64_t begin, int64_t end,
                     const FillElements& fill) {
  executor.set_changed();
  ZG_ASSIGN_OR_RETURN(const LocalPart part, executor.LocalPartOf(tensor));
  const LocalElements written = part.Within(begin, end);
  const DType dtype = tensor.type.dtype;
  Device& device = executor.device();
  std::byte* target = part.data + (written.storage_offset - part.storage_offset) * SizeOf(dtype);
  std::vector<std::byte> staged;
  for (int64_t local = 0; local < written.count; local += kPieceElements) {
    const LocalElements piece =
        written.Slice(local, std::min(kPieceElements, written.count - local));
    const int64_t bytes = piece.count * SizeOf(dtype);
    if (!device.is_host()) staged.resize(bytes);
    std::byte* const data = device.is_host() ? target : staged.data();
    piece.ForEachRun([&](int64_t element, int64_t offset, int64_t length) {
      FillHost(dtype, element, element + length, fill, data + offset * SizeOf(dtype));
    });
    if (!device.is_host()) ZG_RETURN_IF_ERROR(device.Write(target, data, bytes));
    target += bytes;
  }
  return Status::Ok();
}

// The problem with the file's tensor of that name; empty if there is none.
std::string Mismatch(const ir::StoredTensor& tensor, const SafetensorsEntry* entry) {
  if (entry == nullptr) return fmt::format("'{}' is missing", tensor.name);
  if (IsFloatValue(entry->dtype) && entry->shape == tensor.type.shape.dims()) return "";
  std::string dtype(SafetensorsDTypeName(entry->dtype));
  std::transform(dtype.begin(), dtype.end(), dtype.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("'{}': got {}{}, expected {}", tensor.name, dtype,
                     Shape(entry->shape).ToString(), tensor.type.ToString());
}

void ReadElements(const TensorInFile& tensor, int64_t begin, int64_t end, float* values) {
  const SafetensorsDType dtype = tensor.entry->dtype;
  if (tensor.is_mapped) return ReadMappedFloatValues(dtype, tensor.data, begin, end, values);
  ReadFloatValues(dtype, tensor.data + begin * (BitsOf(dtype) / 8), end - begin, values);
}

}  // namespace

std::vector<const ir::StoredTensor*> TensorsByName(const ir::Graph& graph, TensorRole role) {
  std::vector<const ir::StoredTensor*> tensors;
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    if (!tensor.copy_of.empty()) continue;
    const bool is_parameter = IsOfModel(ir::RoleOf(*tensor.storage));
    if (is_parameter == (role == TensorRole::kParameter)) tensors.push_back(&tensor);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const ir::StoredTensor* a, const ir::StoredTensor* b) { return a->name < b->name; });
  return tensors;
}

Status InitializeTensors(Executor& executor, uint64_t seed) {
  for (const ir::StoredTensor& tensor : executor.graph().tensors()) {
    ZG_ASSIGN_OR_RETURN(const LocalPart part, executor.LocalPartOf(tensor));
    if (part.count == 0) continue;
    const std::string& name = tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
    const RandomKey key = FoldIn(RandomKey{seed}, name);
    ZG_ASSIGN_OR_RETURN(const InitialValues values,
                        InitialValues::Of(tensor.initializer, name, key, tensor.type.shape));
    ZG_RETURN_IF_ERROR(WriteElements(
        executor, tensor, 0, tensor.type.shape.num_elements(),
        [&](int64_t begin, int64_t end, float* data) { values.Fill(begin, end, data); }));
  }
  return Status::Ok();
}

Status SetElements(Executor& executor, std::string_view name, int64_t begin, int64_t end,
                   const FillElements& fill) {
  for (const ir::StoredTensor& tensor : executor.graph().tensors()) {
    if (tensor.name != name && tensor.copy_of != name) continue;
    ZG_RETURN_IF_ERROR(WriteElements(executor, tensor, begin, end, fill));
  }
  return Status::Ok();
}

Status ReadLocalElements(const Executor& executor, const ir::StoredTensor& tensor, int64_t local,
                         int64_t count, const ByteSink& sink) {
  ZG_ASSIGN_OR_RETURN(const LocalPart part, executor.LocalPartOf(tensor));
  ZG_CHECK(0 <= local && local + count <= part.count,
           "{}: [{}, {}) of the {} elements on this rank", tensor.name, local, local + count,
           part.count);
  const int64_t element_bytes = SizeOf(tensor.type.dtype);
  const std::byte* const data = part.data + local * element_bytes;
  const int64_t bytes = count * element_bytes;
  const int64_t piece_bytes = executor.device().is_host() ? bytes : kPieceElements * element_bytes;
  std::vector<std::byte> scratch;
  for (int64_t offset = 0; offset < bytes; offset += piece_bytes) {
    const int64_t size = std::min(piece_bytes, bytes - offset);
    ZG_ASSIGN_OR_RETURN(const std::byte* const piece,
                        executor.device().Read(data + offset, size, &scratch));
    ZG_RETURN_IF_ERROR(sink(offset, piece, size));
  }
  return Status::Ok();
}

Status ReadLocalValues(const Executor& executor, const ir::StoredTensor& tensor, int64_t local,
                       int64_t count, const ByteSink& sink) {
  if (tensor.type.dtype == DType::kF32) {
    return ReadLocalElements(executor, tensor, local, count, sink);
  }
  const DType dtype = tensor.type.dtype;
  const int64_t element_bytes = SizeOf(dtype);
  return ReadLocalElements(
      executor, tensor, local, count,
      [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) -> Status {
        const int64_t first = static_cast<int64_t>(offset_bytes) / element_bytes;
        const int64_t end = first + static_cast<int64_t>(size_bytes) / element_bytes;
        for (int64_t begin = first; begin < end; begin += kRoundedChunkElements) {
          const std::vector<float> values =
              WidenedValues(dtype, data + (begin - first) * element_bytes,
                            std::min(kRoundedChunkElements, end - begin));
          ZG_RETURN_IF_ERROR(sink(begin * sizeof(float),
                                  reinterpret_cast<const std::byte*>(values.data()),
                                  values.size() * sizeof(float)));
        }
        return Status::Ok();
      });
}

Status LoadTensors(Executor& executor, const std::string& path,
                   const std::vector<TensorRole>& roles, const TensorsInFile& tensors,
                   const std::vector<ScopePattern>& may_lack) {
  std::vector<std::string> problems;
  bool has_others = false;  // tensors that the model lacks
  std::set<std::string> known;
  for (const TensorRole role : roles) {
    for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
      const auto found = tensors.find(tensor->name);
      if (found == tensors.end() && MatchesAny(may_lack, tensor->name)) continue;
      known.insert(tensor->name);
      const std::string problem =
          Mismatch(*tensor, found == tensors.end() ? nullptr : found->second.entry);
      if (!problem.empty()) problems.push_back(problem);
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) == 0) {
      has_others = true;
      problems.push_back(fmt::format("'{}' is not a {} of the model", name,
                                     roles.size() == 1 ? "parameter" : "parameter or state"));
    }
  }
  if (!problems.empty()) {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(problems.size(), kShown); ++i) text += "\n  " + problems[i];
    if (problems.size() > kShown) text += fmt::format("\n  and {} more", problems.size() - kShown);
    return InvalidArgument(
        "{}: {} tensors do not fit the model:{}\n  hint: write the file from a model of this size{}",
        path, problems.size(), text,
        has_others && roles.size() == 1 ? ", or name what else it has (load_parameters, may_skip)"
                                        : "");
  }
  for (const std::string& name : known) {
    const TensorInFile& tensor = tensors.find(name)->second;
    ZG_RETURN_IF_ERROR(SetElements(executor, name, 0, Shape(tensor.entry->shape).num_elements(),
                                   [&](int64_t begin, int64_t end, float* values) {
                                     ReadElements(tensor, begin, end, values);
                                   }));
  }
  return Status::Ok();
}

// PyTorch's BatchNorm counts its batches, which only a momentum of None reads.
bool IsBatchCount(const std::string& name) {
  constexpr std::string_view kName = "num_batches_tracked";
  return name.size() >= kName.size() &&
         name.compare(name.size() - kName.size(), kName.size(), kName) == 0;
}

Status LoadParameters(Executor& executor, const std::string& path,
                      const std::vector<ScopePattern>& may_lack,
                      const std::vector<ScopePattern>& may_skip) {
  ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(path));
  TensorsInFile tensors;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (tensor.is_optimizer_state || IsBatchCount(name) || MatchesAny(may_skip, name)) continue;
    tensors[name] = {tensor.entry, tensor.data, /*is_mapped=*/true};
  }
  return LoadTensors(executor, path, {TensorRole::kParameter}, tensors, may_lack);
}

Status CheckFiniteTensors(const Executor& executor) {
  for (const ir::StoredTensor& tensor : executor.graph().tensors()) {
    const DType dtype = tensor.type.dtype;
    ZG_ASSIGN_OR_RETURN(const LocalPart part, executor.LocalPartOf(tensor));
    ZG_RETURN_IF_ERROR(ReadLocalElements(
        executor, tensor, 0, part.count,
        [&](uint64_t offset_bytes, const std::byte* data, size_t size_bytes) {
          const auto found =
              FirstNonFinite(dtype, data, static_cast<int64_t>(size_bytes) / SizeOf(dtype));
          if (!found) return Status::Ok();
          const int64_t element =
              part.ElementAt(static_cast<int64_t>(offset_bytes) / SizeOf(dtype) + *found);
          return InvalidArgument(
              "'{}' is {} at element {} before the first step; expected finite values", tensor.name,
              ElementText(dtype, data, *found), element);
        }));
  }
  return Status::Ok();
}

StatusOr<TensorDigest> DigestTensors(Executor& executor, TensorRole role) {
  Sha256 sha256;
  TensorDigest digest;
  for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    ZG_RETURN_IF_ERROR(ForEachChunk(executor, *tensor, "gather tensor for its digest",
                                    [&](int64_t, const float* values, int64_t count) {
                                      if (executor.communicator().rank() != 0) return;
                                      sha256.Update(values, count * sizeof(float));
                                      for (int64_t i = 0; i < count; ++i) digest.sum += values[i];
                                    }));
  }
  digest.sha256 = sha256.HexDigest();
  return digest;
}

}  // namespace zg
