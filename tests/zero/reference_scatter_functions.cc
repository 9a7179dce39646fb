// Functions that write at positions, search, and run along a dim.
#include <map>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/zero/reference_functions.h"

namespace zg {
namespace {

Var Numbers(const std::vector<int64_t>& numbers) {
  std::vector<Var> parts;
  for (const int64_t number : numbers) parts.push_back(arange(1, number));
  return concat(parts);
}

Var DistinctPlaces(Var a) { return argsort(flip(a, -1)); }

Var ReduceAtPlaces(Var a, Var b, ScatterReduce reduce, bool include_self) {
  const Var places = to(b > 0.0, DType::kI64) + 1.0;
  return scatter_reduce(a, 2, places, b, reduce, include_self) * a;
}

Var ReduceRows(Var a, Var b, ScatterReduce reduce, bool include_self) {
  const Var y = index_reduce(a, 1, Numbers({0, 2, 0, 2}), b, reduce, include_self);
  return slice(y, 1, 0, 3, 2) * flip(slice(a, 1, 0, 3, 2), 1);
}

}  // namespace

const std::map<std::string, Function>& ScatterFunctions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"scatter", [](Var a, Var b) { return scatter(a, 2, DistinctPlaces(a), b) * a; }},
      {"scatter_of_few",
       [](Var a, Var b) {
         const Var places = slice(slice(DistinctPlaces(a), 1, 0, 2), 2, 0, 2);
         return scatter(a, 2, places, b) * a;
       }},
      {"scatter_of_a_value",
       [](Var a, Var b) { return scatter(a, 2, slice(DistinctPlaces(a), 2, 0, 2), 0.5) * b; }},
      {"scatter_amax",
       [](Var a, Var b) { return ReduceAtPlaces(a, b, ScatterReduce::kAmax, true); }},
      {"scatter_amin_without_self",
       [](Var a, Var b) { return ReduceAtPlaces(a, b, ScatterReduce::kAmin, false); }},
      {"scatter_mean",
       [](Var a, Var b) { return ReduceAtPlaces(a, b, ScatterReduce::kMean, true); }},
      {"scatter_mean_without_self",
       [](Var a, Var b) { return ReduceAtPlaces(a, b, ScatterReduce::kMean, false); }},
      {"scatter_sum_without_self",
       [](Var a, Var b) { return ReduceAtPlaces(a, b, ScatterReduce::kSum, false); }},
      {"index_copy",
       [](Var a, Var b) {
         return index_copy(a, 1, Numbers({2, 0}), b) * a;
       }},
      {"index_amax", [](Var a, Var b) { return ReduceRows(a, b, ScatterReduce::kAmax, true); }},
      {"index_amin_without_self",
       [](Var a, Var b) { return ReduceRows(a, b, ScatterReduce::kAmin, false); }},
      {"index_mean", [](Var a, Var b) { return ReduceRows(a, b, ScatterReduce::kMean, true); }},
      {"index_fill",
       [](Var a, Var b) {
         return index_fill(a, 2, Numbers({1, 3}), 0.25) * b;
       }},
      {"segment_softmax",
       [](Var a, Var b) {
         return segment_softmax(reshape(a, {6, 4}), Numbers({0, 3, 0, 1, 3, 0}), 4) * b;
       }},
      {"bucketize",
       [](Var a, Var b) {
         return gather(a, 2, bucketize(b, to(Numbers({-1, 0, 1}), DType::kF32))) * b;
       }},
      {"searchsorted",
       [](Var a, Var b) {
         const Var places = searchsorted(sort(a).values, b, /*right=*/true);
         return gather(a, 2, clamp_max(places, 3.0)) * b;
       }},
      {"histc", [](Var a, Var b) { return histc(a, 6, -1.5, 1.5) * b + sum(a); }},
      {"cummax", [](Var a, Var b) { return cummax(a, 2).values * b; }},
      {"cummin", [](Var a, Var b) { return cummin(a, 1).values * b; }},
      {"logcumsumexp", [](Var a, Var b) { return logcumsumexp(a * 20.0, -1) * b; }},
      {"logcumsumexp_along_the_first", [](Var a, Var b) { return logcumsumexp(a, 0) * b; }},
  };
  return *functions;
}

}  // namespace zg
