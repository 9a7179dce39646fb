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
std::string Mismatch(const ir::StoredTensor& tensor, const std::string& name,
                     const SafetensorsEntry* entry) {
  const std::string of = name == tensor.name ? "" : fmt::format(" (of '{}')", tensor.name);
  if (entry == nullptr) return fmt::format("'{}'{} is missing", name, of);
  if (IsFloatValue(entry->dtype) && entry->shape == tensor.type.shape.dims()) return "";
  std::string dtype(SafetensorsDTypeName(entry->dtype));
  std::transform(dtype.begin(), dtype.end(), dtype.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("'{}'{}: got {}{}, expected {}", name, of, dtype,
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

// The first problems of each kind, a line each.
std::string ProblemsText(const std::vector<std::string>& of_model,
                         const std::vector<std::string>& of_file) {
  constexpr size_t kShown = 8;
  const size_t from_file = std::min(of_file.size(), kShown - std::min(of_model.size(), kShown / 2));
  const size_t from_model = std::min(of_model.size(), kShown - from_file);
  std::string text;
  for (size_t i = 0; i < from_model; ++i) text += "\n  " + of_model[i];
  for (size_t i = 0; i < from_file; ++i) text += "\n  " + of_file[i];
  const size_t left = of_model.size() + of_file.size() - from_model - from_file;
  if (left > 0) text += fmt::format("\n  and {} more", left);
  return text;
}

Status LoadTensors(Executor& executor, const std::string& path,
                   const std::vector<TensorRole>& roles, const TensorsInFile& tensors,
                   const std::vector<ScopePattern>& may_lack, const NameInFile& name_in_file) {
  std::vector<std::string> of_model;  // problems with its tensors
  std::map<std::string, const TensorInFile*> of_tensor;
  std::set<std::string> known;
  for (const TensorRole role : roles) {
    for (const ir::StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
      const std::string name = name_in_file ? name_in_file(tensor->name) : tensor->name;
      const auto found = tensors.find(name);
      if (found == tensors.end() && MatchesAny(may_lack, tensor->name)) continue;
      known.insert(name);
      const bool is_there = found != tensors.end();
      of_tensor[tensor->name] = is_there ? &found->second : nullptr;
      const std::string problem = Mismatch(*tensor, name, is_there ? found->second.entry : nullptr);
      if (!problem.empty()) of_model.push_back(problem);
    }
  }
  std::vector<std::string> of_file;  // tensors that the model lacks
  const bool is_of_parameters = roles.size() == 1;
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) != 0) continue;
    of_file.push_back(fmt::format("'{}' is not a {}", name,
                                  is_of_parameters ? "parameter or buffer that the graph uses"
                                                   : "parameter or state of the model"));
  }
  if (!of_model.empty() || !of_file.empty()) {
    std::string hint = "write the file from a model of this size";
    if (is_of_parameters && !of_file.empty()) {
      hint += of_model.empty() ? "" : ", map names (load_parameters, name_in_file)";
      hint += ", or name what else it has (load_parameters, may_skip)";
    }
    return InvalidArgument("{}: {} tensors do not fit the model:{}\n  hint: {}", path,
                           of_model.size() + of_file.size(), ProblemsText(of_model, of_file), hint);
  }
  for (const auto& [name, tensor] : of_tensor) {
    const TensorInFile& in_file = *tensor;
    ZG_RETURN_IF_ERROR(SetElements(executor, name, 0, Shape(in_file.entry->shape).num_elements(),
                                   [&](int64_t begin, int64_t end, float* values) {
                                     ReadElements(in_file, begin, end, values);
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
                      const std::vector<ScopePattern>& may_skip, const NameInFile& name_in_file) {
  ZG_ASSIGN_OR_RETURN(const Weights weights, Weights::Open(path));
  TensorsInFile tensors;
  for (const auto& [name, tensor] : weights.tensors()) {
    if (tensor.is_optimizer_state || IsBatchCount(name) || MatchesAny(may_skip, name)) continue;
    tensors[name] = {tensor.entry, tensor.data, /*is_mapped=*/true};
  }
  return LoadTensors(executor, path, {TensorRole::kParameter}, tensors, may_lack, name_in_file);
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
