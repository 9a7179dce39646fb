// The logical tensors of a running graph, whatever their placement: first values, values from a
// file, digests.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/runtime/executor.h"

namespace zg {

// What a stored tensor is to the user. Copies of parameters in another dtype are neither.
enum class TensorRole { kParameter, kOptimizerState };

// Gives every stored tensor the values of its initializer. Element i of a tensor depends on (seed,
// tensor name, i) only, so every stage and number of ranks starts from the same bits.
void InitializeTensors(Executor& executor, uint64_t seed);

// Reads the parameters from a safetensors file in f32; each rank reads only its part. Errors: a
// parameter that the file lacks or has with another dtype or shape, and tensors that the graph does
// not know; all of them in one message.
Status LoadParameters(Executor& executor, const std::string& path);

struct TensorDigest {
  std::string
      sha256;        // of the bytes of all tensors of one role, in name order, shards put together
  double sum = 0.0;  // of their elements, in that order
};

// Every rank must call this; the result is valid on rank 0.
StatusOr<TensorDigest> DigestTensors(Executor& executor, TensorRole role);

}  // namespace zg
