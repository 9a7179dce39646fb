// Functions of Vars that rearrange elements. Names and meaning are PyTorch's; dims may be negative,
// counted from the end, and sizes are those of one micro-batch. Each error names the function, the
// arguments that it got and the operand.
//
// reshape, flatten, squeeze and unsqueeze share the memory of x; the others copy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

using Dims = std::vector<int64_t>;

// The dims that a function reduces: one, 1, several, {0, 2}, or all of them, {}.
class ReducedDims {
 public:
  ReducedDims() = default;
  ReducedDims(std::initializer_list<int64_t> dims) : dims_(dims) {}
  ReducedDims(Dims dims) : dims_(std::move(dims)) {}  // NOLINT: as if it were the dims
  template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer> &&
                                                          !std::is_same_v<Integer, bool>>>
  ReducedDims(Integer dim) : dims_{static_cast<int64_t>(dim)} {}  // NOLINT
  operator const Dims&() const { return dims_; }                  // NOLINT

 private:
  Dims dims_;
};

// The elements of x, in their order, with these dims; one of them may be -1: it is inferred.
Var reshape(Var x, const Dims& shape);
// Merges dims first to last into one.
Var flatten(Var x, int64_t first = 0, int64_t last = -1);
// The opposite: dim `dim` becomes dims of these sizes, of which one may be -1.
Var unflatten(Var x, int64_t dim, const Dims& sizes);
// unsqueeze inserts a dim of size 1 before dim `dim` of x; squeeze removes that dim of size 1.
Var unsqueeze(Var x, int64_t dim);
Var squeeze(Var x, int64_t dim);

// Dim i of the result is dim order[i] of x.
Var permute(Var x, const Dims& order);
Var transpose(Var x, int64_t dim0, int64_t dim1);
// Dim `from` becomes dim `to`; the others keep their order.
Var movedim(Var x, int64_t from, int64_t to);

// Elements start, start + step, ... before `end` along one dim; negative ones count from the end.
Var slice(Var x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
Var slice(Var x, int64_t dim, int64_t start);  // all from there on
// Element `index` along one dim, which is removed.
Var select(Var x, int64_t dim, int64_t index);
// Parts of x along one dim: of these sizes; equal parts; or of `size` elements each, where the last
// part may have fewer.
std::vector<Var> split_sizes(Var x, const Dims& sizes, int64_t dim = 0);
std::vector<Var> split(Var x, int64_t size, int64_t dim = 0);
std::vector<Var> chunk(Var x, int64_t parts, int64_t dim = 0);
// The elements along one dim, which is removed.
std::vector<Var> unbind(Var x, int64_t dim = 0);

Var concat(const std::vector<Var>& parts, int64_t dim = 0);
Var stack(const std::vector<Var>& parts, int64_t dim = 0);  // along a new dim

// One value per vector, with a dim for each of them, along which it varies: PyTorch's meshgrid with the
// indexing "ij".
std::vector<Var> meshgrid(const std::vector<Var>& vectors);

// x with dims of size 1 repeated to `shape`, which may have additional leading dims; -1: as in x.
Var expand(Var x, const Dims& shape);
// x repeated times[i] times along dim i, after leading dims of size 1 if there are more times than dims.
Var repeat(Var x, const Dims& times);
// Each element of one dim `times` times, side by side.
Var repeat_interleave(Var x, int64_t times, int64_t dim);
// `value` before and after x along one dim.
Var pad(Var x, int64_t dim, int64_t before, int64_t after, double value = 0.0);
// Shifted along one dim; elements that leave at one end enter at the other.
Var roll(Var x, int64_t shift, int64_t dim);
// Along several dims, by so many elements each.
Var roll(Var x, const Dims& shifts, const Dims& dims);
// Each element minus the one before it, along one dim, which loses an element.
Var diff(Var x, int64_t dim = -1);

}  // namespace zg
