#include "framework/runtime/tensor_state.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "framework/base/random.h"
#include "framework/io/safetensors.h"
#include "framework/io/sha256.h"

namespace zg {
namespace {

constexpr int64_t kDigestChunkElements = int64_t{1} << 20;

std::vector<const StoredTensor*> TensorsByName(const Graph& graph, MemoryCategory category) {
  std::vector<const StoredTensor*> tensors;
  for (const StoredTensor& tensor : graph.tensors()) {
    if (tensor.storage->category == category) tensors.push_back(&tensor);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor* a, const StoredTensor* b) { return a->name < b->name; });
  return tensors;
}

void Initialize(const StoredTensor& tensor, const Executor::LocalPart& part, uint64_t seed) {
  const RandomKey key = FoldIn(RandomKey{seed}, tensor.name);
  const uint64_t begin = part.begin;
  const uint64_t end = begin + part.count;
  const float scale = static_cast<float>(tensor.initializer.scale);
  switch (tensor.initializer.kind) {
    case Initializer::Kind::kZeros:
      std::fill_n(part.data, part.count, 0.0f);
      return;
    case Initializer::Kind::kOnes:
      std::fill_n(part.data, part.count, 1.0f);
      return;
    case Initializer::Kind::kNormal:
      FillNormal(key, begin, end, 0.0f, scale, part.data);
      return;
    case Initializer::Kind::kUniform:
      FillUniform(key, begin, end, -scale, scale, part.data);
      return;
  }
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
    mine.assign(reinterpret_cast<const char*>(part.data + (local_begin - part.begin)),
                (local_end - local_begin) * sizeof(float));
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

void InitializeTensors(Executor& executor, uint64_t seed) {
  for (const StoredTensor& tensor : executor.graph().tensors()) {
    const Executor::LocalPart part = executor.LocalPartOf(tensor);
    if (part.count > 0) Initialize(tensor, part, seed);
  }
}

Status LoadParameters(Executor& executor, const std::string& path) {
  ZG_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const StoredTensor* tensor : TensorsByName(executor.graph(), MemoryCategory::kParameters)) {
    known.insert(tensor->name);
    const std::string problem = Mismatch(*tensor, file.Find(tensor->name));
    if (!problem.empty()) problems.push_back(problem);
  }
  for (const SafetensorsEntry& entry : file.entries()) {
    if (known.count(entry.name) == 0) {
      problems.push_back(fmt::format("'{}' is not a parameter of the model", entry.name));
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
  for (const StoredTensor* tensor : TensorsByName(executor.graph(), MemoryCategory::kParameters)) {
    const Executor::LocalPart part = executor.LocalPartOf(*tensor);
    if (part.count == 0) continue;
    const uint8_t* data = file.Data(*file.Find(tensor->name));
    std::memcpy(part.data, data + part.begin * sizeof(float), part.count * sizeof(float));
  }
  return Status::Ok();
}

StatusOr<TensorDigest> DigestTensors(Executor& executor, MemoryCategory category) {
  Sha256 sha256;
  TensorDigest digest;
  for (const StoredTensor* tensor : TensorsByName(executor.graph(), category)) {
    const int64_t elements = tensor->type.shape.num_elements();
    const Executor::LocalPart part = executor.LocalPartOf(*tensor);
    const bool whole = executor.graph().LocalType(*tensor->storage) == tensor->storage->type;
    for (int64_t begin = 0; begin < elements; begin += kDigestChunkElements) {
      const int64_t end = std::min(elements, begin + kDigestChunkElements);
      std::vector<float> gathered;
      const float* values = part.data + begin;
      if (!whole) {
        ZG_ASSIGN_OR_RETURN(gathered, GatherRange(executor, *tensor, begin, end));
        values = gathered.data();
      }
      if (executor.communicator().rank() != 0) continue;
      sha256.Update(values, (end - begin) * sizeof(float));
      for (int64_t i = 0; i < end - begin; ++i) digest.sum += values[i];
    }
  }
  digest.sha256 = sha256.HexDigest();
  return digest;
}

}  // namespace zg
