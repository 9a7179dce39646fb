#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/transpose.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/linear_recurrence_math.h"

namespace zg {
namespace {

// The most neighbouring recurrences that are computed together: what they hand on stays in the
// second-level cache, and rows are read in long runs.
constexpr int64_t kMostColumns = 8192;

// `size` elements of each of `count` neighbouring recurrences, from the element at the pointers on;
// the next one is `step` further.
struct Path {
  int64_t size;
  int64_t step;
  int64_t count;

  // How far ahead to prefetch: at least a row.
  int64_t Ahead() const { return step * std::max<int64_t>(1, kPrefetchAhead / count); }
};

template <bool kLeaving, typename T>
void Advance(const Path& path, const T* decay, const T* x, float* states, T* h) {
  Multiversion([=, ahead = path.Ahead()]() ZG_VERSION {
    for (int64_t i = 0; i < path.size; ++i) {
      for (int64_t run = 0; run < path.count; run += kPrefetchRun) {
        const int64_t end = std::min(run + kPrefetchRun, path.count);
        PrefetchRow<0>(decay + run + ahead, end - run);
        PrefetchRow<0>(x + run + ahead, end - run);
        PrefetchRow<1>(h + run + ahead, end - run);
        ZG_INDEPENDENT
        for (int64_t k = run; k < end; ++k) {
          float state = states[k];
          h[k] = FromF32<T>(NextOfRecurrence<kLeaving>(ToF32(decay[k]), ToF32(x[k]), state));
          states[k] = state;
        }
      }
      decay += path.step;
      x += path.step;
      h += path.step;
    }
  });
}

// `h` is that of the operands' elements; of the one beyond the last it is 0. The outputs may be the
// operands.
template <bool kLeaving, typename T>
void AdvanceGrad(const Path& path, const T* dh, const T* decay, const T* h, const T* zeros,
                 float* states, T* ddecay, T* dx) {
  Multiversion([=, ahead = path.Ahead()]() ZG_VERSION {
    for (int64_t i = 0; i < path.size; ++i) {
      const T* const used = kLeaving ? h : i + 1 < path.size ? h + path.step : zeros;
      for (int64_t run = 0; run < path.count; run += kPrefetchRun) {
        const int64_t end = std::min(run + kPrefetchRun, path.count);
        PrefetchRow<0>(dh + run + ahead, end - run);
        PrefetchRow<0>(decay + run + ahead, end - run);
        PrefetchRow<0>(used + run + ahead, end - run);
        PrefetchRow<1>(ddecay + run + ahead, end - run);
        PrefetchRow<1>(dx + run + ahead, end - run);
        ZG_INDEPENDENT
        for (int64_t k = run; k < end; ++k) {
          float state = states[k];
          const RecurrenceGradients<float> next =
              NextOfRecurrenceGrad<kLeaving>(ToF32(dh[k]), ToF32(decay[k]), ToF32(used[k]), state);
          states[k] = state;
          ddecay[k] = FromF32<T>(next.ddecay);
          dx[k] = FromF32<T>(next.dx);
        }
      }
      dh += path.step;
      decay += path.step;
      h += path.step;
      ddecay += path.step;
      dx += path.step;
    }
  });
}

using Square = Lanes[kLanes];
constexpr int64_t kSquaresAhead = 4;

// Recurrences along the last dim: kLanes rows of `size` elements are the lanes of a vector, because
// in a single one every step waits for the one before it. Both functions return the number of
// elements that they have computed, from the beginning, or with `backwards` from the end on.
template <bool kLeaving, typename T>
int64_t AdvanceRows(int64_t size, bool backwards, const T* decay, const T* x, float* states, T* h) {
  const int64_t whole = size / kLanes * kLanes;
  Multiversion([=]() ZG_VERSION {
    const int64_t ahead = (backwards ? -kSquaresAhead : kSquaresAhead) * kLanes;
    Lanes state = {};
    for (int64_t done = 0; done < whole; done += kLanes) {
      const int64_t begin = backwards ? size - kLanes - done : done;
      Square decays, values;
      LoadTransposed(decay + begin, size, ahead, decays);
      LoadTransposed(x + begin, size, ahead, values);
      for (int i = 0; i < kLanes; ++i) {
        const int at = backwards ? kLanes - 1 - i : i;
        values[at] = NextOfRecurrence<kLeaving>(decays[at], values[at], state);
      }
      StoreTransposed(values, size, h + begin);
    }
    StoreLanes(state, states);
  });
  return whole;
}

// At least one element remains, the last, which has no h_(i-1).
template <bool kLeaving, typename T>
int64_t AdvanceRowsGrad(int64_t size, bool backwards, const T* dh, const T* decay, const T* h,
                        float* states, T* ddecay, T* dx) {
  const int64_t whole = std::max<int64_t>(size - 1, 0) / kLanes * kLanes;
  Multiversion([=]() ZG_VERSION {
    const int64_t to_used = kLeaving ? 0 : backwards ? -1 : 1;
    const int64_t ahead = (backwards ? -kSquaresAhead : kSquaresAhead) * kLanes;
    Lanes state = {};
    for (int64_t done = 0; done < whole; done += kLanes) {
      const int64_t begin = backwards ? size - kLanes - done : done;
      Square decays, values, used;
      LoadTransposed(decay + begin, size, ahead, decays);
      LoadTransposed(dh + begin, size, ahead, values);
      LoadTransposed(h + begin + to_used, size, ahead, used);
      for (int i = 0; i < kLanes; ++i) {
        const int at = backwards ? kLanes - 1 - i : i;
        const RecurrenceGradients<Lanes> next =
            NextOfRecurrenceGrad<kLeaving>(values[at], decays[at], used[at], state);
        used[at] = next.ddecay;
        values[at] = next.dx;
      }
      StoreTransposed(used, size, ddecay + begin);
      StoreTransposed(values, size, dx + begin);
    }
    StoreLanes(state, states);
  });
  return whole;
}

// What both kernels share: threads get rows of a recurrence along the last dim, otherwise columns.
class Recurrences : public Kernel {
 public:
  Recurrences(const KernelSpec& spec, bool backwards)
      : dtype_(spec.outputs[0].dtype),
        leaving_(spec.call.attributes.Bool("leaving")),
        backwards_(spec.call.attributes.Bool("from_end") != backwards),
        view_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        threads_(spec.threads) {
    if (view_.outer == 0) return;
    // Whole rows, unless there are fewer than threads.
    const int64_t parts = (threads_ + view_.outer - 1) / view_.outer;
    columns_ = std::min(kMostColumns, RangeBegin(view_.inner, kElementUnit, parts, 1));
    columns_ = std::max<int64_t>(columns_, kElementUnit);
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, NumParts(), Unit(), CostOfPart()), BytesOfThread());
  }

 protected:
  // What a thread needs while it computes a part.
  struct Scratch {
    float* states;
    const void* zeros;
  };

  // Calls `rows(offset, scratch)` for kLanes rows, which returns how many of their elements it has
  // computed, and `columns(path, offset, scratch)` for the others. Offsets are those of elements in
  // the tensors.
  template <typename Rows, typename Columns>
  Status ForParts(const KernelArguments& arguments, const Rows& rows,
                  const Columns& columns) const {
    if (view_.size == 0) return Status::Ok();
    const auto body = [&](int64_t begin, int64_t end, int thread) {
      auto* const floats =
          static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
      const Scratch scratch = {floats, floats + columns_};
      std::fill_n(floats + columns_, columns_, 0.0f);
      while (begin < end) {
        if (view_.inner == 1 && begin + kLanes <= end) {
          const int64_t done = rows(begin * view_.size, scratch);
          for (int i = 0; i < kLanes; ++i) {
            scratch.states[0] = scratch.states[i];
            columns(PathOf(1, done), Offset(begin + i, 0, done), scratch);
          }
          begin += kLanes;
        } else {
          const int64_t first = begin % NumBlocks() * columns_;
          std::fill_n(scratch.states, columns_, 0.0f);
          columns(PathOf(std::min(columns_, view_.inner - first), 0),
                  Offset(begin / NumBlocks(), first, 0), scratch);
          ++begin;
        }
      }
    };
    ForRanges(arguments.threads, NumParts(), Unit(), CostOfPart(), body);
    return Status::Ok();
  }

  // Calls f with whether the recurrence is one with `leaving`.
  template <typename F>
  Status WithKind(const F& f) const {
    return leaving_ ? f(std::true_type()) : f(std::false_type());
  }

  const DType dtype_;
  const bool leaving_;
  const bool backwards_;  // the elements are computed from the last one on
  const DimView view_;

 private:
  int64_t NumBlocks() const { return (view_.inner + columns_ - 1) / columns_; }
  int64_t NumParts() const { return view_.outer * NumBlocks(); }
  int64_t Unit() const { return view_.inner == 1 ? kLanes : 1; }
  int64_t CostOfPart() const { return view_.size * std::min(columns_, view_.inner); }

  Path PathOf(int64_t count, int64_t done) const {
    return {view_.size - done, backwards_ ? -view_.inner : view_.inner, count};
  }
  int64_t Offset(int64_t outer, int64_t column, int64_t done) const {
    const int64_t element = backwards_ ? view_.size - 1 - done : done;
    return (outer * view_.size + element) * view_.inner + column;
  }

  int64_t BytesOfThread() const { return 2 * columns_ * 4; }

  const int threads_;
  int64_t columns_ = kElementUnit;  // of a part, at most
};

class LinearRecurrence : public Recurrences {
 public:
  explicit LinearRecurrence(const KernelSpec& spec) : Recurrences(spec, false) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const decay = arguments.input<T>(0);
      const T* const x = arguments.input<T>(1);
      T* const h = arguments.output<T>(0);
      return WithKind([&](auto leaving) {
        constexpr bool kLeaving = decltype(leaving)::value;
        return ForParts(
            arguments,
            [&](int64_t at, const Scratch& scratch) {
              return AdvanceRows<kLeaving>(view_.size, backwards_, decay + at, x + at,
                                           scratch.states, h + at);
            },
            [&](const Path& path, int64_t at, const Scratch& scratch) {
              Advance<kLeaving>(path, decay + at, x + at, scratch.states, h + at);
            });
      });
    });
  }
};

class LinearRecurrenceGrad : public Recurrences {
 public:
  explicit LinearRecurrenceGrad(const KernelSpec& spec) : Recurrences(spec, true) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const dh = arguments.input<T>(0);
      const T* const decay = arguments.input<T>(1);
      const T* const h = arguments.input<T>(2);
      T* const ddecay = arguments.output<T>(0);
      T* const dx = arguments.output<T>(1);
      return WithKind([&](auto leaving) {
        constexpr bool kLeaving = decltype(leaving)::value;
        return ForParts(
            arguments,
            [&](int64_t at, const Scratch& scratch) {
              return AdvanceRowsGrad<kLeaving>(view_.size, backwards_, dh + at, decay + at, h + at,
                                               scratch.states, ddecay + at, dx + at);
            },
            [&](const Path& path, int64_t at, const Scratch& scratch) {
              AdvanceGrad<kLeaving>(path, dh + at, decay + at, h + at,
                                    static_cast<const T*>(scratch.zeros), scratch.states,
                                    ddecay + at, dx + at);
            });
      });
    });
  }
};

}  // namespace

void RegisterLinearRecurrenceKernels(KernelRegistry& registry) {
  registry.Register("linear_recurrence", MakeKernel<LinearRecurrence>);
  registry.Register("linear_recurrence_grad", MakeKernel<LinearRecurrenceGrad>);
}

}  // namespace zg
