// MuonCall: the work of a node of muon_update (framework/ops/muon_update.cc), for the kernels of
// all devices. The host knows where its matrices are: each is the work of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/kernels/kernel.h"
#include "framework/kernels/math/muon_math.h"
#include "framework/ops/factored_shapes.h"

namespace zg {

struct MuonMatrix {
  int64_t part = 0;   // of the bucket
  int64_t begin = 0;  // in that part
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t size() const { return rows * columns; }
  int64_t side() const { return std::min(rows, columns); }  // of its Gram matrix
};

struct MuonCall {
  DType gradient_dtype = DType::kF32;
  int64_t num_elements = 0;  // in a part
  bool has_control = false;
  int64_t num_steps = 0;
  MuonOptions options = {};
  std::vector<MuonMatrix> matrices;  // of all parts

  // Error: a part ends inside a matrix.
  static StatusOr<MuonCall> Of(const KernelSpec& spec) {
    const ir::Attributes& attributes = spec.call.attributes;
    MuonCall call;
    call.gradient_dtype = spec.call.inputs[1].dtype;
    call.num_elements = spec.outputs[0].shape.num_elements();
    call.has_control = spec.call.inputs.size() == 4;
    call.num_steps = attributes.Int("steps");
    call.options = {attributes.Float("lr"),
                    attributes.Float("weight_decay"),
                    static_cast<float>(1.0 - attributes.Float("momentum")),
                    attributes.Bool("nesterov"),
                    attributes.Bool("match_rms_adamw"),
                    static_cast<float>(attributes.Float("epsilon")),
                    static_cast<float>(attributes.Float("a")),
                    static_cast<float>(attributes.Float("b")),
                    static_cast<float>(attributes.Float("c"))};
    const Shape& shape = spec.outputs[0].shape;
    for (const FactoredTensor& matrix : FactoredTensorsOf(attributes, shape).tensors) {
      if (matrix.size() == 0) continue;
      const int64_t part = matrix.begin / call.num_elements;
      if ((matrix.begin + matrix.size() - 1) / call.num_elements != part) {
        return InvalidArgument(
            "muon_update: a matrix of {} x {} at {} lies in several parts of {} elements, expected "
            "each in one; make buckets with the pass bucketing for these ranks",
            matrix.rows, matrix.columns, matrix.begin, call.num_elements);
      }
      call.matrices.push_back(
          {part, matrix.begin - part * call.num_elements, matrix.rows, matrix.columns});
    }
    return call;
  }
};

}  // namespace zg
