#include "framework/nn/shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"

namespace zg {

using nn::Caller;
using nn::Checked;
using nn::DimOf;

namespace {

// The groups of dims for reshape (framework/ops/shape.cc): the smallest ones with equal numbers of
// elements; dims of size 1 that only one side has are groups of their own. Without elements: the first
// dims, as far as they are equal, and all others together.
ir::Attributes ReshapeGroups(const Dims& x, const Dims& y) {
  Dims from, to, sizes = y;
  size_t i = 0, j = 0;
  if (std::count(x.begin(), x.end(), 0) > 0) {
    for (; x[i] == y[i] && x[i] != 0; ++i) sizes[i] = -1;
    from.assign(i, 1);
    to.assign(i, 1);
    from.push_back(static_cast<int64_t>(x.size() - i));
    to.push_back(static_cast<int64_t>(y.size() - i));
    if (std::count(y.begin() + i + 1, y.end(), 0) == 0) sizes[i] = -1;
    i = x.size();
    j = y.size();
  }
  while (i < x.size() || j < y.size()) {
    const size_t x_begin = i, y_begin = j;
    const bool only_y = j < y.size() && y[j] == 1 && (i == x.size() || x[i] != 1);
    const bool only_x = i < x.size() && x[i] == 1 && (j == y.size() || y[j] != 1);
    if (only_y) {
      ++j;
    } else if (only_x) {
      ++i;
    } else {
      int64_t of_x = x[i++], of_y = y[j++];
      while (of_x != of_y) {
        if (of_x < of_y) {
          of_x *= x[i++];
        } else {
          of_y *= y[j++];
        }
      }
    }
    from.push_back(static_cast<int64_t>(i - x_begin));
    to.push_back(static_cast<int64_t>(j - y_begin));
    if (j > y_begin) sizes[y_begin] = -1;
  }
  return {{"from", from}, {"to", to}, {"sizes", sizes}};
}

// Replaces -1 by the number that it stands for.
StatusOr<Dims> Completed(Var x, const Dims& shape) {
  Dims result = shape;
  const int64_t elements = x.shape().num_elements();
  int64_t known = 1;
  int64_t* open = nullptr;
  bool is_valid = true;
  for (int64_t& size : result) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size < 0) {
      is_valid = false;
    } else {
      known = SizeProduct(known, size);
    }
  }
  if (open != nullptr) {
    is_valid = is_valid && known > 0 && elements % known == 0;
  } else {
    is_valid = is_valid && elements == known;
  }
  if (!is_valid) {
    return InvalidArgument(
        "{}: got the shape [{}], expected sizes for its {} elements, one of which may be -1",
        Caller("reshape", x), fmt::join(shape, ","), elements);
  }
  if (open != nullptr) *open = elements / known;
  return result;
}

}  // namespace

Var reshape(Var x, const Dims& shape) {
  return Checked("reshape", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const Dims sizes, Completed(x, shape));
    if (sizes == x.shape().dims()) return x;
    return nn::append("reshape", {x}, ReshapeGroups(x.shape().dims(), sizes));
  });
}

Var flatten(Var x, int64_t first, int64_t last) {
  return Checked("flatten", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() == 0) return reshape(x, {1});
    ZG_ASSIGN_OR_RETURN(const int64_t begin, DimOf("flatten", x, first));
    ZG_ASSIGN_OR_RETURN(const int64_t end, DimOf("flatten", x, last));
    if (begin > end) {
      return InvalidArgument("{}: got dims {} to {}, expected the first to come first",
                             Caller("flatten", x), first, last);
    }
    Dims dims = x.shape().dims();
    int64_t size = 1;
    for (int64_t dim = begin; dim <= end; ++dim) size *= dims[dim];
    dims.erase(dims.begin() + begin, dims.begin() + end);
    dims[begin] = size;
    return reshape(x, dims);
  });
}

Var unsqueeze(Var x, int64_t dim) {
  return Checked("unsqueeze", x, [&]() -> StatusOr<Var> {
    const int64_t places = x.shape().num_dims() + 1;
    if (dim < -places || dim >= places) {
      return InvalidArgument("{}: got dim {}, expected one from {} to {}", Caller("unsqueeze", x),
                             dim, -places, places - 1);
    }
    Dims dims = x.shape().dims();
    dims.insert(dims.begin() + (dim < 0 ? dim + places : dim), 1);
    return reshape(x, dims);
  });
}

Var squeeze(Var x, int64_t dim) {
  return Checked("squeeze", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("squeeze", x, dim));
    Dims dims = x.shape().dims();
    if (dims[own] != 1) {
      return InvalidArgument("{}: dim {} is {}, expected 1", Caller("squeeze", x), dim, dims[own]);
    }
    dims.erase(dims.begin() + own);
    return reshape(x, dims);
  });
}

Var permute(Var x, const Dims& order) {
  return Checked("permute", x, [&]() -> StatusOr<Var> {
    Dims own;
    for (const int64_t dim : order) {
      ZG_ASSIGN_OR_RETURN(const int64_t of_x, DimOf("permute", x, dim));
      own.push_back(of_x);
    }
    Dims same;
    for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) same.push_back(dim);
    if (own == same) return x;
    return nn::append("permute", {x}, {{"order", own}});
  });
}

Var transpose(Var x, int64_t dim0, int64_t dim1) {
  return Checked("transpose", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t first, DimOf("transpose", x, dim0));
    ZG_ASSIGN_OR_RETURN(const int64_t second, DimOf("transpose", x, dim1));
    Dims order;
    for (int64_t dim = 0; dim < x.shape().num_dims(); ++dim) order.push_back(dim);
    std::swap(order[first], order[second]);
    return permute(x, order);
  });
}

Var slice(Var x, int64_t dim, int64_t start) {
  return Checked("slice", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("slice", x, dim));
    return slice(x, own, start, x.dim(static_cast<int>(own)));
  });
}

Var slice(Var x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return Checked("slice", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("slice", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    const int64_t from = start < 0 ? start + size : start;
    const int64_t to = end < 0 ? end + size : end;
    if (step < 1 || from < 0 || from > to || to > size) {
      return InvalidArgument(
          "{}: got {} to {} in steps of {} along dim {}, expected a range inside its {} elements",
          Caller("slice", x), start, end, step, dim, size);
    }
    if (from == 0 && to == size && step == 1) return x;
    return nn::append(
        "slice", {x},
        {{"dim", own}, {"start", from}, {"size", (to - from + step - 1) / step}, {"step", step}});
  });
}

Var select(Var x, int64_t dim, int64_t index) {
  return Checked("select", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("select", x, dim));
    const int64_t size = x.dim(static_cast<int>(own));
    if (index < -size || index >= size) {
      return InvalidArgument("{}: got element {} along dim {}, expected one from {} to {}",
                             Caller("select", x), index, dim, -size, size - 1);
    }
    const int64_t from = index < 0 ? index + size : index;
    return squeeze(slice(x, own, from, from + 1), own);
  });
}

std::vector<Var> split_sizes(Var x, const Dims& sizes, int64_t dim) {
  std::vector<Var> parts(sizes.size());
  Checked("split_sizes", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("split_sizes", x, dim));
    int64_t sum = 0;
    for (const int64_t size : sizes) sum += size < 0 ? x.shape().num_elements() + 1 : size;
    if (sum != x.dim(static_cast<int>(own))) {
      return InvalidArgument("{}: got parts of [{}], expected sizes that add up to dim {}, {}",
                             Caller("split_sizes", x), fmt::join(sizes, ","), dim,
                             x.dim(static_cast<int>(own)));
    }
    int64_t start = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      parts[i] = slice(x, own, start, start + sizes[i]);
      start += sizes[i];
    }
    return x;
  });
  return parts;
}

std::vector<Var> split(Var x, int64_t size, int64_t dim) {
  Dims sizes;
  Checked("split", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("split", x, dim));
    if (size < 1) {
      return InvalidArgument("{}: got parts of {}, expected at least 1", Caller("split", x), size);
    }
    const int64_t all = x.dim(static_cast<int>(own));
    for (int64_t start = 0; start < all; start += size) {
      sizes.push_back(std::min(size, all - start));
    }
    return x;
  });
  return split_sizes(x, sizes, dim);
}

std::vector<Var> chunk(Var x, int64_t parts, int64_t dim) {
  constexpr int64_t kMost = 1 << 20;  // so that an error returns as many parts
  Dims sizes(std::clamp<int64_t>(parts, 0, kMost));
  Checked("chunk", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("chunk", x, dim));
    const int64_t all = x.dim(static_cast<int>(own));
    if (parts < 1 || parts > kMost || all % parts != 0) {
      return InvalidArgument("{}: got {} parts of dim {}, expected a divisor of {}",
                             Caller("chunk", x), parts, dim, all);
    }
    std::fill(sizes.begin(), sizes.end(), all / parts);
    return x;
  });
  return split_sizes(x, sizes, dim);
}

Var concat(const std::vector<Var>& parts, int64_t dim) {
  nn::Trace& trace = nn::Trace::Of("concat");
  if (parts.empty()) return trace.Fail(InvalidArgument("concat: got no parts"));
  return Checked("concat", parts[0], [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("concat", parts[0], dim));
    return nn::append("concat", parts, {{"dim", own}});
  });
}

std::vector<Var> unbind(Var x, int64_t dim) {
  std::vector<Var> elements;
  Checked("unbind", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("unbind", x, dim));
    for (int64_t i = 0; i < x.dim(static_cast<int>(own)); ++i) {
      elements.push_back(select(x, own, i));
    }
    return x;
  });
  return elements;
}

std::vector<Var> meshgrid(const std::vector<Var>& vectors) {
  const nn::Trace::Function called("meshgrid");
  nn::Trace& trace = nn::Trace::Of("meshgrid");
  Dims sizes;
  for (const Var& vector : vectors) {
    if (vector.empty()) return std::vector<Var>(vectors.size());
    if (vector.shape().num_dims() != 1) {
      const Var failed =
          trace.Fail(InvalidArgument("{}: expected one dim", nn::Caller("meshgrid", vector)));
      return std::vector<Var>(vectors.size(), failed);
    }
    sizes.push_back(vector.dim(0));
  }
  std::vector<Var> grids;
  for (size_t i = 0; i < vectors.size(); ++i) {
    Dims along(vectors.size(), 1);
    along[i] = sizes[i];
    grids.push_back(expand(reshape(vectors[i], along), sizes));
  }
  return grids;
}

Var stack(const std::vector<Var>& parts, int64_t dim) {
  nn::Trace& trace = nn::Trace::Of("stack");
  if (parts.empty()) return trace.Fail(InvalidArgument("stack: got no parts"));
  std::vector<Var> rows;
  for (const Var& part : parts) rows.push_back(unsqueeze(part, dim));
  return concat(rows, dim);
}

Var expand(Var x, const Dims& shape) {
  return Checked("expand", x, [&]() -> StatusOr<Var> {
    const Dims own = x.shape().dims();
    const int64_t leading = static_cast<int64_t>(shape.size()) - static_cast<int64_t>(own.size());
    Dims new_dims, new_sizes, dims, sizes;
    bool fits = leading >= 0;
    for (int64_t dim = 0; fits && dim < static_cast<int64_t>(shape.size()); ++dim) {
      const int64_t size = shape[dim];
      if (dim < leading) {
        fits = size >= 1;
        new_dims.push_back(dim);
        new_sizes.push_back(size);
      } else if (size != -1 && size != own[dim - leading]) {
        fits = size >= 1 && own[dim - leading] == 1;
        dims.push_back(dim - leading);
        sizes.push_back(size);
      }
    }
    if (!fits) {
      return InvalidArgument(
          "{}: got the shape [{}], expected its dims at the end, other sizes only where they are 1",
          Caller("expand", x), fmt::join(shape, ","));
    }
    Var y = x;
    if (!dims.empty()) {
      y = nn::append("expand", {y}, {{"dims", dims}, {"sizes", sizes}, {"keep_dims", true}});
    }
    if (!new_dims.empty()) {
      y = nn::append("expand", {y}, {{"dims", new_dims}, {"sizes", new_sizes}});
    }
    return y;
  });
}

namespace {

// Joins halves where there are many, so that no number of times is too large to be listed.
Var Repeated(Var x, int64_t times, int64_t dim) {
  constexpr int64_t kListed = 64;
  if (times == 1 || x.empty()) return x;
  if (times <= kListed) return concat(std::vector<Var>(times, x), dim);
  const Var half = Repeated(x, times / 2, dim);
  return times % 2 == 0 ? concat({half, half}, dim) : concat({half, half, x}, dim);
}

}  // namespace

Var repeat(Var x, const Dims& times) {
  return Checked("repeat", x, [&]() -> StatusOr<Var> {
    const auto is_negative = [](int64_t count) { return count < 1; };
    Dims sizes = x.shape().dims();
    if (times.size() < sizes.size() || std::any_of(times.begin(), times.end(), is_negative)) {
      return InvalidArgument("{}: got [{}] times, expected a number of at least 1 for each dim",
                             Caller("repeat", x), fmt::join(times, ","));
    }
    sizes.insert(sizes.begin(), times.size() - sizes.size(), 1);
    Var y = reshape(x, sizes);
    for (size_t dim = 0; dim < times.size(); ++dim) {
      y = Repeated(y, times[dim], static_cast<int64_t>(dim));
    }
    return y;
  });
}

Var pad(Var x, int64_t dim, int64_t before, int64_t after, double value) {
  return Checked("pad", x, [&]() -> StatusOr<Var> {
    ZG_ASSIGN_OR_RETURN(const int64_t own, DimOf("pad", x, dim));
    return nn::append("pad", {x},
                      {{"dim", own}, {"before", before}, {"after", after}, {"value", value}});
  });
}

}  // namespace zg
