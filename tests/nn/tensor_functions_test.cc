// Functions that rearrange and reduce: their result types, and their errors about bad dims.

#include <gtest/gtest.h>

#include <string>

#include "framework/nn/nn.h"
#include "tests/nn/result_type.h"

namespace zg {
namespace {

std::string NotFloat(const std::string& operand, const std::string& operands = "x i64[3,4]") {
  return Error(operand + " is not floating-point, convert with to(x, dtype): " + operands);
}

TEST(TensorFunctions, Reshape) {
  EXPECT_EQ(Of([](Var x) { return reshape(x, {6, 4}); }), "f32[6,4]");
  EXPECT_EQ(Of([](Var x) { return reshape(x, {2, -1, 2}); }), "f32[2,6,2]");
  EXPECT_EQ(Of([](Var x) { return reshape(x, {1, 24, 1}); }), "f32[1,24,1]");
  EXPECT_EQ(Of([](Var x) { return reshape(x, {4, 3, 2}); }), "f32[4,3,2]");
  EXPECT_EQ(Of([](Var x) { return flatten(x); }), "f32[24]");
  EXPECT_EQ(Of([](Var x) { return flatten(x, 1); }), "f32[2,12]");
  EXPECT_EQ(Of([](Var x) { return unsqueeze(x, -1); }), "f32[2,3,4,1]");
  EXPECT_EQ(Of([](Var x) { return squeeze(unsqueeze(x, 1), 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) {
              return reshape(x, {5, -1});
            }),
            Error("reshape of %x f32[2,3,4]: got the shape [5,-1], expected sizes for its 24 "
                  "elements, one of which may be -1"));
  EXPECT_EQ(Of([](Var x) {
              return reshape(x, {-1, -1});
            }),
            Error("reshape of %x f32[2,3,4]: got the shape [-1,-1], expected sizes for its 24 "
                  "elements, one of which may be -1"));
  EXPECT_EQ(Of([](Var x) { return squeeze(x, 1); }),
            Error("squeeze of %x f32[2,3,4]: dim 1 is 3, expected 1"));
  EXPECT_EQ(Of([](Var x) { return unsqueeze(x, 4); }),
            Error("unsqueeze of %x f32[2,3,4]: got dim 4, expected one from -4 to 3"));
  EXPECT_EQ(Of([](Var x) { return flatten(x, 2, 1); }),
            Error("flatten of %x f32[2,3,4]: got dims 2 to 1, expected the first to come first"));
}

TEST(TensorFunctions, OrderOfDims) {
  EXPECT_EQ(Of([](Var x) { return permute(x, {2, 0, 1}); }), "f32[4,2,3]");
  EXPECT_EQ(Of([](Var x) { return permute(x, {-1, 0, 1}); }), "f32[4,2,3]");
  EXPECT_EQ(Of([](Var x) { return transpose(x, -1, -2); }), "f32[2,4,3]");
  EXPECT_EQ(Of([](Var x) {
              return permute(x, {0, 0, 1});
            }),
            Error("permute: got order [0,0,1], expected each of its 3 dims once: x f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return transpose(x, 0, 3); }),
            Error("transpose of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
}

TEST(TensorFunctions, Parts) {
  EXPECT_EQ(Of([](Var x) { return slice(x, 2, 1, 4, 2); }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var x) { return slice(x, -1, -3, -1); }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var x) { return select(x, 1, -1); }), "f32[2,4]");
  EXPECT_EQ(Of([](Var x) { return split(x, 3, 2)[1]; }), "f32[2,3,1]");
  EXPECT_EQ(Of([](Var x) { return chunk(x, 2, 2)[1]; }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var x) { return unbind(x, -1)[3]; }), "f32[2,3]");
  EXPECT_EQ(Of([](Var x) { return concat({x, x}, -1); }), "f32[2,3,8]");
  EXPECT_EQ(Of([](Var x) { return stack({x, x, x}, 1); }), "f32[2,3,3,4]");
  EXPECT_EQ(Of([](Var x) { return roll(x, -1, 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return pad(x, 1, 1, 2); }), "f32[2,6,4]");
  EXPECT_EQ(Of([](Var x) { return slice(x, 2, 1, 5); }),
            Error("slice of %x f32[2,3,4]: got 1 to 5 in steps of 1 along dim 2, expected a range "
                  "inside its 4 elements"));
  EXPECT_EQ(Of([](Var x) { return select(x, 1, 3); }),
            Error("select of %x f32[2,3,4]: got element 3 along dim 1, expected one from -3 to 2"));
  EXPECT_EQ(Of([](Var x) {
              return split_sizes(x, {1, 1}, 1)[0];
            }),
            Error("split_sizes of %x f32[2,3,4]: got parts of [1,1], expected sizes that add up to "
                  "dim 1, 3"));
  EXPECT_EQ(Of([](Var x) { return chunk(x, 2, 1)[0]; }),
            Error("chunk of %x f32[2,3,4]: got 2 parts of dim 1, expected a divisor of 3"));
  EXPECT_EQ(Of([](Var) { return concat({}); }), Error("concat: got no parts"));
}

TEST(TensorFunctions, Repetition) {
  EXPECT_EQ(Of([](Var x) { return expand(x, {5, 2, 3, 4}); }), "f32[5,2,3,4]");
  EXPECT_EQ(Of([](Var x) { return expand(unsqueeze(x, 1), {-1, 7, -1, -1}); }), "f32[2,7,3,4]");
  EXPECT_EQ(Of([](Var x) { return repeat(x, {1, 2, 3}); }), "f32[2,6,12]");
  EXPECT_EQ(Of([](Var x) { return repeat(x, {5, 1, 2, 3}); }), "f32[5,2,6,12]");
  EXPECT_EQ(Of([](Var x) {
              return expand(x, {2, 5, 4});
            }),
            Error("expand of %x f32[2,3,4]: got the shape [2,5,4], expected its dims at the end, "
                  "other sizes only where they are 1"));
  EXPECT_EQ(Of([](Var x) { return repeat(x, {2}); }),
            Error("repeat of %x f32[2,3,4]: got [2] times, expected a number of at least 1 for "
                  "each dim"));
}

TEST(TensorFunctions, Reductions) {
  EXPECT_EQ(Of([](Var x) { return sum(x); }), "f32[]");
  EXPECT_EQ(Of([](Var x) { return mean(x, {-1}); }), "f32[2,3]");
  EXPECT_EQ(Of([](Var x) { return variance(x, {2, 0}, 1.0, true); }), "f32[1,3,1]");
  EXPECT_EQ(Of([](Var x) { return stddev(x, {0}); }), "f32[3,4]");
  EXPECT_EQ(Of([](Var x) { return norm(x, {1}); }), "f32[2,4]");
  EXPECT_EQ(Of([](Var x) { return normalize(x, 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) {
              return sum(x, {1, -2});
            }),
            Error("sum of %x f32[2,3,4]: got dims [1,-2], which name one of them twice"));
  EXPECT_EQ(Of([](Var x) { return variance(x, {0}, 2.0); }),
            Error("variance of %square f32[2,3,4]: got 2 elements, which are too few"));
}

TEST(TensorFunctions, Scattered) {
  const auto ones = [](const Dims& shape) { return to(full(shape, 1.0), DType::kI64); };
  EXPECT_EQ(Of([&](Var x) {
              return scatter_add(x, 1, ones({2, 7, 4}), repeat(x, {1, 3, 1}));
            }),
            "f32[2,3,4]");
  EXPECT_EQ(Of([&](Var x) { return scatter_add(x, -2, ones({1, 2, 3}), x); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return index_add(x, 2, arange(2), slice(x, 2, 0, 2)); }), "f32[2,3,4]");
  EXPECT_EQ(
      Of([&](Var x) {
        return scatter_add(x, 1, ones({2, 7, 4}), x);
      }),
      Error("scatter_add of %x f32[2,3,4]: got an index i64[2,7,4] and a source f32[2,3,4], "
            "expected as many dims as x's, and an index of at most the source's size in each, "
            "and, but for dim 1, of at most x's"));
  EXPECT_EQ(Of([](Var x) { return scatter_add(x, 1, x, x); }),
            Error("scatter_add: gather_grad: index is not i64: dy f32[2,3,4], index f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return scatter_add(x, 1, Var(), x); }),
            Error("scatter_add: index: the Var is empty; it was never given a value"));
  EXPECT_EQ(
      Of([](Var x) { return index_add(x, 1, argmax(x, 1), x); }),
      Error("index_add of %x f32[2,3,4]: got the index %reshape i64[2,4], expected a vector"));
  EXPECT_EQ(Of([](Var x) { return index_add(x, 1, arange(2), x); }),
            Error("index_add of %x f32[2,3,4]: got a source of shape [2,3,4], expected [2,2,4]"));
}

TEST(TensorFunctions, Diagonals) {
  EXPECT_EQ(Of([](Var x) { return diagonal(x); }), "f32[2,3]");
  EXPECT_EQ(Of([](Var x) { return diagonal(x, 3); }), "f32[2,1]");
  EXPECT_EQ(Of([](Var x) { return diag_embed(x, -2); }), "f32[2,3,6,6]");
  EXPECT_EQ(Of([](Var x) { return diagonal(x, 4); }),
            Error("diagonal of %x f32[2,3,4]: got the offset 4, expected that of a diagonal of the "
                  "last two dims"));
  EXPECT_EQ(Of([](Var x) { return diagonal(flatten(x)); }),
            Error("diagonal of %reshape f32[24]: got the offset 0, expected that of a diagonal of "
                  "the last two dims"));
  EXPECT_EQ(Of([](Var x) { return diag_embed(sum(x)); }),
            Error("diag_embed of %sum f32[]: expected at least one dim"));
}

TEST(TensorFunctions, ProductsAndSorting) {
  EXPECT_EQ(Of([](Var x) { return prod(x); }), "f32[]");
  EXPECT_EQ(Of([](Var x) { return prod(x, {0, 2}, true); }), "f32[1,3,1]");
  EXPECT_EQ(Of([](Var x) { return prod(argmax(x, 0), {-1}); }), "f32[3]");
  EXPECT_EQ(Of([](Var x) { return cumprod(x, -1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return argsort(x, 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return prod(x, {3}); }),
            Error("prod of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
  EXPECT_EQ(Of([](Var x) { return sort(x, 3).values; }),
            Error("sort of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
  EXPECT_EQ(Of([](Var x) { return argsort(x > 0.0); }),
            NotFloat("argsort: top_k: x", "x bool[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return linear_recurrence(select(x, 0, 0), x, -1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return linear_recurrence(x, x, 3); }),
            Error("linear_recurrence of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
  EXPECT_EQ(Of([](Var x) { return linear_recurrence(slice(x, 1, 0, 2), x, 0); }),
            Error("linear_recurrence of %x f32[2,3,4]: got a decay [2,2,4], which does not fit"));
  EXPECT_EQ(Of([](Var x) { return cumprod(argmax(x, 0), 0); }),
            NotFloat("cumprod: linear_recurrence: decay", "decay i64[3,4], x i64[3,4]"));
}

TEST(TensorFunctions, ElementaryFunctions) {
  for (const auto function :
       {tan, asin, acos, sinh, cosh, asinh, acosh, atanh, exp2, log2, log10, trunc}) {
    EXPECT_EQ(Of(function), "f32[2,3,4]");
  }
  EXPECT_EQ(Of([](Var x) { return atan2(x, select(x, 0, 0)); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return asinh(argmax(x, 0)); }), NotFloat("asinh: sqrt: x"));
}

TEST(TensorFunctions, TextLosses) {
  const auto of = [](const CtcOptions& options, Var targets_of(Var)) {
    return Of([&](Var x) {
      const Var lengths = arange(2, 1);
      return ctc_loss(x, targets_of(x), lengths, lengths, options);
    });
  };
  const auto targets = [](Var x) { return argmax(slice(x, 2, 0, 2), 1); };
  EXPECT_EQ(of({}, targets), "f32[]");
  EXPECT_EQ(of({0, true, Reduction::kNone}, targets), "f32[2]");
  EXPECT_EQ(of({7}, targets),
            Error("ctc_loss: got the blank 7, expected one of the classes: log_probabilities "
                  "f32[2,3,4], targets i64[2,2], input_lengths i64[2], target_lengths i64[2]"));
  EXPECT_EQ(of({}, [](Var x) { return x; }),
            Error("ctc_loss: targets are not i64 (samples, labels): log_probabilities f32[2,3,4], "
                  "targets f32[2,3,4], input_lengths i64[2], target_lengths i64[2]"));
}

TEST(TensorFunctions, Activations) {
  for (const auto function : {relu6, hardsigmoid, hardswish, mish, selu, log_sigmoid, softsign}) {
    EXPECT_EQ(Of(function), "f32[2,3,4]");
  }
  EXPECT_EQ(Of([](Var x) { return logaddexp(x, x); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return glu(x); }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var x) { return glu(x, 1); }),
            Error("glu: chunk of %x f32[2,3,4]: got 2 parts of dim 1, expected a divisor of 3"));
  EXPECT_EQ(Of([](Var x) { return mish(argmax(x, 0)); }), NotFloat("mish: softplus: x"));
  const auto prelu_of = [](const Shape& slope) {
    return [slope](Var x) {
      const nn::Parameter parameter(nullptr, "slope", slope, Initializer::Zeros());
      return prelu(x, parameter);
    };
  };
  EXPECT_EQ(Of(prelu_of({1})), "f32[2,3,4]");
  EXPECT_EQ(Of(prelu_of({3})), "f32[2,3,4]");
  EXPECT_EQ(Of(prelu_of({4})), Error("prelu of %x f32[2,3,4]: got a slope of shape [4], expected "
                                     "[1] or the channels, dim 1 of x"));
}

TEST(TensorFunctions, Products) {
  const auto times = [](const Shape& shape, const std::function<Var(Var, Var)>& function) {
    return [=](Inputs& in) -> Outputs {
      return function(in.f32("x", {2, 3, 4}), in.f32("y", shape, Sbp::B()));
    };
  };
  const auto of = [&](const Shape& shape, const std::function<Var(Var, Var)>& function) {
    Graph graph("g");
    graph.eval("run", times(shape, function));
    if (!graph.status().ok()) return graph.status().message();
    return graph.result_type("run", "result")->ToString();
  };
  EXPECT_EQ(of({4, 5}, matmul), "f32[2,3,5]");
  EXPECT_EQ(of({2, 4, 5}, matmul), "f32[2,3,5]");
  EXPECT_EQ(of({7, 1, 4, 5}, matmul), "f32[7,2,3,5]");
  EXPECT_EQ(of({4}, matmul), "f32[2,3]");
  EXPECT_EQ(of({5, 3}, [](Var x, Var y) { return matmul(select(y, 1, 0), matmul(y, x)); }),
            "f32[2,4]");
  EXPECT_EQ(of({5, 3}, matmul), Error("matmul: inner dims differ: a f32[6,4], b f32[5,3]"));
  const auto sum_of = [&](const Shape& shape, std::string equation) {
    return of(shape, [=](Var x, Var y) { return einsum(equation, x, y); });
  };
  EXPECT_EQ(sum_of({2, 5, 4}, "bid,bjd->bij"), "f32[2,3,5]");
  EXPECT_EQ(sum_of({4, 6}, "bid,dk -> kbi"), "f32[6,2,3]");
  EXPECT_EQ(sum_of({4}, "bid,d->b"), "f32[2]");
  EXPECT_EQ(sum_of({5}, "bid,k->kd"), "f32[5,4]");
  EXPECT_EQ(sum_of({2, 3, 4}, "abc,abc->"), "f32[]");
  EXPECT_EQ(sum_of({4}, "bid,d"), "f32[2,3]");
  EXPECT_EQ(sum_of({4, 6}, "zid,da"), "f32[6,3,2]");
  EXPECT_EQ(sum_of({1, 4, 5}, "...d,...de->...e"), "f32[2,3,5]");
  EXPECT_EQ(sum_of({7, 1}, "i...d,k...->...ik"), "f32[3,2,7]");
  EXPECT_EQ(sum_of({4, 4}, "bid,dd->bi"), "f32[2,3]");
  const std::string hint =
      ", expected a letter for each dim, as in 'bij,bjk->bik', or '...' for some of them";
  EXPECT_EQ(sum_of({4}, "bid->b"),
            Error("einsum 'bid->b' of %x f32[2,3,4] and %y f32[4]: it names 1" + hint));
  EXPECT_EQ(sum_of({4}, "b.d,d->b"),
            Error("einsum 'b.d,d->b' of %x f32[2,3,4] and %y f32[4]: got '.'" + hint));
  EXPECT_EQ(
      sum_of({4}, "bd...i,...->bb"),
      Error("einsum 'bd...i,...->bb' of %x f32[2,3,4] and %y f32[4]: 'b' names two dims of the "
            "result" +
            hint));
  EXPECT_EQ(sum_of({5}, "bid,d->b"),
            Error("einsum 'bid,d->b' of %x f32[2,3,4] and %y f32[5]: 'd' is 4 and 5" + hint));
  EXPECT_EQ(sum_of({4}, "bid,d->k"),
            Error("einsum 'bid,d->k' of %x f32[2,3,4] and %y f32[4]: no operand has 'k'" + hint));
}

TEST(TensorFunctions, Softmax) {
  EXPECT_EQ(Of([](Var x) { return softmax(x); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return log_softmax(x, 0); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return softmax(x, 3); }),
            Error("softmax of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
}

TEST(TensorFunctions, Arithmetic) {
  EXPECT_EQ(Of([](Var x) { return 1.0 / (1.0 + exp(-x)) - (x + 2.0) / x * 0.5; }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return x - mean(x, {0}); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return clamp(x, 1.0, 0.0); }),
            Error("clamp: got the range [1, 0], expected low <= high"));
}

TEST(TensorFunctions, Conditions) {
  EXPECT_EQ(Of([](Var x) { return x > 0.5; }), "f32[2,3,4]");  // returned as numbers
  EXPECT_EQ(Of([](Var x) { return where((x > 0.0) & !(x >= mean(x, {2}, true)), x, 1.0); }),
            "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return masked_fill(x, isnan(x) | isfinite(x), 0.0); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) {
              EXPECT_EQ((x < 0.0).dtype(), DType::kBool);
              EXPECT_EQ(to(x, DType::kI64).dtype(), DType::kI64);
              EXPECT_EQ(to(x, DType::kF32).value(), x.value());
              return logical_xor(x > 0.0, x < 1.0);
            }),
            "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return !x; }),
            Error("logical_not of %x f32[2,3,4]: expected bool, such as the result of a "
                  "comparison"));
  EXPECT_EQ(Of([](Var x) { return x & x; }),
            Error("logical_and: a is not bool: a f32[2,3,4], b f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return x < argmax(x, 0); }),
            Error("less: dtypes differ, expected one; convert with to(x, dtype): a f32[2,3,4], b "
                  "i64[3,4]"));
  EXPECT_EQ(Of([](Var x) { return to(x, DType::kU8); }),
            Error("to: cast: got dtype u8, expected f32, bf16, f16, i64 or bool"));
}

TEST(TensorFunctions, Indices) {
  EXPECT_EQ(Of([](Var) { return arange(5, 3, -1); }), "f32[5]");
  EXPECT_EQ(Of([](Var x) { return one_hot(argmax(x, -1), 7); }), "f32[2,3,7]");
  EXPECT_EQ(Of([](Var x) { return gather(x, 1, argmin(x, 1, true)); }), "f32[2,1,4]");
  EXPECT_EQ(Of([](Var x) { return gather(x, -1, slice(argmax(x, -1, true), 1, 0, 2)); }),
            "f32[2,2,1]");
  EXPECT_EQ(Of([](Var x) { return index_select(x, -1, arange(2)); }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var x) { return tril(x) + triu(x, 1) + flip(x, 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return index_select(x, 0, argmax(x, 0)); }),
            Error("index_select of %x f32[2,3,4]: got the index %reshape i64[3,4], expected a "
                  "vector"));
  EXPECT_EQ(Of([](Var) { return arange(0); }),
            Error("arange: got 0 elements, expected at least 1"));
  EXPECT_EQ(Of([](Var x) { return one_hot(x, 3); }),
            Error("one_hot of %x f32[2,3,4]: expected ids of dtype i64"));
  EXPECT_EQ(Of([](Var x) {
              return tril(sum(x, {0, 1}));
            }),
            Error("tril of %sum f32[4]: expected at least two dims"));
}

TEST(TensorFunctions, Constants) {
  EXPECT_EQ(Of([](Var) { return eye(3); }), "f32[3,3]");
  EXPECT_EQ(Of([](Var) { return linspace(0.0, 1.0, 1); }), "f32[1]");
  EXPECT_EQ(Of([](Var) { return linspace(0.0, 1.0, 0); }),
            Error("linspace: arange: got 0 elements, expected at least 1"));
  EXPECT_EQ(Of([](Var x) { return full({3, 4}, 0.5) * x; }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var) { return zeros({}) + ones({2}); }), "f32[2]");
  EXPECT_EQ(Of([](Var x) { return full_like(x, 2.0) + zeros_like(x) + ones_like(x); }),
            "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) {
              EXPECT_EQ(ones({2}, DType::kI64).dtype(), DType::kI64);
              EXPECT_EQ(zeros_like(x > 0.0).dtype(), DType::kBool);
              return x;
            }),
            "f32[2,3,4]");
  EXPECT_EQ(Of([](Var) {
              return ones({2, 0});
            }),
            Error("ones: got the shape [2,0], expected sizes of at least 1"));
}

TEST(TensorFunctions, Extremes) {
  EXPECT_EQ(Of([](Var x) { return max(x); }), "f32[]");
  EXPECT_EQ(Of([](Var x) { return min(x, {0, 2}, true); }), "f32[1,3,1]");
  EXPECT_EQ(Of([](Var x) { return max(x, {1, 2}); }), "f32[2]");
  EXPECT_EQ(Of([](Var x) { return argmax(x, 1); }), "f32[2,4]");
  EXPECT_EQ(Of([](Var x) { return top_k(x, 2).values; }), "f32[2,3,2]");
  EXPECT_EQ(Of([](Var x) { return any(x > 0.0, {1}) & all(x > 0.0, {1}); }), "f32[2,4]");
  EXPECT_EQ(Of([](Var x) { return logsumexp(x, {0, 1}) + vector_norm(x, 3.0, {0, 1}); }), "f32[4]");
  EXPECT_EQ(Of([](Var x) { return cumsum(x, -1) + pow(x, x) + pow(x, 3.0); }), "f32[2,3,4]");
  EXPECT_EQ(Of([](Var x) { return top_k(x, 5).values; }),
            Error("top_k: got k=5, expected 1 to the 4 elements of dim 2: x f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return argmax(x, 3); }),
            Error("argmax of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
  EXPECT_EQ(Of([](Var x) { return all(x); }), "f32[]");
}

// Though it is an op of another name that does not fit.
TEST(TensorFunctions, ErrorsNameTheFunctionThatWasCalled) {
  EXPECT_EQ(Of([](Var x) { return sort(x > 0.0).values; }),
            NotFloat("sort: top_k: x", "x bool[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return pow(argmax(x, 0), 2.5); }), NotFloat("pow: power: x"));
  EXPECT_EQ(Of([](Var x) { return norm(argmax(x, 0)); }),
            Error("norm of %reshape i64[3,4]: expected floating-point numbers"));
  EXPECT_EQ(Of([](Var x) { return variance(argmax(x, 0)); }), NotFloat("variance: sum: x"));
  EXPECT_EQ(Of([](Var x) { return vector_norm(argmax(x, 0), 1.0); }),
            Error("vector_norm of %reshape i64[3,4]: expected floating-point numbers"));
  EXPECT_EQ(Of([](Var x) { return clamp(greater(x, 0.0), 0.0, 1.0); }),
            NotFloat("clamp: clamp_min: x", "x bool[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return where(x, x, 0.0); }),
            Error("where: masked_fill: mask is not bool: x f32[2,3,4], mask f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) { return cross_entropy(x, x); }),
            Error("cross_entropy: softmax_cross_entropy: targets are not i64: logits f32[2,3,4], "
                  "targets f32[2,3,4]"));
  EXPECT_EQ(Of([](Var x) {
              return roll(concat({x, Var()}), 1, 0);
            }),
            Error("concat: input 1: the Var is empty; it was never given a value"));
  EXPECT_EQ(Of([](Var x) {
              struct Inner : nn::Module {
                using Module::Module;
                Var forward(Var y) override { return sort(y > 0.0).values; }
              } inner(nullptr, "inner");
              return inner(x);
            }),
            NotFloat("inner: sort: top_k: x", "x bool[2,3,4]"));
}

}  // namespace
}  // namespace zg
