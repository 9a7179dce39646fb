#include "framework/kernels/cuda/matmul.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "framework/base/check.h"
#include "framework/kernels/cuda/broadcast_row.h"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/matmul_choice.h"

namespace zg::cuda {
namespace {

constexpr int64_t kGeluRowMultiple = 8;         // elements, of a row of h
constexpr uintptr_t kWorkspaceAlignment = 256;  // required by cuBLASLt; an arena's buffers may have
                                                // less

// One handle for each device, which exists as long as the process.
StatusOr<cublasLtHandle_t> HandleOfCurrentDevice() {
  static std::mutex mutex;
  static auto& handles = *new std::map<int, cublasLtHandle_t>;
  int device = 0;
  ZG_RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "there is no current device"));
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = handles.find(device);
  if (found != handles.end()) return found->second;
  cublasLtHandle_t handle = nullptr;
  ZG_RETURN_IF_ERROR(BlasStatus(cublasLtCreate(&handle), "no handle could be made"));
  handles.emplace(device, handle);
  return handle;
}

// The first address in the workspace that cuBLASLt accepts.
void* AlignWorkspace(void* workspace) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(workspace);
  const uintptr_t aligned =
      (address + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  return reinterpret_cast<void*>(aligned);
}

cudaDataType_t DataType(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

template <typename T>
Status SetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                    const T& value) {
  return BlasStatus(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
                    "an attribute of a product is refused");
}

template <typename T>
Status SetPreference(cublasLtMatmulPreference_t preference,
                     cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  return BlasStatus(
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
      "a preference is refused");
}

// The layout of a dense row-major matrix, which is its transpose in column-major terms.
Status MakeLayout(DType dtype, int64_t rows, int64_t columns, cublasLtMatrixLayout_t* layout) {
  return BlasStatus(cublasLtMatrixLayoutCreate(layout, DataType(dtype), columns, rows, columns),
                    "a layout is refused");
}

struct PreferenceDeleter {
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};

}  // namespace

Status BlasStatus(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return Status::Ok();
  return FailedPrecondition("cuBLASLt: {}: {}", what, cublasLtGetStatusName(status));
}

std::string BlasVersion() { return "cuBLASLt " + std::to_string(cublasLtGetVersion()); }

StatusOr<std::unique_ptr<Matmul>> Matmul::Make(const MatmulShape& shape, GemmChoices* choices) {
  std::unique_ptr<Matmul> matmul(new Matmul(shape));
  if (matmul->is_empty() || shape.depth == 0) return matmul;
  ZG_RETURN_IF_ERROR(matmul->Init(choices));
  if (matmul->aligned_) return matmul;
  return FailedPrecondition("cuBLASLt: no algorithm for a {} product ({}, {}) x ({}, {})",
                            DTypeName(shape.dtype), shape.rows, shape.depth, shape.depth,
                            shape.columns);
}

StatusOr<std::unique_ptr<Matmul>> Matmul::MakeIfKnown(const MatmulShape& shape,
                                                      GemmChoices* choices) {
  std::unique_ptr<Matmul> matmul(new Matmul(shape));
  if (matmul->is_empty() || shape.depth == 0) return std::unique_ptr<Matmul>();
  if (matmul->has_gelu() && shape.columns % kGeluRowMultiple != 0) {
    return std::unique_ptr<Matmul>();
  }
  ZG_RETURN_IF_ERROR(matmul->Init(choices));
  if (!matmul->aligned_) matmul = nullptr;
  return matmul;
}

Matmul::~Matmul() {
  if (c_layout_ != nullptr) cublasLtMatrixLayoutDestroy(c_layout_);
  if (b_layout_ != nullptr) cublasLtMatrixLayoutDestroy(b_layout_);
  if (a_layout_ != nullptr) cublasLtMatrixLayoutDestroy(a_layout_);
  if (description_ != nullptr) cublasLtMatmulDescDestroy(description_);
}

int64_t Matmul::workspace_bytes() const {
  if (workspace_bytes_ == 0) return 0;
  return workspace_bytes_ + static_cast<int64_t>(kWorkspaceAlignment);
}

Status Matmul::Init(GemmChoices* choices) {
  ZG_ASSIGN_OR_RETURN(handle_, HandleOfCurrentDevice());
  const bool is_tf32 = shape_.tf32 && shape_.dtype == DType::kF32;
  const cublasComputeType_t compute = is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  ZG_RETURN_IF_ERROR(BlasStatus(cublasLtMatmulDescCreate(&description_, compute, CUDA_R_32F),
                                "a product is refused"));
  // The first operand of cuBLASLt is b^T.
  const cublasOperation_t first = shape_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = shape_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  ZG_RETURN_IF_ERROR(SetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSA, first));
  ZG_RETURN_IF_ERROR(SetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSB, second));
  ZG_RETURN_IF_ERROR(SetEpilogue());
  const auto make_operand = [&](bool transposed, int64_t rows, int64_t columns,
                                cublasLtMatrixLayout_t* layout) {
    return transposed ? MakeLayout(shape_.dtype, columns, rows, layout)
                      : MakeLayout(shape_.dtype, rows, columns, layout);
  };
  ZG_RETURN_IF_ERROR(make_operand(shape_.transpose_a, shape_.rows, shape_.depth, &a_layout_));
  ZG_RETURN_IF_ERROR(make_operand(shape_.transpose_b, shape_.depth, shape_.columns, &b_layout_));
  ZG_RETURN_IF_ERROR(make_operand(false, shape_.rows, shape_.columns, &c_layout_));
  ZG_ASSIGN_OR_RETURN(aligned_, ChooseAlgorithm(kMatmulAlignment, choices));
  if (has_gelu()) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(unaligned_,
                      ChooseAlgorithm(static_cast<uint32_t>(SizeOf(shape_.dtype)), choices));
  if (!aligned_) aligned_ = unaligned_;
  return Status::Ok();
}

Status Matmul::SetEpilogue() {
  // The bias has as many elements as c^T has rows.
  cublasLtEpilogue_t epilogue =
      shape_.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (shape_.epilogue == MatmulEpilogue::kGelu) {
    epilogue = shape_.has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  } else if (shape_.epilogue == MatmulEpilogue::kGeluGrad) {
    ZG_CHECK(!shape_.has_bias, "the epilogue of a gradient adds no bias");
    epilogue = CUBLASLT_EPILOGUE_DGELU;
  }
  ZG_RETURN_IF_ERROR(SetAttribute(description_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (!has_gelu()) return Status::Ok();
  // h^T is laid out like c^T, and has its type unless another one is set.
  return SetAttribute(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.columns);
}

StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> Matmul::Propose(uint32_t alignment,
                                                                       int most) const {
  cublasLtMatmulPreference_t raw = nullptr;
  ZG_RETURN_IF_ERROR(
      BlasStatus(cublasLtMatmulPreferenceCreate(&raw), "a preference could not be made"));
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, PreferenceDeleter>
      preference(raw);
  const auto workspace_bytes = static_cast<size_t>(kMaxWorkspaceBytes);
  ZG_RETURN_IF_ERROR(SetPreference(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes));
  // Split sums are combined in f32, in the workspace, in one order, or are not split, which the mask
  // always allows. Which scheme the newest algorithms report is not documented; the log shows it at
  // debug (LogAlgorithm). An algorithm that the mask leaves out costs time, not bits.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  ZG_RETURN_IF_ERROR(SetPreference(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    ZG_RETURN_IF_ERROR(SetPreference(raw, attribute, alignment));
  }
  // The other operands have no such preference: the heuristic looks at their addresses, but does
  // not access memory.
  const void* const any_address = reinterpret_cast<const void*>(uintptr_t{256} + alignment);
  ZG_RETURN_IF_ERROR(SetTerms(any_address, any_address));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle_, description_, b_layout_, a_layout_, c_layout_,
                                     c_layout_, raw, most, results.data(), &found);
  // An epilogue that this type or device lacks may be reported as an invalid value.
  const bool is_impossible = has_gelu() && status == CUBLAS_STATUS_INVALID_VALUE;
  if (is_impossible || status == CUBLAS_STATUS_NOT_SUPPORTED) {
    found = 0;
  } else {
    ZG_RETURN_IF_ERROR(BlasStatus(status, "the choice of an algorithm failed"));
  }
  results.resize(static_cast<size_t>(found));
  return results;
}

StatusOr<std::optional<cublasLtMatmulAlgo_t>> Matmul::ChooseAlgorithm(uint32_t alignment,
                                                                      GemmChoices* choices) {
  ZG_ASSIGN_OR_RETURN(const auto proposed, Propose(alignment, 1));
  if (proposed.empty()) return std::optional<cublasLtMatmulAlgo_t>();
  cublasLtMatmulHeuristicResult_t chosen = proposed[0];
  ZG_RETURN_IF_ERROR(BlasStatus(chosen.state, "the algorithm that was chosen cannot be used"));
  const std::string product = ProductText(shape_, alignment);
  if (choices != nullptr) {
    const auto measure = [shape = shape_, alignment](Device& device) {
      return MeasureMatmul(shape, alignment, device);
    };
    if (const GemmChoice* const choice = choices->Find(product, measure); choice != nullptr) {
      ZG_ASSIGN_OR_RETURN(chosen, Restore(product, *choice));
    }
  }
  LogAlgorithm(product, chosen);
  workspace_bytes_ = std::max(workspace_bytes_, static_cast<int64_t>(chosen.workspaceSize));
  return std::optional<cublasLtMatmulAlgo_t>(chosen.algo);
}

StatusOr<cublasLtMatmulHeuristicResult_t> Matmul::Restore(const std::string& product,
                                                          const GemmChoice& choice) const {
  cublasLtMatmulHeuristicResult_t restored = {};
  const std::optional<cublasLtMatmulAlgo_t> algorithm = ParseAlgorithm(choice.algorithm);
  const cublasStatus_t status =
      algorithm ? cublasLtMatmulAlgoCheck(handle_, description_, b_layout_, a_layout_, c_layout_,
                                          c_layout_, &*algorithm, &restored)
                : CUBLAS_STATUS_INVALID_VALUE;
  if (status != CUBLAS_STATUS_SUCCESS) {
    return FailedPrecondition(
        "`gemm_choices`: {}: got the algorithm {}, which {} refuses ({}), expected one of its own; "
        "remove it from the file, and the product is measured again",
        product, choice.algorithm, BlasVersion(), cublasLtGetStatusName(status));
  }
  restored.algo = *algorithm;  // the check does not set it
  return restored;
}

const cublasLtMatmulAlgo_t* Matmul::AlgorithmFor(const Operands& operands) const {
  const void* const bias = shape_.has_bias ? operands.bias : nullptr;
  const void* const addend = shape_.has_addend ? operands.addend : nullptr;
  const void* const h = has_gelu() ? operands.h : nullptr;
  const bool is_aligned = AreAligned(
      kMatmulAlignment, static_cast<const char*>(operands.a), static_cast<const char*>(operands.b),
      static_cast<const char*>(operands.c), static_cast<const char*>(bias),
      static_cast<const char*>(addend), static_cast<const char*>(h));
  const std::optional<cublasLtMatmulAlgo_t>& algorithm = is_aligned ? aligned_ : unaligned_;
  return algorithm ? &*algorithm : nullptr;
}

Status Matmul::RunWithoutTerms(const Operands& operands, void* stream) const {
  return BroadcastRow({shape_.dtype, shape_.rows, shape_.columns}, operands.bias, operands.addend,
                      operands.c, stream);
}

Status Matmul::SetTerms(const void* bias, const void* h) const {
  if (shape_.has_bias) {
    ZG_RETURN_IF_ERROR(SetAttribute(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  }
  if (!has_gelu()) return Status::Ok();
  return SetAttribute(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, h);
}

Status Matmul::Run(const Operands& operands, void* workspace, void* stream) {
  if (is_empty()) return Status::Ok();
  if (shape_.depth == 0) return RunWithoutTerms(operands, stream);
  const cublasLtMatmulAlgo_t* const algorithm = AlgorithmFor(operands);
  if (algorithm == nullptr) {
    return FailedPrecondition(
        "cuBLASLt: no algorithm for a {} product ({}, {}) x ({}, {}) whose operands are not at "
        "multiples of {} bytes",
        DTypeName(shape_.dtype), shape_.rows, shape_.depth, shape_.depth, shape_.columns,
        kMatmulAlignment);
  }
  ZG_ASSIGN_OR_RETURN(const bool has_run, RunBy(*algorithm, operands, AlignWorkspace(workspace),
                                                workspace_bytes_, stream));
  return BlasStatus(has_run ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED,
                    "a product failed");
}

StatusOr<bool> Matmul::RunBy(const cublasLtMatmulAlgo_t& algorithm, const Operands& operands,
                             void* workspace, int64_t workspace_bytes, void* stream) const {
  ZG_RETURN_IF_ERROR(SetTerms(operands.bias, operands.h));
  const float one = 1.0f;
  const float addend_factor = shape_.has_addend ? 1.0f : 0.0f;
  const void* const addend = shape_.has_addend ? operands.addend : operands.c;
  const cublasStatus_t status = cublasLtMatmul(
      handle_, description_, &one, operands.b, b_layout_, operands.a, a_layout_, &addend_factor,
      addend, c_layout_, operands.c, c_layout_, &algorithm, workspace,
      static_cast<size_t>(workspace_bytes), static_cast<cudaStream_t>(stream));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  ZG_RETURN_IF_ERROR(BlasStatus(status, "a product failed"));
  return true;
}

}  // namespace zg::cuda
