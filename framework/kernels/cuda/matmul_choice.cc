#include "framework/kernels/cuda/matmul_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/gemm_log.h"
#include "framework/tensor/half.h"

namespace zg::cuda {
namespace {

constexpr int kMostCandidates = 16;
constexpr int kRounds = 9;  // timed rounds; a candidate's median counts
// Candidates that take so many times as long as the fastest in the first round are not timed again.
constexpr float kHopeless = 1.25f;
// The library's own first proposal stays unless another one takes less than this part of its time:
// differences below are noise, and a choice of algorithms is a choice of bits.
constexpr float kWorthwhile = 0.98f;
constexpr int64_t kNoiseElements = int64_t{1} << 16;

struct EventDeleter {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;

StatusOr<Event> MakeEvent() {
  cudaEvent_t event = nullptr;
  ZG_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&event), "an event could not be made"));
  return Event(event);
}

// Random numbers from -1 to 1, because the power that a product takes, and so its time, depends on
// the values.
std::vector<std::byte> Noise(DType dtype) {
  std::vector<std::byte> bytes(static_cast<size_t>(kNoiseElements * SizeOf(dtype)));
  std::minstd_rand random(1);
  const auto fill = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < kNoiseElements; ++i) {
      const auto position = static_cast<float>(random()) / static_cast<float>(random.max());
      const T value = FromF32<T>(2 * position - 1);
      std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    }
  };
  if (dtype == DType::kBF16) {
    fill(BFloat16());
  } else if (dtype == DType::kF16) {
    fill(Float16());
  } else {
    fill(0.0f);
  }
  return bytes;
}

// The operands of a product. Aligned ones are at the beginning of allocations, as most operands of a
// step are at multiples of 256 bytes: on an H100, 16 bytes further on an algorithm took up to 1.7
// times as long. Others are at multiples of exactly `alignment`.
class Scratch {
 public:
  Scratch(Device* device, DType dtype, uint32_t alignment)
      : device_(*device), element_bytes_(SizeOf(dtype)), noise_(Noise(dtype)) {
    offset_ = alignment < kMatmulAlignment ? alignment : 0;
  }

  // Allocates this many elements of noise; never null.
  StatusOr<void*> Make(int64_t elements) {
    if (elements == 0) return static_cast<void*>(nullptr);
    const int64_t bytes = elements * element_bytes_;
    ZG_ASSIGN_OR_RETURN(DeviceBytes memory, device_.Allocate(offset_ + bytes));
    std::byte* const operand = memory.get() + offset_;
    memory_.push_back(std::move(memory));
    int64_t filled = std::min<int64_t>(bytes, noise_.size());
    ZG_RETURN_IF_ERROR(device_.CopyIn(operand, noise_.data(), filled));
    while (filled < bytes) {
      const int64_t next = std::min(filled, bytes - filled);
      ZG_RETURN_IF_ERROR(device_.Copy(operand + filled, operand, next));
      filled += next;
    }
    return static_cast<void*>(operand);
  }

 private:
  Device& device_;
  const int64_t element_bytes_;
  const std::vector<std::byte> noise_;
  int64_t offset_ = 0;
  std::vector<DeviceBytes> memory_;
};

struct Candidate {
  cublasLtMatmulAlgo_t algorithm;
  bool is_first = false;  // what the library proposes first
  std::vector<float> ms = {};

  float Median() const {
    std::vector<float> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};
bool IsFaster(const Candidate& a, const Candidate& b) { return a.Median() < b.Median(); }

// The proposals that can run, in their order.
StatusOr<std::vector<Candidate>> RunOnce(const Matmul& matmul, uint32_t alignment,
                                         const Matmul::Operands& operands, void* workspace,
                                         void* stream) {
  ZG_ASSIGN_OR_RETURN(const auto proposals, matmul.Propose(alignment, kMostCandidates));
  std::vector<Candidate> candidates;
  for (const cublasLtMatmulHeuristicResult_t& proposal : proposals) {
    if (proposal.state != CUBLAS_STATUS_SUCCESS) continue;
    ZG_ASSIGN_OR_RETURN(const bool has_run, matmul.RunBy(proposal.algo, operands, workspace,
                                                         kMaxWorkspaceBytes, stream));
    if (has_run) candidates.push_back({proposal.algo, candidates.empty()});
  }
  return candidates;
}

// Runs the calls one after the other without a pause, so that the time of the host does not count.
// One more comes before the first, which would have an idle device to itself.
Status TimeOnce(const Matmul& matmul, const Matmul::Operands& operands, void* workspace,
                const std::vector<Event>& events, Device& device,
                std::vector<Candidate>* candidates) {
  const auto run = [&](const Candidate& candidate) {
    return matmul
        .RunBy(candidate.algorithm, operands, workspace, kMaxWorkspaceBytes, device.stream())
        .status();
  };
  const auto record = [&](size_t i) {
    return CudaStatus(cudaEventRecord(events[i].get(), static_cast<cudaStream_t>(device.stream())),
                      "an event could not be recorded");
  };
  ZG_RETURN_IF_ERROR(run(candidates->back()));
  ZG_RETURN_IF_ERROR(record(0));
  for (size_t i = 0; i < candidates->size(); ++i) {
    ZG_RETURN_IF_ERROR(run((*candidates)[i]));
    ZG_RETURN_IF_ERROR(record(i + 1));
  }
  ZG_RETURN_IF_ERROR(device.Synchronize());
  for (size_t i = 0; i < candidates->size(); ++i) {
    float ms = 0;
    ZG_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, events[i].get(), events[i + 1].get()),
                                  "a time could not be read"));
    (*candidates)[i].ms.push_back(ms);
  }
  return Status::Ok();
}

void DropHopeless(std::vector<Candidate>* candidates) {
  const float fastest =
      std::min_element(candidates->begin(), candidates->end(), IsFaster)->Median();
  candidates->erase(std::remove_if(candidates->begin(), candidates->end(),
                                   [&](const Candidate& candidate) {
                                     return !candidate.is_first &&
                                            candidate.Median() > kHopeless * fastest;
                                   }),
                    candidates->end());
}

// An attribute of type T; -1 if cuBLASLt does not tell it.
template <typename T>
int64_t Configured(const cublasLtMatmulAlgo_t& algorithm,
                   cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value = {};
  size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? static_cast<int64_t>(value) : -1;
}

}  // namespace

std::string ProductText(const MatmulShape& shape, uint32_t alignment) {
  const auto operand = [](bool transposed, int64_t rows, int64_t columns) {
    return transposed ? fmt::format("({}, {})^T", columns, rows)
                      : fmt::format("({}, {})", rows, columns);
  };
  std::string text = fmt::format("{} {} x {}", shape.tf32 ? "tf32" : DTypeName(shape.dtype),
                                 operand(shape.transpose_a, shape.rows, shape.depth),
                                 operand(shape.transpose_b, shape.depth, shape.columns));
  if (shape.has_bias) text += " + bias";
  if (shape.has_addend) text += " + addend";
  if (shape.epilogue == MatmulEpilogue::kGelu) text += ", gelu";
  if (shape.epilogue == MatmulEpilogue::kGeluGrad) text += ", gelu's gradient";
  return text + fmt::format(", at multiples of {} bytes", alignment);
}

std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<cublasLtMatmulAlgo_t> ParseAlgorithm(std::string_view text) {
  cublasLtMatmulAlgo_t algorithm = {};
  constexpr size_t kDigits = 16;
  if (text.size() != kDigits * std::size(algorithm.data)) return std::nullopt;
  for (uint64_t& word : algorithm.data) {
    for (const char digit : text.substr(0, kDigits)) {
      const size_t value = std::string_view("0123456789abcdef").find(digit);
      if (value == std::string_view::npos) return std::nullopt;
      word = word << 4 | value;
    }
    text.remove_prefix(kDigits);
  }
  return algorithm;
}

std::string ConfigurationText(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format(
      "algorithm {}, tile {}, stages {}, split-K {}, reduction scheme {}, cluster {}",
      Configured<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      Configured<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
      Configured<uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

void LogAlgorithm(const std::string& product, const cublasLtMatmulHeuristicResult_t& chosen) {
  if (!LogsGemms()) return;
  LogGemm(fmt::format("product {}: {}, {} bytes of workspace", product,
                      ConfigurationText(chosen.algo), chosen.workspaceSize));
}

StatusOr<GemmChoice> MeasureMatmul(const MatmulShape& shape, uint32_t alignment, Device& device) {
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Matmul> matmul,
                      Matmul::MakeIfKnown(shape, /*choices=*/nullptr));
  Scratch scratch(&device, shape.dtype, alignment);
  const bool has_h = shape.epilogue != MatmulEpilogue::kNone;
  const int64_t elements = shape.rows * shape.columns;
  Matmul::Operands operands = {};
  ZG_ASSIGN_OR_RETURN(operands.a, scratch.Make(shape.rows * shape.depth));
  ZG_ASSIGN_OR_RETURN(operands.b, scratch.Make(shape.depth * shape.columns));
  ZG_ASSIGN_OR_RETURN(operands.bias, scratch.Make(shape.has_bias ? shape.columns : 0));
  ZG_ASSIGN_OR_RETURN(operands.c, scratch.Make(elements));
  ZG_ASSIGN_OR_RETURN(operands.h, scratch.Make(has_h ? elements : 0));
  ZG_ASSIGN_OR_RETURN(operands.addend, scratch.Make(shape.has_addend ? elements : 0));
  ZG_ASSIGN_OR_RETURN(const DeviceBytes workspace, device.Allocate(kMaxWorkspaceBytes));

  ZG_ASSIGN_OR_RETURN(std::vector<Candidate> candidates,
                      RunOnce(*matmul, alignment, operands, workspace.get(), device.stream()));
  if (candidates.empty()) {
    return FailedPrecondition("{}: none of the algorithms that cuBLASLt proposes can run",
                              ProductText(shape, alignment));
  }
  std::vector<Event> events;
  while (events.size() <= candidates.size()) {
    ZG_ASSIGN_OR_RETURN(Event event, MakeEvent());
    events.push_back(std::move(event));
  }
  for (int round = 0; round < kRounds; ++round) {
    ZG_RETURN_IF_ERROR(TimeOnce(*matmul, operands, workspace.get(), events, device, &candidates));
    if (round == 0) DropHopeless(&candidates);
    // In the next round each has another place.
    std::rotate(candidates.begin(), candidates.begin() + 1, candidates.end());
  }
  const auto first = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Candidate& candidate) { return candidate.is_first; });
  auto chosen = std::min_element(candidates.begin(), candidates.end(), IsFaster);
  if (chosen->Median() >= kWorthwhile * first->Median()) chosen = first;
  return GemmChoice{AlgorithmText(chosen->algorithm), 1e3 * chosen->Median(),
                    1e3 * first->Median()};
}

}  // namespace zg::cuda
