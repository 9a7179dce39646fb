#include "framework/runtime/tensor_state.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "framework/base/check.h"
#include "framework/base/random.h"
#include "framework/io/float_values.h"
#include "framework/io/safetensors.h"
#include "framework/io/sha256.h"
#include "framework/runtime/gather_tensor.h"
#include "framework/runtime/non_finite.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kRoundedChunkElements = int64_t{1} << 14;

// Elements [begin, end) of the initializer's values.
void FillInitial(const Initializer& initializer, RandomKey key, uint64_t begin, uint64_t end,
                 float* data) {
  const float scale = static_cast<float>(initializer.scale);
  switch (initializer.kind) {
    case Initializer::Kind::kZeros:
      std::fill_n(data, end - begin, 0.0f);
      return;
    case Initializer::Kind::kOnes:
      std::fill_n(data, end - begin, 1.0f);
      return;
    case Initializer::Kind::kNormal:
      FillNormal(key, begin, end, 0.0f, scale, data);
      return;
    case Initializer::Kind::kUniform:
      FillUniform(key, begin, end, -scale, scale, data);
      return;
  }
}

// Writes the elements [begin, end) of the rank's part, rounded to the tensor's dtype a chunk at a
// time.
void WriteElements(const StoredTensor& tensor, const Executor::LocalPart& part, int64_t begin,
                   int64_t end, const FillElements& fill) {
  if (begin >= end) return;
  if (tensor.type.dtype == DType::kF32) {
    fill(begin, end, reinterpret_cast<float*>(part.data) + (begin - part.begin));
    return;
  }
  std::vector<float> chunk(std::min(end - begin, kRoundedChunkElements));
  for (; begin < end; begin += kRoundedChunkElements) {
    const int64_t count = std::min(kRoundedChunkElements, end - begin);
    fill(begin, begin + count, chunk.data());
    WithFloatType(tensor.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      auto* const data = reinterpret_cast<T*>(part.data) + (begin - part.begin);
      for (int64_t i = 0; i < count; ++i) data[i] = FromF32<T>(chunk[i]);
    });
  }
}

// What is wrong with the file's tensor of that name; empty when it fits.
std::string Mismatch(const StoredTensor& tensor, const SafetensorsEntry* entry) {
  if (entry == nullptr) return fmt::format("'{}' is missing", tensor.name);
  if (IsFloatValue(entry->dtype) && entry->shape == tensor.type.shape.dims()) return "";
  std::string dtype(SafetensorsDTypeName(entry->dtype));
  std::transform(dtype.begin(), dtype.end(), dtype.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("'{}': got {}{}, expected {}", tensor.name, dtype,
                     Shape(entry->shape).ToString(), tensor.type.ToString());
}

}  // namespace

std::vector<const StoredTensor*> TensorsByName(const Graph& graph, TensorRole role) {
  std::set<std::string_view> copied;
  for (const StoredTensor& tensor : graph.tensors()) copied.insert(tensor.copy_of);
  std::vector<const StoredTensor*> tensors;
  for (const StoredTensor& tensor : graph.tensors()) {
    if (!tensor.copy_of.empty()) continue;
    const bool is_parameter = tensor.storage->category == MemoryCategory::kParameters ||
                              copied.count(tensor.name) != 0;  // the master of a 16-bit copy
    if (is_parameter == (role == TensorRole::kParameter)) tensors.push_back(&tensor);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor* a, const StoredTensor* b) { return a->name < b->name; });
  return tensors;
}

void InitializeTensors(Executor& executor, uint64_t seed) {
  for (const StoredTensor& tensor : executor.graph().tensors()) {
    const Executor::LocalPart part = executor.LocalPartOf(tensor);
    if (part.count == 0) continue;
    const std::string& name = tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
    const RandomKey key = FoldIn(RandomKey{seed}, name);
    WriteElements(tensor, part, part.begin, part.begin + part.count,
                  [&](int64_t begin, int64_t end, float* data) {
                    FillInitial(tensor.initializer, key, begin, end, data);
                  });
  }
}

void SetElements(Executor& executor, std::string_view name, int64_t begin, int64_t end,
                 const FillElements& fill) {
  for (const StoredTensor& tensor : executor.graph().tensors()) {
    if (tensor.name != name && tensor.copy_of != name) continue;
    const Executor::LocalPart part = executor.LocalPartOf(tensor);
    WriteElements(tensor, part, std::max(begin, part.begin), std::min(end, part.begin + part.count),
                  fill);
  }
}

Status ReadLocalElements(const Executor& executor, const StoredTensor& tensor, int64_t begin,
                         int64_t count, const ByteSink& sink) {
  const Executor::LocalPart part = executor.LocalPartOf(tensor);
  ZG_CHECK(part.begin <= begin && begin + count <= part.begin + part.count,
           "{}: elements [{}, {}) are not on this rank", tensor.name, begin, begin + count);
  const int64_t element_bytes = SizeOf(tensor.type.dtype);
  return sink(0, part.data + (begin - part.begin) * element_bytes, count * element_bytes);
}

Status LoadTensors(Executor& executor, const std::string& path,
                   const std::vector<TensorRole>& roles, const TensorsInFile& tensors) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const TensorRole role : roles) {
    for (const StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
      known.insert(tensor->name);
      const auto found = tensors.find(tensor->name);
      const std::string problem =
          Mismatch(*tensor, found == tensors.end() ? nullptr : found->second.entry);
      if (!problem.empty()) problems.push_back(problem);
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) == 0) {
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
        "{}: {} tensors do not fit the model:{}\n  hint: write the file from a model of this size",
        path, problems.size(), text);
  }
  for (const std::string& name : known) {
    const TensorInFile& tensor = tensors.find(name)->second;
    const int64_t element_bytes = BitsOf(tensor.entry->dtype) / 8;
    SetElements(executor, name, 0, Shape(tensor.entry->shape).num_elements(),
                [&](int64_t begin, int64_t end, float* values) {
                  ReadFloatValues(tensor.entry->dtype, tensor.data + begin * element_bytes,
                                  end - begin, values);
                });
  }
  return Status::Ok();
}

Status LoadParameters(Executor& executor, const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  TensorsInFile tensors;
  for (const SafetensorsEntry& entry : file.entries()) {
    tensors[entry.name] = {&entry, file.Data(entry)};
  }
  return LoadTensors(executor, path, {TensorRole::kParameter}, tensors);
}

Status CheckFiniteTensors(const Executor& executor) {
  for (const StoredTensor& tensor : executor.graph().tensors()) {
    const Executor::LocalPart part = executor.LocalPartOf(tensor);
    const auto found = FirstNonFinite(tensor.type.dtype, part.data, part.count);
    if (!found) continue;
    return InvalidArgument("'{}' is {} at element {} before the first step; expected finite values",
                           tensor.name, ElementText(tensor.type.dtype, part.data, *found),
                           part.begin + *found);
  }
  return Status::Ok();
}

StatusOr<TensorDigest> DigestTensors(Executor& executor, TensorRole role) {
  Sha256 sha256;
  TensorDigest digest;
  for (const StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
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
