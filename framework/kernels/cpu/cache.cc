#include <cstdint>
#include <cstring>
#include <memory>

#include "framework/kernels/cache_call.h"
#include "framework/kernels/cpu/attention.h"
#include "framework/kernels/cpu/attention_head.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/query_heads.h"

namespace zg {
namespace {

Status CheckStart(const char* op, int64_t start, int64_t new_rows, int64_t size) {
  if (start >= 0 && start <= size - new_rows) return Status::Ok();
  return InvalidArgument("{}", StartOutsideCache(op, start, new_rows, size));
}

// cached_rows and keep_rows, which write to a new cache, and write_rows, which writes in place.
template <bool kHasCache>
class WriteRows : public Kernel {
 public:
  explicit WriteRows(const KernelSpec& spec)
      : op_(spec.call.op->name.c_str()), call_(spec, kHasCache) {}

  Status Run(const KernelArguments& arguments) override {
    const char* const rows = arguments.input<char>(call_.rows_input);
    const int64_t* const starts = arguments.input<int64_t>(call_.start_input);
    char* const cache = arguments.output<char>(0);
    const int64_t text_bytes = call_.size * call_.row_bytes;
    const int64_t new_bytes = call_.new_rows * call_.row_bytes;
    if (!kHasCache) std::memset(cache, 0, call_.batch * text_bytes);
    for (int64_t b = 0; b < call_.batch; ++b) {
      const int64_t start = starts[b * call_.start_stride];
      ZG_RETURN_IF_ERROR(CheckStart(op_, start, call_.new_rows, call_.size));
      std::memcpy(cache + b * text_bytes + start * call_.row_bytes, rows + b * new_bytes,
                  new_bytes);
    }
    return Status::Ok();
  }

 private:
  const char* const op_;  // ops outlive kernels
  const CacheCall call_;
};

class MoveTexts : public Kernel {
 public:
  explicit MoveTexts(const KernelSpec& spec) : call_(spec) {}

  int64_t workspace_bytes() const override { return call_.texts * call_.row_bytes; }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const parents = arguments.input<int64_t>(1);
    for (int64_t b = 0; b < call_.texts; ++b) {
      if (parents[b] >= 0 && parents[b] < call_.texts) continue;
      return InvalidArgument("{}", NoSuchParent(parents[b], call_.texts));
    }
    char* const cache = arguments.output<char>(0);
    char* const moved = static_cast<char*>(arguments.workspace);
    const auto row_of = [&](int64_t b, int64_t t) {
      return cache + (b * call_.size + t) * call_.row_bytes;
    };
    for (int64_t t = 0; t < call_.size; ++t) {
      const auto moves = [&](int64_t b) {
        return parents[b] != b && t < arguments.input<int64_t>(2)[b * call_.start_stride];
      };
      for (int64_t b = 0; b < call_.texts; ++b) {
        if (!moves(b)) continue;
        std::memcpy(moved + b * call_.row_bytes, row_of(parents[b], t), call_.row_bytes);
      }
      for (int64_t b = 0; b < call_.texts; ++b) {
        if (!moves(b)) continue;
        std::memcpy(row_of(b, t), moved + b * call_.row_bytes, call_.row_bytes);
      }
    }
    return Status::Ok();
  }

 private:
  const MoveTextsCall call_;
};

// read_rows, and left_rows, which has no cache.
template <bool kHasCache>
class ReadRows : public Kernel {
 public:
  explicit ReadRows(const KernelSpec& spec)
      : batch_(spec.outputs[0].shape.dim(0)),
        row_bytes_(spec.outputs[0].shape.dim(2) * SizeOf(spec.outputs[0].dtype)),
        start_stride_(CacheCall::StartStride(spec.call.inputs[1])) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const starts = arguments.input<int64_t>(1);
    char* const rows = arguments.output<char>(0);
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t at = b * row_bytes_;
      if (kHasCache && starts[b * start_stride_] != 0) {
        std::memcpy(rows + at, arguments.input<char>(0) + at, row_bytes_);
      } else {
        std::memset(rows + at, 0, row_bytes_);
      }
    }
    return Status::Ok();
  }

 private:
  const int64_t batch_;
  const int64_t row_bytes_;
  const int64_t start_stride_;
};

class PositionIds : public Kernel {
 public:
  explicit PositionIds(const KernelSpec& spec)
      : batch_(spec.outputs[0].shape.dim(0)), size_(spec.outputs[0].shape.dim(1)) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const start = arguments.input<int64_t>(0);
    int64_t* const ids = arguments.output<int64_t>(0);
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t i = 0; i < size_; ++i) ids[b * size_ + i] = start[b] + i;
    }
    return Status::Ok();
  }

 private:
  const int64_t batch_;
  const int64_t size_;
};

// The bits of dot_product_attention over the rows of a text: its kernel's blocks also begin at key
// 0, and keys that a query does not see add zeros there.
class CachedAttention : public Kernel {
 public:
  CachedAttention(const KernelSpec& spec, const GemmMethod& method)
      : shape_(LikeAttention(spec.call), /*is_gradient=*/false, method),
        start_input_(static_cast<int>(spec.call.inputs.size()) - 1),
        start_stride_(CacheCall::StartStride(spec.call.inputs.back())),
        num_sharing_(NumSharingHeads(shape_, spec.threads)) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_sharing_, IsOneQuery(shape_) ? ScratchBytes<QueryScratch>(shape_)
                                                           : ScratchBytes<ForwardScratch>(shape_));
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const starts = arguments.input<int64_t>(start_input_);
    for (int64_t b = 0; b < shape_.batch; ++b) {
      ZG_RETURN_IF_ERROR(
          CheckStart("cached_attention", starts[b * start_stride_], shape_.queries, shape_.keys));
    }
    if (IsOneQuery(shape_)) {
      RunQuery(arguments);
    } else {
      RunBlocks(arguments);
    }
    return Status::Ok();
  }

 private:
  void RunQuery(const KernelArguments& arguments) {
    const auto run = [&](int64_t b, int64_t g, const QueryScratch& scratch) {
      const AttentionShape seen = SeenBy(arguments, b);
      const int64_t first = g * shape_.group();
      const QueryHeads queries = {{seen, arguments.inputs[0], seen.q, b, first},
                                  HeadOptions(seen, arguments, b, first).bias,
                                  {seen, arguments.outputs[0], seen.out, b, first},
                                  first};
      RunQueryHeads(seen, arguments, queries, KeysIn(arguments.inputs[1], seen, b, g),
                    KeysIn(arguments.inputs[2], seen, b, g), scratch);
    };
    ForKeyHeads<QueryScratch>(shape_, arguments, num_sharing_, run);
  }

  void RunBlocks(const KernelArguments& arguments) {
    const auto run = [&](int64_t b, int64_t g, const ForwardScratch& scratch) {
      const AttentionShape seen = SeenBy(arguments, b);
      PackKeys(seen, KeysIn(arguments.inputs[1], seen, b, g),
               KeysIn(arguments.inputs[2], seen, b, g), scratch);
      for (int64_t h = g * shape_.group(); h < (g + 1) * shape_.group(); ++h) {
        RunHead(seen, {seen, arguments.inputs[0], seen.q, b, h}, HeadOptions(seen, arguments, b, h),
                scratch, {seen, arguments.outputs[0], seen.out, b, h}, nullptr);
      }
    };
    ForKeyHeads<ForwardScratch>(shape_, arguments, num_sharing_, run);
  }

  // Without the rows after the last query.
  AttentionShape SeenBy(const KernelArguments& arguments, int64_t batch) const {
    AttentionShape seen = shape_;
    seen.keys = arguments.input<int64_t>(start_input_)[batch * start_stride_] + shape_.queries;
    return seen;
  }

  static HeadInput KeysIn(const void* cache, const AttentionShape& seen, int64_t batch,
                          int64_t head) {
    HeadInput keys(seen, cache, seen.k, batch, head);
    keys.positions = seen.keys;
    return keys;
  }

  const AttentionShape shape_;
  const int start_input_;
  const int64_t start_stride_;
  const int num_sharing_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCachedAttention(const KernelSpec& spec, const GemmMethod& method) {
  return std::make_unique<CachedAttention>(spec, method);
}

void RegisterCacheKernels(KernelRegistry& registry) {
  registry.Register("cached_rows", MakeKernel<WriteRows</*kHasCache=*/false>>);
  registry.Register("keep_rows", MakeKernel<WriteRows</*kHasCache=*/false>>);
  registry.Register("write_rows", MakeKernel<WriteRows</*kHasCache=*/true>>);
  registry.Register("move_texts", MakeKernel<MoveTexts>);
  registry.Register("left_rows", MakeKernel<ReadRows</*kHasCache=*/false>>);
  registry.Register("read_rows", MakeKernel<ReadRows</*kHasCache=*/true>>);
  registry.Register("position_ids", MakeKernel<PositionIds>);
}

}  // namespace zg
