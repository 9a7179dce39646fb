#include "tests/ops/op_case.h"

namespace zg::testing {
namespace {

// The position of element `i` of each recurrence in the order of computation, and their number.
class Order {
 public:
  explicit Order(const ReferenceCall& call) : from_end_(call.attributes.Bool("from_end")) {
    const Shape& shape = call.inputs[0].shape;
    const int64_t own = call.attributes.Int("dim");
    for (int dim = 0; dim < shape.num_dims(); ++dim) {
      (dim < own ? outer_ : dim == own ? size_ : inner_) *= shape.dim(dim);
    }
  }
  int64_t count() const { return outer_ * inner_; }
  int64_t size() const { return size_; }
  size_t At(int64_t recurrence, int64_t i) const {
    const int64_t element = from_end_ ? size_ - 1 - i : i;
    return (recurrence / inner_ * size_ + element) * inner_ + recurrence % inner_;
  }

 private:
  const bool from_end_;
  int64_t outer_ = 1, size_ = 1, inner_ = 1;
};

ReferenceOutputs Recurrence(const ReferenceCall& call) {
  const std::vector<double>& decay = call.inputs[0].values;
  std::vector<double> h = call.inputs[1].values;
  const Order order(call);
  const bool leaving = call.attributes.Bool("leaving");
  for (int64_t r = 0; r < order.count(); ++r) {
    for (int64_t i = 1; i < order.size(); ++i) {
      const size_t before = order.At(r, i - 1), at = order.At(r, i);
      h[at] += decay[leaving ? before : at] * h[before];
    }
  }
  return {h};
}

ReferenceOutputs RecurrenceGrad(const ReferenceCall& call) {
  const std::vector<double>& decay = call.inputs[1].values;
  const std::vector<double>& h = call.inputs[2].values;
  std::vector<double> ddecay(decay.size(), 0.0), dx = call.inputs[0].values;
  const Order order(call);
  const bool leaving = call.attributes.Bool("leaving");
  for (int64_t r = 0; r < order.count(); ++r) {
    for (int64_t i = order.size() - 1; i > 0; --i) {
      const size_t before = order.At(r, i - 1), at = order.At(r, i);
      const size_t used = leaving ? before : at;
      dx[before] += decay[used] * dx[at];
      ddecay[used] += dx[at] * h[before];
    }
  }
  return {ddecay, dx};
}

void AddCases(const std::string& label, const Shape& shape, int64_t dim, bool check_gradient,
              std::vector<OpCase>* cases) {
  for (const bool from_end : {false, true}) {
    for (const bool leaving : {false, true}) {
      OpCase recurrence;
      recurrence.op = "linear_recurrence";
      recurrence.label = label + (from_end ? ", from the end" : "") + (leaving ? ", leaving" : "");
      recurrence.inputs = {F32(shape), F32(shape)};
      recurrence.attributes = {{"dim", dim}, {"from_end", from_end}, {"leaving", leaving}};
      recurrence.reference = Recurrence;
      recurrence.check_gradient = check_gradient;
      OpCase gradient = recurrence;
      gradient.op = "linear_recurrence_grad";
      gradient.inputs.push_back(F32(shape));
      gradient.reference = RecurrenceGrad;
      cases->push_back(std::move(recurrence));
      cases->push_back(std::move(gradient));
    }
  }
}

}  // namespace

FamilyCases LinearRecurrenceCases() {
  FamilyCases family;
  AddCases("rows", {3, 5}, 1, true, &family.cases);
  AddCases("columns", {5, 3}, 0, true, &family.cases);
  AddCases("a middle dim", {2, 4, 3}, 1, true, &family.cases);
  AddCases("splits of the last", {6, 6, 6}, 2, false, &family.cases);
  AddCases("splits of the first", {6, 6, 6}, 0, false, &family.cases);
  AddCases("splits of a matrix", {6, 6}, 1, false, &family.cases);
  AddCases("squares", {19, 37}, 1, false, &family.cases);
  AddCases("whole squares", {16, 32}, 1, false, &family.cases);
  AddCases("more than a block of columns", {1, 3, 8200}, 1, false, &family.cases);
  AddCases("one element", {3, 1}, 1, true, &family.cases);
  AddCases("a vector", {6}, 0, true, &family.cases);
  family.rejections = {
      {"linear_recurrence",
       {F32({5, 7}), F32({5, 7})},
       {{"dim", int64_t{2}}},
       "linear_recurrence: got dim 2, expected one of its dims: decay f32[5,7], x f32[5,7]"},
      {"linear_recurrence",
       {F32({5, 1}), F32({5, 7})},
       {{"dim", int64_t{1}}},
       "linear_recurrence: shapes differ: decay f32[5,1], x f32[5,7]"},
      {"linear_recurrence_grad",
       {F32({5}), F32({5}), I64({5}, 2)},
       {{"dim", int64_t{0}}},
       "linear_recurrence_grad: h is not floating-point, convert with to(x, dtype): dh f32[5], "
       "decay f32[5], h i64[5]"}};
  for (const char* const name : {"linear_recurrence", "linear_recurrence_grad"}) {
    const bool is_gradient = name == std::string("linear_recurrence_grad");
    const auto sized = [&](const char* label, const Shape& shape, int64_t dim) {
      return Sized(name, label, std::vector<InputSpec>(is_gradient ? 3 : 2, F32(shape)),
                   {{"dim", dim}});
    };
    family.large.push_back(sized("rows", {70, 300}, 1));
    family.large.push_back(sized("columns", {3, 70, 3000}, 1));
    family.bench.push_back(sized("rows", {2048, 1536}, 1));
    family.bench.push_back(sized("columns", {4, 256, 3072}, 1));
  }
  family.exact_on_gpu = {"linear_recurrence", "linear_recurrence_grad"};
  return family;
}

}  // namespace zg::testing
