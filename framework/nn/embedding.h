// Embedding: looks up rows of a table. ids (...) i64 in [0, rows), weight (rows, channels),
// result (..., channels).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/nn/functions.h"
#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct EmbeddingOptions {
  EmbeddingOptions(double std = 1.0) : std(std) {}  // NOLINT: what most set

  double std;  // standard deviation of the initial values
  // The row of this id begins with zeros and gets no gradient from here, as in PyTorch.
  std::optional<int64_t> padding_idx;
};

class Embedding : public Module {
 public:
  Embedding(const Module* parent, const std::string& name, int64_t rows, int64_t channels,
            const EmbeddingOptions& options = {});

  // Error: padding_idx is not a row of the table.
  Var forward(Var ids) override;

  Parameter weight;

 private:
  std::optional<int64_t> padding_idx_;
};

// The sum, mean or largest element of the rows of several ids: (..., n) -> (..., channels). Ids that are
// padding_idx do not take part, so that bags of fewer than n ids are filled up with it; a bag of none
// gives zeros.
enum class BagMode { kSum, kMean, kMax };

class EmbeddingBag : public Module {
 public:
  EmbeddingBag(const Module* parent, const std::string& name, int64_t rows, int64_t channels,
               BagMode mode = BagMode::kMean, const EmbeddingOptions& options = {});

  Var forward(Var ids) override { return forward(ids, Var()); }
  // Each row is multiplied with its weight (..., n) first; not with kMean and kMax, as in PyTorch.
  Var forward(Var ids, Var weights);
  Var operator()(Var ids) { return Module::operator()(ids); }
  Var operator()(Var ids, Var weights);

  Parameter weight;

 private:
  BagMode mode_;
  std::optional<int64_t> padding_idx_;
};

}  // namespace zg::nn
