// cuBLASLt according to its documentation: column-major products with their epilogues, computed
// directly in f32. It checks the library's requirements for layouts, addresses and workspaces, and
// the caller's duty that operands are in the device's memory and do not overlap.
#include <cublasLt.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda_emulation/cublaslt_product.h"
#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/products.h"
#include "tests/cuda_emulation/streams.h"

struct CublasLtPreference {
  size_t workspace_bytes = 0;
  uint32_t reductions = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of a, b, c, d
};

namespace {

using zg::emulation::Multiply;
using zg::emulation::Order;
using zg::emulation::ProductCall;
using zg::emulation::ProductLibrary;

constexpr uintptr_t kWorkspaceAlignment = 256;
constexpr uintptr_t kAuxAlignment = 16;
constexpr int64_t kAuxRowMultiple = 8;  // elements

std::string& Problem() {
  static auto& problem = *new std::string;
  return problem;
}

cublasStatus_t Refuse(std::string problem) {
  Problem() = std::move(problem);
  return CUBLAS_STATUS_INTERNAL_ERROR;
}

// The words of an algorithm.
struct Algorithm {
  uint32_t alignments[4];  // of a, b, c, d
  uint32_t bias_alignment;
  uint32_t order;  // an Order
  uint64_t workspace_bytes;
  int64_t rows, columns;  // of d in the product for which it was chosen
  uint64_t unused[2];
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

Algorithm WordsOf(const cublasLtMatmulAlgo_t& chosen) {
  Algorithm algorithm;
  std::memcpy(&algorithm, &chosen, sizeof(algorithm));
  return algorithm;
}

uint64_t AlignmentOf(const void* address) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(address);
  return bits == 0 ? 1 : bits & (~bits + 1);
}

int64_t ElementBytes(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

struct Range {
  const char* name;
  const void* memory;
  int64_t bytes;
  bool is_written;
};

Range RangeOf(const char* name, const void* memory, const CublasLtMatrixLayout& layout,
              bool is_written) {
  const int64_t elements = (layout.columns - 1) * layout.stride + layout.rows;
  return {name, memory, elements * ElementBytes(layout.type), is_written};
}

bool Overlap(const Range& a, const Range& b) {
  const char* const a_begin = static_cast<const char*>(a.memory);
  const char* const b_begin = static_cast<const char*>(b.memory);
  return a_begin < b_begin + b.bytes && b_begin < a_begin + a.bytes;
}

cublasStatus_t CheckRanges(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    if (!zg::emulation::IsAllocated(range.memory, static_cast<size_t>(range.bytes))) {
      return Refuse(
          fmt::format("{} ({} bytes) is not within an allocation", range.name, range.bytes));
    }
    for (const Range& other : ranges) {
      if (&range != &other && range.is_written && Overlap(range, other)) {
        return Refuse(fmt::format("{} and {} overlap", range.name, other.name));
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Whether a product of these shapes exists.
cublasStatus_t CheckShapes(const CublasLtMatmulDesc& operation, const CublasLtMatrixLayout& a,
                           const CublasLtMatrixLayout& b, const CublasLtMatrixLayout& c,
                           const CublasLtMatrixLayout& d) {
  const bool is_a_transposed = operation.transpose_a == CUBLAS_OP_T;
  const bool is_b_transposed = operation.transpose_b == CUBLAS_OP_T;
  const int64_t inner = is_a_transposed ? a.rows : a.columns;
  if (inner != (is_b_transposed ? b.columns : b.rows) ||
      d.rows != (is_a_transposed ? a.columns : a.rows) ||
      d.columns != (is_b_transposed ? b.rows : b.columns) || !(c == d)) {
    return Refuse("the shapes of a product do not fit");
  }
  if (a.type != d.type || b.type != d.type) return Refuse("the types of a product differ");
  if (!operation.has_aux()) return CUBLAS_STATUS_SUCCESS;
  if (d.type == CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (operation.aux_stride < d.rows || operation.aux_stride % kAuxRowMultiple != 0) {
    return Refuse(fmt::format("columns of aux {} elements apart", operation.aux_stride));
  }
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t SetValue(T* target, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) {
    return Refuse(fmt::format("an attribute of {} bytes, given {}", sizeof(T), bytes));
  }
  std::memcpy(target, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

namespace zg::emulation {
ProductLibrary& Products() {
  static auto& library = *new ProductLibrary;
  return library;
}
}  // namespace zg::emulation

size_t cublasLtGetVersion() { return zg::emulation::Products().version; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(uintptr_t{1});
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_INTERNAL_ERROR) return Problem().c_str();
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : "CUBLAS_STATUS_NOT_SUPPORTED";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return Refuse("factors that are not f32");
  *operation = new CublasLtMatmulDesc{compute};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete operation;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return SetValue(&operation->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return SetValue(&operation->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return SetValue(&operation->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return SetValue(&operation->aux_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return SetValue(&operation->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return SetValue(&operation->bias, value, bytes);
  }
  return Refuse("an attribute that is not known here");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new CublasLtPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
    return SetValue(&preference->workspace_bytes, value, bytes);
  }
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    return SetValue(&preference->reductions, value, bytes);
  }
  const int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  return SetValue(&preference->alignments[operand], value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  if (rows == 0 || columns == 0 || stride < static_cast<int64_t>(rows)) {
    return Refuse(fmt::format("a layout of {} x {}, {} apart", rows, columns, stride));
  }
  *layout = new CublasLtMatrixLayout{type, static_cast<int64_t>(rows),
                                     static_cast<int64_t>(columns), stride};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

// One for each order, the first of ProductLibrary first. Deep products ask for a workspace, for
// split sums.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* returned) {
  const cublasStatus_t status = CheckShapes(*operation, *a, *b, *c, *d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (requested < 1) return Refuse("no algorithm is asked for");
  Algorithm algorithm = {{}, 1, 0, 0, d->rows, d->columns, {}};
  std::copy(preference->alignments, preference->alignments + 4, algorithm.alignments);
  if (operation->has_bias()) {
    algorithm.bias_alignment =
        static_cast<uint32_t>(std::min<uint64_t>(16, AlignmentOf(operation->bias)));
  }
  const int64_t depth = operation->transpose_a == CUBLAS_OP_T ? a->rows : a->columns;
  const bool is_split = depth >= 64 && preference->reductions != 0;
  const size_t partial = static_cast<size_t>(d->rows * d->columns) * sizeof(float);
  if (is_split) algorithm.workspace_bytes = std::min(partial, preference->workspace_bytes);
  *returned = std::min(requested, zg::emulation::kNumOrders);
  for (int i = 0; i < *returned; ++i) {
    const int first = static_cast<int>(zg::emulation::Products().first);
    algorithm.order = static_cast<uint32_t>((first + i) % zg::emulation::kNumOrders);
    const bool is_usable = static_cast<Order>(algorithm.order) != Order::kUnusable;
    results[i] = {{},
                  algorithm.workspace_bytes,
                  is_usable ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED};
    std::memcpy(&results[i].algo, &algorithm, sizeof(algorithm));
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* chosen,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const cublasStatus_t status = CheckShapes(*operation, *a, *b, *c, *d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const Algorithm algorithm = WordsOf(*chosen);
  if (algorithm.rows != d->rows || algorithm.columns != d->columns ||
      algorithm.order >= static_cast<uint32_t>(zg::emulation::kNumOrders)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  result->workspaceSize = algorithm.workspace_bytes;
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

// The configuration of an algorithm: its order, and whether its sums are split in two.
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* chosen,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
  const Algorithm algorithm = WordsOf(*chosen);
  const bool is_split = algorithm.workspace_bytes > 0;
  const bool is_short = attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  if (bytes != (is_short ? sizeof(uint16_t) : sizeof(uint32_t))) return CUBLAS_STATUS_INVALID_VALUE;
  uint32_t told = 0;
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) told = algorithm.order;
  if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) told = is_split ? 2 : 1;
  if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME && is_split) {
    told = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  }
  std::memcpy(value, &told, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const CublasLtMatmulDesc& op = *operation;
  const cudaDataType type = d_layout->type;
  cublasStatus_t status = CheckShapes(op, *a_layout, *b_layout, *c_layout, *d_layout);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const float c_factor = *static_cast<const float*>(beta);
  const bool has_addend = c_factor != 0.0f;
  if (*static_cast<const float*>(alpha) != 1.0f || (has_addend && c_factor != 1.0f)) {
    return Refuse("factors other than 1, and 1 or 0");
  }
  if (has_addend && op.has_aux()) return Refuse("an addend beside a gelu");
  const Algorithm algorithm = WordsOf(*chosen);
  const auto order = static_cast<Order>(algorithm.order);
  if (order == Order::kUnusable || order == Order::kRefused) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (algorithm.rows != d_layout->rows || algorithm.columns != d_layout->columns) {
    return Refuse("an algorithm that was chosen for another product");
  }
  const void* const operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    if (AlignmentOf(operands[i]) < algorithm.alignments[i]) {
      return Refuse(fmt::format("operand {} is not at a multiple of {} bytes", "abcd"[i],
                                algorithm.alignments[i]));
    }
  }
  std::vector<Range> ranges = {RangeOf("a", a, *a_layout, false), RangeOf("b", b, *b_layout, false),
                               RangeOf("d", d, *d_layout, true)};
  if (has_addend) ranges.push_back(RangeOf("c", c, *c_layout, false));
  if (op.has_bias()) {
    if (AlignmentOf(op.bias) < algorithm.bias_alignment) return Refuse("bias is misaligned");
    ranges.push_back({"bias", op.bias, d_layout->rows * ElementBytes(type), false});
  }
  if (op.has_aux()) {
    if (AlignmentOf(op.aux) < kAuxAlignment) return Refuse("aux is misaligned");
    const CublasLtMatrixLayout layout = {type, d_layout->rows, d_layout->columns, op.aux_stride};
    ranges.push_back(RangeOf("aux", op.aux, layout, op.writes_aux()));
  }
  if (workspace_bytes < algorithm.workspace_bytes) return Refuse("the workspace is too small");
  if (workspace_bytes > 0) {
    if (AlignmentOf(workspace) < kWorkspaceAlignment) return Refuse("workspace is misaligned");
    ranges.push_back({"the workspace", workspace, static_cast<int64_t>(workspace_bytes), true});
  }
  status = CheckRanges(ranges);
  if (status != CUBLAS_STATUS_SUCCESS) return status;

  const ProductCall call = {
      op, *a_layout, *b_layout, *c_layout, *d_layout, order, a, b, has_addend ? c : nullptr, d};
  const double ms = zg::emulation::Products().ms[algorithm.order];
  const auto multiply = [call, workspace, workspace_bytes, ms] {
    if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
    Multiply(call);
    zg::emulation::PassTime(ms);
    return cudaSuccess;
  };
  const cudaError_t queued = zg::emulation::Queue(stream, {multiply});
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : Refuse("the stream has failed");
}
