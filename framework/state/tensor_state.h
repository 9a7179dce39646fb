// Sets and reads the logical tensors of a running graph, whatever their placement: initial values,
// values from a file, digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/safetensors_header.h"
#include "framework/ir/graph.h"
#include "framework/ir/scope_pattern.h"
#include "framework/runtime/executor.h"
#include "framework/state/name_in_file.h"

namespace zg {

// The role of a stored tensor for the user. Copies of parameters in another dtype have none.
enum class TensorRole { kParameter, kOptimizerState };

// The tensors of a role in name order, in f32: for parameters that the model reads in 16 bits these
// are the masters. A graph that does not train has no masters.
std::vector<const ir::StoredTensor*> TensorsByName(const ir::Graph& graph, TensorRole role);

// Sets every stored tensor to the values of its initializer. Element i of a tensor depends only on
// (seed, tensor name, i), so every stage and number of ranks starts from the same bits.
Status InitializeTensors(Executor& executor, uint64_t seed);

// Computes the values of a tensor's elements [begin, end).
using FillElements = std::function<void(int64_t begin, int64_t end, float* values)>;

// Sets those of the elements [begin, end) of the f32 tensor `name`, and of its rounded copies, that
// this rank holds.
Status SetElements(Executor& executor, std::string_view name, int64_t begin, int64_t end,
                   const FillElements& fill);

// Passes the bytes of `count` elements of a tensor on this rank, from index `local` on, to `sink`,
// in order, in one or more pieces; each is valid only during its call. Stops at the first error of
// `sink`.
using ByteSink =
    std::function<Status(uint64_t offset_bytes, const std::byte* data, size_t size_bytes)>;
Status ReadLocalElements(const Executor& executor, const ir::StoredTensor& tensor, int64_t local,
                         int64_t count, const ByteSink& sink);

// The same with the values widened to f32.
Status ReadLocalValues(const Executor& executor, const ir::StoredTensor& tensor, int64_t local,
                       int64_t count, const ByteSink& sink);

// A tensor in a file, by its name there.
struct TensorInFile {
  const SafetensorsEntry* entry = nullptr;
  const uint8_t* data = nullptr;
  bool is_mapped = false;  // a MappedFile's
};
using TensorsInFile = std::map<std::string, TensorInFile, std::less<>>;

// Sets the tensors of these roles, and their rounded copies. Each rank reads only its part, piece
// by piece, so that it needs no memory for the whole. Errors, all in one message that begins with
// `path`: a tensor that is missing, has another shape or is not floating-point; one that the graph
// does not have.
Status LoadTensors(Executor& executor, const std::string& path,
                   const std::vector<TensorRole>& roles, const TensorsInFile& tensors,
                   const std::vector<ScopePattern>& may_lack = {},
                   const NameInFile& name_in_file = nullptr);

// Reads the parameters from files that Weights::Open takes, in F32, F16 or BF16, whose values f32
// holds exactly; each rank reads only its part. Errors like LoadTensors. Tensors of the files that
// `may_skip` names are not read, nor are those named num_batches_tracked.
Status LoadParameters(Executor& executor, const std::string& path,
                      const std::vector<ScopePattern>& may_lack = {},
                      const std::vector<ScopePattern>& may_skip = {},
                      const NameInFile& name_in_file = nullptr);

// Checks that the stored tensors, parameters and state, are finite on this rank. The error names
// the first that is not.
Status CheckFiniteTensors(const Executor& executor);

// The digest of all tensors of one role, in name order, each as a whole.
struct TensorDigest {
  std::string sha256;  // of their bytes
  double sum = 0.0;    // of their elements, added in that order
};

// Every rank must call this; the result is valid on rank 0.
StatusOr<TensorDigest> DigestTensors(Executor& executor, TensorRole role);

}  // namespace zg
