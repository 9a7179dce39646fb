#include "framework/nn/scatter.h"

#include <fmt/format.h>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/indexing.h"

namespace zg {

using nn::Caller;
using nn::Checked;
using nn::DimOf;

namespace {

// The operands of a scatter along dim `dim` of x, checked; the source has the index's shape.
struct Scatter {
  Var x;
  int64_t dim;
  Var index;
  Var source;

  static StatusOr<Scatter> Of(const char* function, Var x, int64_t dim, Var index, Var source) {
    const nn::Trace& trace = nn::Trace::Of(function);
    ZG_RETURN_IF_ERROR(trace.CheckUsable(index).WithContext(fmt::format("{}: index", function)));
    ZG_RETURN_IF_ERROR(trace.CheckUsable(source).WithContext(fmt::format("{}: source", function)));
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf(function, x, dim));
    const int num_dims = x.shape().num_dims();
    bool fits = index.shape().num_dims() == num_dims && source.shape().num_dims() == num_dims;
    for (int other = 0; fits && other < num_dims; ++other) {
      fits = index.dim(other) <= source.dim(other) &&
             (other == own || index.dim(other) <= x.dim(other));
    }
    if (!fits) {
      return InvalidArgument(
          "{}: got an index {} and a source {}, expected as many dims as x's, and an index of at most "
          "the source's size in each, and, but for dim {}, of at most x's",
          Caller(function, x), index.value()->type.ToString(), source.value()->type.ToString(),
          own);
    }
    for (int other = 0; other < num_dims; ++other) {
      if (index.dim(other) < source.dim(other)) source = slice(source, other, 0, index.dim(other));
    }
    return Scatter{x, own, index, source};
  }

  ir::Attributes places() const { return {{"dim", dim}, {"size", x.dim(static_cast<int>(dim))}}; }

  // A value for each place, 0 beside the index's.
  Var OverAll(Var of_places) const {
    for (int other = 0; other < x.shape().num_dims(); ++other) {
      const int64_t missing = x.dim(other) - of_places.dim(other);
      if (missing > 0) of_places = pad(of_places, other, 0, missing);
    }
    return of_places;
  }

  Var Sums(Var terms) const { return OverAll(nn::append("gather_grad", {terms, index}, places())); }
  Var Counts() const { return Sums(ones_like(source)); }

  // The elements of the source that stay at their places, and where there are some.
  struct Chosen {
    Var elements;
    Var is_chosen;
  };
  Chosen At(Var positions) const {
    const Var is_chosen = positions >= 0.0;
    return {OverAll(gather(source, dim, clamp_min(positions, 0.0))),
            OverAll(to(is_chosen, DType::kF32)) > 0.0};
  }
  Chosen Last() const { return At(nn::append("scatter_last", {index}, places())); }
  Chosen Extreme(bool largest) const {
    const Var ordered = stop_gradient(largest ? source : -source);
    return At(nn::append("scatter_argmax", {ordered, index}, places()));
  }

  Var Reduced(ScatterReduce reduce, bool include_self) const {
    if (reduce == ScatterReduce::kAmax || reduce == ScatterReduce::kAmin) {
      const bool largest = reduce == ScatterReduce::kAmax;
      const auto [elements, is_chosen] = Extreme(largest);
      if (!include_self) return where(is_chosen, elements, x);
      return where(is_chosen, largest ? maximum(x, elements) : minimum(x, elements), x);
    }
    const Var sums = Sums(source);
    if (reduce == ScatterReduce::kSum && include_self) return x + sums;
    const Var counts = Counts();
    if (reduce == ScatterReduce::kSum) return where(counts > 0.0, sums, x);
    if (include_self) return (x + sums) / (counts + 1.0);
    return where(counts > 0.0, sums / clamp_min(counts, 1.0), x);
  }
};

// The scatter of whole rows to the places that a vector says.
StatusOr<Scatter> ScatterOfRows(const char* function, Var x, int64_t dim, Var index, Var source) {
  ZG_RETURN_IF_ERROR(nn::CheckVector(function, x, index));
  ZG_RETURN_IF_ERROR(
      nn::Trace::Of(function).CheckUsable(source).WithContext(fmt::format("{}: source", function)));
  ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf(function, x, dim));
  Shape expected = x.shape();
  expected.set_dim(static_cast<int>(own), index.dim(0));
  if (source.shape() != expected) {
    return InvalidArgument("{}: got a source of shape {}, expected {}", Caller(function, x),
                           source.shape().ToString(), expected.ToString());
  }
  Dims of_vector(x.shape().num_dims(), 1);
  of_vector[own] = index.dim(0);
  return Scatter{x, own, expand(reshape(index, of_vector), expected.dims()), source};
}

}  // namespace

Var scatter(Var x, int64_t dim, Var index, Var source) {
  return Checked("scatter", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Scatter scatter, Scatter::Of("scatter", x, dim, index, source));
    const auto [elements, is_chosen] = scatter.Last();
    return where(is_chosen, elements, x);
  });
}

Var scatter(Var x, int64_t dim, Var index, double value) {
  return Checked("scatter", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("scatter").CheckUsable(index).WithContext("scatter: index"));
    const Var values = full(index.shape().dims(), value, x.dtype());
    ZG_ASSIGN_OR_RETURN(const Scatter scatter, Scatter::Of("scatter", x, dim, index, values));
    return masked_fill(x, scatter.Last().is_chosen, value);
  });
}

Var scatter_add(Var x, int64_t dim, Var index, Var source) {
  return Checked("scatter_add", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Scatter scatter, Scatter::Of("scatter_add", x, dim, index, source));
    return scatter.Reduced(ScatterReduce::kSum, true);
  });
}

Var scatter_reduce(Var x, int64_t dim, Var index, Var source, ScatterReduce reduce,
                   bool include_self) {
  return Checked("scatter_reduce", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Scatter scatter,
                        Scatter::Of("scatter_reduce", x, dim, index, source));
    return scatter.Reduced(reduce, include_self);
  });
}

Var index_copy(Var x, int64_t dim, Var index, Var source) {
  return Checked("index_copy", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Scatter scatter, ScatterOfRows("index_copy", x, dim, index, source));
    const auto [elements, is_chosen] = scatter.Last();
    return where(is_chosen, elements, x);
  });
}

Var index_add(Var x, int64_t dim, Var index, Var source) {
  return Checked("index_add", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Scatter scatter, ScatterOfRows("index_add", x, dim, index, source));
    // As rows of an embedding's gradient, without an index for each element.
    const Var sums = nn::append("embedding_grad", {nn::RowsAlong(source, scatter.dim), index},
                                {{"rows", x.dim(static_cast<int>(scatter.dim))}});
    return x + nn::FromRows(sums, x.shape(), scatter.dim);
  });
}

Var index_reduce(Var x, int64_t dim, Var index, Var source, ScatterReduce reduce,
                 bool include_self) {
  if (reduce == ScatterReduce::kSum && include_self) return index_add(x, dim, index, source);
  return Checked("index_reduce", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Scatter scatter,
                        ScatterOfRows("index_reduce", x, dim, index, source));
    return scatter.Reduced(reduce, include_self);
  });
}

Var index_fill(Var x, int64_t dim, Var index, double value) {
  return Checked("index_fill", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::CheckVector("index_fill", x, index));
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("index_fill", x, dim));
    Dims along(x.shape().num_dims(), 1);
    along[own] = x.dim(static_cast<int>(own));
    const Var places = bincount(index, along[own]) > 0.0;
    return masked_fill(x, reshape(places, along), value);
  });
}

Var segment_softmax(Var x, Var ids, int64_t count) {
  return Checked("segment_softmax", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::CheckVector("segment_softmax", x, ids));
    if (x.shape().num_dims() == 0 || x.dim(0) != ids.dim(0) || count < 1) {
      return InvalidArgument(
          "{}: got {} ids and the count {}, expected an id for each element of dim "
          "0, and a count of at least 1",
          Caller("segment_softmax", x), ids.dim(0), count);
    }
    Dims dims = x.shape().dims();
    dims[0] = count;
    const Var none = zeros(dims, x.dtype());
    const Var largest = index_reduce(none, 0, ids, stop_gradient(x), ScatterReduce::kAmax, false);
    const Var powers = exp(x - index_select(largest, 0, ids));
    return powers / index_select(index_add(none, 0, ids, powers), 0, ids);
  });
}

Var bincount(Var ids, int64_t count) {
  return Checked("bincount", ids,
                 [&]() -> StatusOr<Var> { return bincount(ids, count, ones(ids.shape().dims())); });
}

Var bincount(Var ids, int64_t count, Var weights) {
  return Checked("bincount", ids, [&]() -> StatusOr<Var> {
    if (count < 1) {
      return InvalidArgument("{}: got the count {}, expected at least 1", Caller("bincount", ids),
                             count);
    }
    return index_add(zeros({count}), 0, flatten(ids), flatten(weights));
  });
}

Var histc(Var x, int64_t bins, double low, double high) {
  return Checked("histc", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectFloatingPoint("histc", x));
    if (bins < 1 || !(low < high)) {
      return InvalidArgument("{}: got {} bins of [{}, {}], expected at least one, and low < high",
                             Caller("histc", x), bins, low, high);
    }
    const Var place = scale(shift(x, -low), static_cast<double>(bins) / (high - low));
    const Var is_inside = (x >= low) & (x <= high);
    const Var bin =
        to(clamp(where(is_inside, place, 0.0), 0.0, static_cast<double>(bins - 1)), DType::kI64);
    return bincount(bin, bins, to(is_inside, DType::kF32));
  });
}

}  // namespace zg
