#include "framework/kernels/cpu/half_grad_weight.h"

#include <algorithm>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/indexed_product.h"

namespace zg {
namespace {

// Elements of the windows that are copied at once: they stay in the second-level cache, also packed.
constexpr int64_t kWindowElements = int64_t{1} << 18;

}  // namespace

HalfGradWeight::HalfGradWeight(const ConvShape& shape, const WeightRange& range, DType dtype)
    : shape_(shape), range_(range), method_(*HalfMethod(dtype)), windows_(ForwardWindows(shape)) {
  const int64_t pixels = shape.out_pixels();
  samples_ = std::max<int64_t>(1, std::min(shape.batch, kHalfDepth / pixels));
  depth_ = std::min(kHalfDepth, samples_ * pixels);
  block_channels_ =
      std::clamp<int64_t>(kWindowElements / (shape.taps() * depth_), 1, range.channels());
  const WindowPhase& phase = windows_.phases[0];
  rows_ = phase.RowsOf(range.channels(), plane());
  columns_ = phase.ColumnsOf(samples_, range.channels() * plane());
  run_ = RunOf(columns_, pixels);
  const int64_t num_blocks = CeilDiv(range.channels(), block_channels_);
  layout_.dy = AlignedFloats(FloatsOfHalves(samples_ * range.channels() * plane()));
  layout_.windows = layout_.dy + AlignedFloats(FloatsOfHalves(shape.outputs * samples_ * pixels));
  layout_.packed_dy = layout_.windows + AlignedFloats(FloatsOfHalves(columns() * depth_));
  layout_.packed_windows =
      layout_.packed_dy + AlignedFloats(method_.PackedASize(shape.outputs, depth_));
  layout_.sums = layout_.packed_windows + AlignedFloats(method_.PackedBSize(columns(), depth_));
  layout_.end = layout_.sums + num_blocks * sums_of_block();
}

void HalfGradWeight::CopySamples(const BFloat16* x, int64_t first, int64_t samples, int64_t group,
                                 BFloat16* copies) const {
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t image =
        ((first + i) * shape_.groups + group) * shape_.channels + range_.first_channel;
    PadHalfPlanes(windows_.plane, x + image * shape_.in_pixels(), range_.channels(),
                  copies + i * range_.channels() * plane());
  }
}

StoredBlock HalfGradWeight::RowsOfDy(const BFloat16* dy, int64_t first, int64_t samples,
                                     int64_t group, BFloat16* copy) const {
  const int64_t pixels = shape_.out_pixels();
  StoredBlock rows = {copy, samples * pixels, true, shape_.outputs, 0};
  for (int64_t i = 0; i < samples; ++i) {
    const BFloat16* const from =
        dy + ((first + i) * shape_.groups + group) * shape_.outputs * pixels;
    if (samples == 1) {
      rows.data = from;
      return rows;
    }
    for (int64_t row = 0; row < shape_.outputs; ++row) {
      std::copy_n(from + row * pixels, pixels, copy + (row * samples + i) * pixels);
    }
  }
  return rows;
}

void HalfGradWeight::Store(const float* sums, int64_t group, BFloat16* dw) const {
  const int64_t taps = shape_.taps();
  for (int64_t first = 0; first < range_.channels(); first += block_channels_) {
    const int64_t channels = std::min(block_channels_, range_.channels() - first);
    for (int64_t row = 0; row < shape_.outputs; ++row) {
      const int64_t at =
          (group * shape_.outputs + row) * shape_.channels + range_.first_channel + first;
      ConvertFloats(DType::kF32, sums + row * sum_stride(), DType::kBF16, dw + at * taps,
                    channels * taps);
    }
    sums += sums_of_block();
  }
}

void HalfGradWeight::Run(const void* dy, const void* x, void* dw, void* workspace) const {
  const GemmScope scope(method_);
  auto* const scratch = static_cast<float*>(workspace);
  auto* const copies = reinterpret_cast<BFloat16*>(scratch);
  auto* const windows = reinterpret_cast<BFloat16*>(scratch + layout_.windows);
  const int64_t taps = shape_.taps();
  for (int64_t group = range_.first_group; group < range_.end_group; ++group) {
    for (int64_t first = 0; first < shape_.batch; first += samples_) {
      const int64_t samples = std::min(samples_, shape_.batch - first);
      const int64_t pixels = samples * shape_.out_pixels();
      CopySamples(static_cast<const BFloat16*>(x), first, samples, group, copies);
      StoredBlock rows = RowsOfDy(static_cast<const BFloat16*>(dy), first, samples, group,
                                  reinterpret_cast<BFloat16*>(scratch + layout_.dy));
      for (int64_t begin = 0; begin < pixels; begin += depth_) {
        BlockProduct product;
        product.depth = rows.depth = std::min(depth_, pixels - begin);
        method_.pack_a(rows, scratch + layout_.packed_dy);
        rows.data = static_cast<const BFloat16*>(rows.data) + product.depth;
        product.a = scratch + layout_.packed_dy;
        product.b = scratch + layout_.packed_windows;
        product.rows = shape_.outputs;
        product.c = scratch + layout_.sums;
        product.c_stride = sum_stride();
        product.continues = first > 0 || begin > 0;
        for (int64_t channel = 0; channel < range_.channels(); channel += block_channels_) {
          product.columns = std::min(block_channels_, range_.channels() - channel) * taps;
          const IndexedMatrix<BFloat16> matrix = {copies, rows_.data() + channel * taps,
                                                  columns_.data() + begin, run_};
          CopyIndexed(matrix, product.columns, product.depth, product.depth, windows);
          method_.pack_b({windows, product.depth, true, product.columns, product.depth},
                         scratch + layout_.packed_windows);
          method_.multiply(product);
          product.c += sums_of_block();
        }
      }
    }
    Store(scratch + layout_.sums, group, static_cast<BFloat16*>(dw));
  }
}

}  // namespace zg
