#include "framework/runtime/tensor_state.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "framework/base/random.h"
#include "framework/io/safetensors.h"
#include "framework/io/sha256.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kDigestChunkElements = int64_t{1} << 20;

constexpr int64_t kRoundedChunkElements = int64_t{1} << 14;

// Between a device and the host.
constexpr int64_t kPieceElements = int64_t{1} << 20;

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

// Writes elements of the rank's part, in host memory: `fill(begin, end, data)` gives their f32
// values. Rounds them to the tensor's dtype, a chunk at a time.
template <typename Fill>
void FillPart(const StoredTensor& tensor, const Executor::LocalPart& part, const Fill& fill) {
  if (tensor.type.dtype == DType::kF32) {
    fill(part.begin, part.begin + part.count, reinterpret_cast<float*>(part.data));
    return;
  }
  std::vector<float> chunk(std::min(part.count, kRoundedChunkElements));
  for (int64_t begin = 0; begin < part.count; begin += kRoundedChunkElements) {
    const int64_t end = std::min(begin + kRoundedChunkElements, part.count);
    fill(part.begin + begin, part.begin + end, chunk.data());
    WithFloatType(tensor.type.dtype, [&](auto zero) {
      using T = decltype(zero);
      auto* const data = reinterpret_cast<T*>(part.data);
      for (int64_t i = begin; i < end; ++i) data[i] = FromF32<T>(chunk[i - begin]);
    });
  }
}

// The same where the executor has its arena.
template <typename Fill>
Status WritePart(Device& device, const StoredTensor& tensor, const Executor::LocalPart& part,
                 const Fill& fill) {
  if (device.is_host()) {
    FillPart(tensor, part, fill);
    return Status::Ok();
  }
  const int64_t element_bytes = SizeOf(tensor.type.dtype);
  std::vector<std::byte> host(std::min(part.count, kPieceElements) * element_bytes);
  for (int64_t begin = 0; begin < part.count; begin += kPieceElements) {
    const int64_t count = std::min(kPieceElements, part.count - begin);
    FillPart(tensor, {part.begin + begin, count, host.data()}, fill);
    ZG_RETURN_IF_ERROR(
        device.Write(part.data + begin * element_bytes, host.data(), count * element_bytes));
  }
  return Status::Ok();
}

// What is wrong with the file's tensor of that name; empty when it fits.
std::string Mismatch(const StoredTensor& tensor, const SafetensorsEntry* entry) {
  if (entry == nullptr) return fmt::format("'{}' is missing", tensor.name);
  const Shape shape(entry->shape);
  if (entry->dtype == SafetensorsDType::kF32 && shape == tensor.type.shape) return "";
  return fmt::format("'{}': got {}{}, expected {}", tensor.name,
                     entry->dtype == SafetensorsDType::kF32 ? "f32" : "another dtype than F32, ",
                     shape.ToString(), tensor.type.ToString());
}

// Elements [begin, end) of one tensor from all ranks that hold a part of them, on every rank.
StatusOr<std::vector<float>> GatherRange(Executor& executor, const StoredTensor& tensor,
                                         int64_t begin, int64_t end) {
  const Executor::LocalPart part = executor.LocalPartOf(tensor);
  const int64_t local_begin = std::max(begin, part.begin);
  const int64_t local_end = std::min(end, part.begin + part.count);
  std::string mine;
  if (local_end > local_begin) {
    constexpr int64_t kFloatBytes = sizeof(float);
    const int64_t bytes = (local_end - local_begin) * kFloatBytes;
    std::vector<std::byte> scratch;
    ZG_ASSIGN_OR_RETURN(const std::byte* const values,
                        executor.device().Read(part.data + (local_begin - part.begin) * kFloatBytes,
                                               bytes, &scratch));
    mine.assign(reinterpret_cast<const char*>(values), bytes);
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                      executor.communicator().Exchange("gather tensor for its digest", mine));
  std::vector<float> values(end - begin);
  char* target = reinterpret_cast<char*>(values.data());
  for (const std::string& bytes : parts) {  // shards follow each other in rank order
    std::memcpy(target, bytes.data(), bytes.size());
    target += bytes.size();
  }
  ZG_CHECK(target == reinterpret_cast<char*>(values.data() + values.size()),
           "the shards of {} do not add up", tensor.name);
  return values;
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

Status InitializeTensors(Executor& executor, uint64_t seed) {
  for (const StoredTensor& tensor : executor.graph().tensors()) {
    const Executor::LocalPart part = executor.LocalPartOf(tensor);
    if (part.count == 0) continue;
    const std::string& name = tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
    const RandomKey key = FoldIn(RandomKey{seed}, name);
    const auto fill = [&](int64_t begin, int64_t end, float* data) {
      FillInitial(tensor.initializer, key, begin, end, data);
    };
    ZG_RETURN_IF_ERROR(WritePart(executor.device(), tensor, part, fill));
  }
  return Status::Ok();
}

Status ReadLocalPart(const Executor& executor, const StoredTensor& tensor, const ByteSink& sink) {
  const Executor::LocalPart part = executor.LocalPartOf(tensor);
  if (part.count == 0) return Status::Ok();
  const int64_t bytes = part.count * SizeOf(tensor.type.dtype);
  if (executor.device().is_host()) return sink(0, part.data, bytes);
  const int64_t piece_bytes = kPieceElements * SizeOf(tensor.type.dtype);
  std::vector<std::byte> scratch;
  for (int64_t begin = 0; begin < bytes; begin += piece_bytes) {
    const int64_t count = std::min(piece_bytes, bytes - begin);
    ZG_ASSIGN_OR_RETURN(const std::byte* const piece,
                        executor.device().Read(part.data + begin, count, &scratch));
    ZG_RETURN_IF_ERROR(sink(begin, piece, count));
  }
  return Status::Ok();
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
  for (const StoredTensor& tensor : executor.graph().tensors()) {
    const std::string& name = tensor.copy_of.empty() ? tensor.name : tensor.copy_of;
    const Executor::LocalPart part = executor.LocalPartOf(tensor);
    if (known.count(name) == 0 || part.count == 0) continue;
    const uint8_t* values = tensors.find(name)->second.data;
    const auto copy = [&](int64_t begin, int64_t end, float* data) {
      std::memcpy(data, values + begin * sizeof(float), (end - begin) * sizeof(float));
    };
    ZG_RETURN_IF_ERROR(WritePart(executor.device(), tensor, part, copy));
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

StatusOr<TensorDigest> DigestTensors(Executor& executor, TensorRole role) {
  Sha256 sha256;
  TensorDigest digest;
  for (const StoredTensor* tensor : TensorsByName(executor.graph(), role)) {
    const int64_t elements = tensor->type.shape.num_elements();
    const Executor::LocalPart part = executor.LocalPartOf(*tensor);
    const bool whole = executor.graph().LocalType(*tensor->storage) == tensor->storage->type;
    for (int64_t begin = 0; begin < elements; begin += kDigestChunkElements) {
      const int64_t end = std::min(elements, begin + kDigestChunkElements);
      std::vector<float> gathered;
      const float* values = nullptr;
      if (!whole) {
        ZG_ASSIGN_OR_RETURN(gathered, GatherRange(executor, *tensor, begin, end));
        values = gathered.data();
      }
      if (executor.communicator().rank() != 0) continue;
      std::vector<std::byte> scratch;
      if (whole) {
        const int64_t float_bytes = sizeof(float);
        ZG_ASSIGN_OR_RETURN(const std::byte* const bytes,
                            executor.device().Read(part.data + begin * float_bytes,
                                                   (end - begin) * float_bytes, &scratch));
        values = reinterpret_cast<const float*>(bytes);
      }
      sha256.Update(values, (end - begin) * sizeof(float));
      for (int64_t i = 0; i < end - begin; ++i) digest.sum += values[i];
    }
  }
  digest.sha256 = sha256.HexDigest();
  return digest;
}

}  // namespace zg
