// The functions of shapes.h that are made of the others.
#include <fmt/format.h>

#include <algorithm>

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"

namespace zg {

using nn::Caller;
using nn::Checked;
using nn::DimOf;

Var roll(Var x, int64_t shift, int64_t dim) {
  return Checked("roll", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("roll", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    const int64_t by = size == 0 ? 0 : (shift % size + size) % size;
    if (by == 0) return x;
    return concat({slice(x, own, size - by, size), slice(x, own, 0, size - by)}, own);
  });
}

Var roll(Var x, const Dims& shifts, const Dims& dims) {
  return Checked("roll", x, [&]() -> StatusOr<Var> {
    if (shifts.size() != dims.size()) {
      return InvalidArgument("{}: got {} shifts for {} dims", Caller("roll", x), shifts.size(),
                             dims.size());
    }
    Var rolled = x;
    for (size_t i = 0; i < dims.size(); ++i) rolled = roll(rolled, shifts[i], dims[i]);
    return rolled;
  });
}

Var movedim(Var x, int64_t from, int64_t to) {
  return Checked("movedim", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t source, DimOf("movedim", x, from));
    ZG_ASSIGN_OR_RETURN(const int64_t destination, DimOf("movedim", x, to));
    Dims order;
    for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) {
      if (dim != source) order.push_back(dim);
    }
    order.insert(order.begin() + destination, source);
    return permute(x, order);
  });
}

Var unflatten(Var x, int64_t dim, const Dims& sizes) {
  return Checked("unflatten", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("unflatten", x, dim));
    const Dims dims = x.shape().dims();
    int64_t product = 1;
    for (const int64_t part : sizes) product *= part == -1 ? 1 : part;
    const auto unknown = std::count(sizes.begin(), sizes.end(), -1);
    const int64_t size = dims[static_cast<size_t>(own)];
    const bool fits =
        unknown == 0 ? product == size : unknown == 1 && product > 0 && size % product == 0;
    if (!fits) {
      return InvalidArgument("{}: got the sizes {}, expected a product of {}",
                             Caller("unflatten", x), Shape(sizes).ToString(), size);
    }
    Dims shape(dims.begin(), dims.begin() + own);
    for (const int64_t part : sizes) shape.push_back(part == -1 ? size / product : part);
    shape.insert(shape.end(), dims.begin() + own + 1, dims.end());
    return reshape(x, shape);
  });
}

Var repeat_interleave(Var x, int64_t times, int64_t dim) {
  return Checked("repeat_interleave", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("repeat_interleave", x, dim));
    if (times < 1) {
      return InvalidArgument("{}: got {} times, expected at least 1",
                             Caller("repeat_interleave", x), times);
    }
    Dims wide = x.shape().dims();
    wide.insert(wide.begin() + own + 1, times);
    Dims shape = x.shape().dims();
    shape[static_cast<size_t>(own)] *= times;
    return reshape(expand(unsqueeze(x, own + 1), wide), shape);
  });
}

Var diff(Var x, int64_t dim) {
  return Checked("diff", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("diff", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    if (size < 2) {
      return InvalidArgument("{}: dim {} has {} elements, expected at least 2", Caller("diff", x),
                             own, size);
    }
    return slice(x, own, 1, size) - slice(x, own, 0, size - 1);
  });
}

}  // namespace zg
