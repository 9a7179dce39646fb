#include "framework/kernels/cpu/recurrent_layer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {
namespace {

// With fewer elements weight is multiplied as it lies: to pack it takes as long as some products.
constexpr int64_t kStepsToPack = 4;

// The bytes of CarriedRows.
struct CarriedBytes {
  CarriedBytes(const RecurrenceCall& call, int64_t samples)
      : state(WholeLines(samples * call.hidden * SizeOf(call.dtype))),
        products(WholeLines(samples * call.gates * call.hidden * SizeOf(call.dtype))),
        cells(WholeLines(samples * call.hidden * static_cast<int64_t>(sizeof(float)))) {}

  int64_t sum() const { return products + 2 * state + cells; }

  int64_t state;
  int64_t products;
  int64_t cells;
};

}  // namespace

RecurrenceKernel::RecurrenceKernel(const KernelSpec& spec, bool is_gradient)
    : call_(spec.call), element_bytes_(SizeOf(call_.dtype)) {
  GemmSizes sizes;
  sizes.n = is_gradient ? call_.hidden : columns();
  sizes.k = is_gradient ? columns() : call_.hidden;
  sizes.transpose_b = !is_gradient;
  sizes.packed_b = call_.steps >= kStepsToPack;
  sizes.dtype = call_.dtype;
  const int num_ranges = NumSharingProduct(spec.threads, call_.samples, 1,
                                           call_.samples * call_.steps * sizes.n * sizes.k);
  for (int i = 0; i < num_ranges; ++i) {
    const int64_t begin = RangeBegin(call_.samples, 1, num_ranges, i);
    sizes.m = RangeBegin(call_.samples, 1, num_ranges, i + 1) - begin;
    ranges_.push_back({begin, sizes.m, Gemm(sizes)});
    if (sizes.packed_b) weight_bytes_ = WholeLines(ranges_[i].product.packed_b_bytes());
    range_bytes_ = std::max(range_bytes_, CarriedBytes(call_, sizes.m).sum() +
                                              WholeLines(ranges_[i].product.workspace_bytes()));
  }
}

Status RecurrenceKernel::Run(const KernelArguments& arguments) {
  GemmOperand weight = {arguments.inputs[1], call_.hidden};
  if (weight_bytes_ > 0) {
    ranges_[0].product.PackB(weight, arguments.workspace);
    weight = {arguments.workspace, 0};
  }
  const auto run = [&](int64_t i, int) {
    const Range& range = ranges_[i];
    const CarriedBytes bytes(call_, range.samples);
    char* next = static_cast<char*>(arguments.workspace) + weight_bytes_ + i * range_bytes_;
    CarriedRows carried;
    carried.products = std::exchange(next, next + bytes.products);
    carried.state = std::exchange(next, next + bytes.state);
    carried.direct = std::exchange(next, next + bytes.state);
    carried.cells = reinterpret_cast<float*>(std::exchange(next, next + bytes.cells));
    RunRange(arguments, range, weight, carried, next);
  };
  const int64_t num_ranges = static_cast<int64_t>(ranges_.size());
  if (arguments.threads != nullptr) {
    arguments.threads->Run(num_ranges, run);
  } else {
    for (int64_t i = 0; i < num_ranges; ++i) run(i, 0);
  }
  return Status::Ok();
}

RecurrentLayer::RecurrentLayer(const KernelSpec& spec)
    : RecurrenceKernel(spec, /*is_gradient=*/false), num_inputs_(spec.call.inputs.size()) {}

void RecurrentLayer::RunRange(const KernelArguments& arguments, const Range& range,
                              GemmOperand weight, const CarriedRows& carried, void* scratch) const {
  if (const char* const cells = First<char>(arguments, 4)) {
    ConvertFloats(call_.dtype, cells + range.begin * row_bytes(), DType::kF32, carried.cells,
                  range.samples * call_.hidden);
  } else {
    std::fill_n(carried.cells, range.samples * call_.hidden, 0.0f);
  }
  std::memset(carried.state, 0, row_bytes());
  for (int64_t i = 0; i < call_.steps; ++i) {
    range.product.Run(StatesAt(arguments, range, StepBefore(i), carried), weight,
                      arguments.inputs[2], carried.products, columns(), scratch);
    for (int64_t row = 0; row < range.samples; ++row) {
      RunRow(arguments, range.begin + row, call_.StepAt(i), StepBefore(i),
             {carried.products + row * call_.gates * row_bytes(), nullptr, nullptr,
              carried.cells + row * call_.hidden});
    }
  }
}

GemmOperand RecurrentLayer::StatesAt(const KernelArguments& arguments, const Range& range,
                                     int64_t t, const CarriedRows& carried) const {
  if (t >= 0) {
    return {arguments.output<char>(0) + At(range.begin, t) * element_bytes_,
            call_.steps * call_.hidden};
  }
  const char* const first = First<char>(arguments, 3);
  if (first == nullptr) return {carried.state, 0};
  return {first + range.begin * row_bytes(), call_.hidden};
}

RecurrentGradient::RecurrentGradient(const KernelSpec& spec, int products_output)
    : RecurrenceKernel(spec, /*is_gradient=*/true),
      products_output_(products_output),
      has_cells_(static_cast<int>(spec.outputs.size()) > products_output + 2) {}

void RecurrentGradient::RunRange(const KernelArguments& arguments, const Range& range,
                                 GemmOperand weight, const CarriedRows& carried,
                                 void* scratch) const {
  const int64_t elements = range.samples * call_.hidden;
  std::memset(carried.state, 0, range.samples * row_bytes());
  std::fill_n(carried.cells, elements, 0.0f);
  const char* const products = arguments.output<char>(products_output_);
  for (int64_t i = call_.steps - 1; i >= 0; --i) {
    for (int64_t row = 0; row < range.samples; ++row) {
      RunRow(arguments, range.begin + row, call_.StepAt(i), StepBefore(i),
             {nullptr, carried.state + row * row_bytes(), carried.direct + row * row_bytes(),
              carried.cells + row * call_.hidden});
    }
    const int64_t begin = At(range.begin, call_.StepAt(i), call_.gates) * element_bytes_;
    range.product.Run({products + begin, call_.steps * columns()}, weight,
                      {nullptr, products_output_ > 0 ? carried.direct : nullptr}, carried.state,
                      call_.hidden, scratch);
  }
  std::memcpy(arguments.output<char>(products_output_ + 1) + range.begin * row_bytes(),
              carried.state, range.samples * row_bytes());
  if (!has_cells_) return;
  ConvertFloats(DType::kF32, carried.cells, call_.dtype,
                arguments.output<char>(products_output_ + 2) + range.begin * row_bytes(), elements);
}

}  // namespace zg
