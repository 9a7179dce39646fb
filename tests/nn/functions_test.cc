#include "framework/nn/functions.h"

#include <gtest/gtest.h>

#include "framework/nn/nn.h"
#include "tests/nn/traced_text.h"

namespace zg::nn {
namespace {

using Build = std::function<Var(Inputs&)>;

// The line of the last node before the output.
std::string LastNode(const Build& build) {
  const std::string text = TracedText([&](Inputs& in) -> Outputs { return build(in); });
  const size_t output = text.rfind("output ");
  if (output == std::string::npos) return text;
  const size_t end = output - 1;
  const size_t begin = text.rfind('\n', end - 1);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1));
}

TEST(FunctionsTest, ArithmeticOnEqualShapes) {
  const auto with = [](const std::function<Var(Var, Var)>& function) {
    return LastNode([&](Inputs& in) { return function(in.f32("a", {2, 3}), in.f32("b", {2, 3})); });
  };
  EXPECT_EQ(with([](Var a, Var b) { return a + b; }), "%add: f32[2,3] = add %a, %b");
  EXPECT_EQ(with([](Var a, Var b) { return a - b; }), "%subtract: f32[2,3] = subtract %a, %b");
  EXPECT_EQ(with([](Var a, Var b) { return a * b; }), "%multiply: f32[2,3] = multiply %a, %b");
  EXPECT_EQ(with([](Var a, Var) { return a * 2.0; }), "%scale: f32[2,3] = scale %a (factor=2.0)");
  EXPECT_EQ(with([](Var a, Var) { return 0.5 * a; }), "%scale: f32[2,3] = scale %a (factor=0.5)");
}

TEST(FunctionsTest, PaddedLogits) {
  const auto logits = [](int64_t multiple) {
    return LastNode([&](Inputs& in) {
      return padded_logits(in.f32("x", {2, 3}), in.f32("w", {5, 3}, Sbp::B()), multiple);
    });
  };
  EXPECT_EQ(logits(5), "%linear: f32[2,5] = linear %x, %w");
  EXPECT_EQ(logits(4), "%linear: f32[2,8] = linear %x, %pad_1, %pad");
}

TEST(FunctionsTest, Layers) {
  EXPECT_EQ(LastNode([](Inputs& in) {
              return relu(in.f32("x", {2, 3}));
            }),
            "%relu: f32[2,3] = relu %x");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return gelu(in.f32("x", {2, 3}));
            }),
            "%gelu: f32[2,3] = gelu %x");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return silu(in.f32("x", {2, 3}));
            }),
            "%silu: f32[2,3] = silu %x");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return add(in.f32("x", {2, 3}), in.f32("r", {3}, Sbp::B()));
            }),
            "%add: f32[2,3] = add %x, %r");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return linear(in.f32("x", {2, 3}), in.f32("w", {4, 3}, Sbp::B()));
            }),
            "%linear: f32[2,4] = linear %x, %w");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return linear(in.f32("x", {2, 3}), in.f32("w", {4, 3}, Sbp::B()),
                            in.f32("b", {4}, Sbp::B()));
            }),
            "%linear: f32[2,4] = linear %x, %w, %b");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return embedding(in.i64("ids", {2}), in.f32("table", {7, 3}, Sbp::B()));
            }),
            "%embedding: f32[2,3] = embedding %table, %ids");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return attention(in.f32("qkv", {2, 4, 12}), 2);
            }),
            "%attention: f32[2,4,4], %attention.1: f32[2,2,4] = attention %qkv (heads=2)");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return attention(in.f32("qkv", {2, 4, 12}), 1, false);
            }),
            "%attention: f32[2,4,4], %attention.1: f32[2,1,4] = attention %qkv (causal=false, "
            "heads=1)");
  EXPECT_EQ(
      LastNode([](Inputs& in) {
        return layer_norm(in.f32("x", {2, 3}), in.f32("g", {3}, Sbp::B()),
                          in.f32("b", {3}, Sbp::B()), 1e-6);
      }),
      "%layer_norm: f32[2,3], %layer_norm.1: f32[2], %layer_norm.2: f32[2] = layer_norm %x, %g, %b "
      "(epsilon=1e-06)");
}

TEST(FunctionsTest, RmsNorm) {
  EXPECT_EQ(LastNode([](Inputs& in) {
              return rms_norm(in.f32("x", {2, 3}), in.f32("w", {3}, Sbp::B()), 1e-5);
            }),
            "%rms_norm: f32[2,3], %rms_norm.1: f32[2] = rms_norm %x, %w (epsilon=1e-05)");
}

TEST(FunctionsTest, LossesAreMeansOverTheMicroBatch) {
  EXPECT_EQ(LastNode([](Inputs& in) {
              return mse_loss(in.f32("prediction", {2, 3}), in.f32("target", {2, 3}));
            }),
            "%mse_loss: f32[] = mse_loss %prediction, %target (divisor=6.0)");
  EXPECT_EQ(LastNode([](Inputs& in) {
              return nn::cross_entropy(in.f32("logits", {2, 4, 10}), in.i64("targets", {2, 4}));
            }),
            "%softmax_cross_entropy: f32[], %softmax_cross_entropy.1: f32[2,4] = "
            "softmax_cross_entropy %logits, %targets (divisor=8.0)");
}

TEST(FunctionsTest, VarsKnowTheirTypes) {
  TracedText([](Inputs& in) {
    const Var ids = in.i64("ids", {2, 5});
    EXPECT_FALSE(ids.empty());
    EXPECT_EQ(ids.shape(), (Shape{2, 5}));
    EXPECT_EQ(ids.dtype(), DType::kI64);
    EXPECT_EQ(ids.dim(0), 2);
    EXPECT_EQ(ids.dim(-1), 5);
    EXPECT_EQ(ids.value()->name, "ids");
    return ids;
  });
}

TEST(FunctionsTest, AnEmptyVarHasTheShapeOfAScalar) {
  EXPECT_EQ(Var().dim(0), 1);
  EXPECT_EQ(Var().shape(), Shape());
  EXPECT_EQ(Var().dtype(), DType::kF32);
}

TEST(FunctionsTest, DoNothingAfterAnError) {
  const std::string text = TracedText([](Inputs& in) {
    const Var x = in.f32("x", {2, 3});
    const Var bad = x + in.f32("y", {2, 4});
    EXPECT_TRUE(bad.empty());
    EXPECT_TRUE(relu(x).empty()) << "even of a good Var";
    EXPECT_TRUE(cross_entropy(bad, bad).empty());
    EXPECT_TRUE(in.f32("z", {2}).empty());
    EXPECT_EQ(bad.dim(5), 1);
    return bad;
  });
  EXPECT_EQ(
      text,
      "graph test, eval 'run': add: shapes differ, and cannot be broadcast to one: a f32[2,3], b "
      "f32[2,4]");
}

TEST(FunctionsTest, ReportADimThatDoesNotExist) {
  EXPECT_EQ(LastNode([](Inputs& in) {
              const Var x = in.f32("x", {2, 3});
              EXPECT_EQ(x.dim(2), 1);
              return x;
            }),
            "graph test, eval 'run': %x is f32[2,3], it has no dim 2");
}

TEST(FunctionsTest, ReportAnEmptyVar) {
  EXPECT_EQ(LastNode([](Inputs& in) { return in.f32("x", {2}) + Var(); }),
            "graph test, eval 'run': add: input 1: the Var is empty; it was never given a value");
}

TEST(FunctionsTest, ReportADropoutOutOfRange) {
  for (const double probability : {-0.5, 1.0}) {
    EXPECT_EQ(
        LastNode([&](Inputs& in) { return dropout(in.f32("x", {2}), probability); }),
        fmt::format("graph test, eval 'run': dropout: probability is {}, expected 0 <= probability "
                    "< 1",
                    probability));
  }
}

TEST(FunctionsTest, ReportPaddedLogits) {
  const auto error = [](const Shape& weight, int64_t multiple) {
    return LastNode([&](Inputs& in) {
      return padded_logits(in.f32("x", {2, 3}), in.f32("w", weight, Sbp::B()), multiple);
    });
  };
  EXPECT_EQ(error({5, 3}, 0),
            "graph test, eval 'run': padded_logits: got a multiple of 0, expected at least 1");
  EXPECT_EQ(error({5}, 4),
            "graph test, eval 'run': padded_logits: got a weight of shape [5], expected (V, C)");
}

TEST(FunctionsTest, OfOtherTokens) {
  const auto with = [](const std::function<Var(Var, Var)>& function) {
    return LastNode([&](Inputs& in) {
      return function(in.f32("x", {2, 5, 3}), in.f32("a", {3, 4}, Sbp::B()));
    });
  };
  EXPECT_EQ(with([](Var x, Var) { return recurrence_over_tokens(x, x); }),
            "%linear_recurrence: f32[2,5,3] = linear_recurrence %x, %x (dim=1)");
  EXPECT_EQ(with([](Var x, Var) { return with_earlier_tokens(x, 2); }),
            "%pad: f32[2,7,3] = pad %x (after=0, before=2, dim=1)");
  EXPECT_EQ(
      with([](Var x, Var a) { return selective_scan(x, x, a, matmul(x, a), matmul(x, a)); }),
      "%selective_scan: f32[2,5,3], %selective_scan.1: f32[2,3,4] = selective_scan %x, %x, %a, "
      "%reshape_3, %reshape_1");
  EXPECT_EQ(with([](Var x, Var a) { return recurrence_over_tokens(a, x); }),
            "graph test, eval 'run': recurrence_over_tokens of %x f32[2,5,3]: got a decay [3,4], "
            "expected both (B, S, ...)");
  EXPECT_EQ(with([](Var x, Var) { return with_earlier_tokens(x, 0); }),
            "graph test, eval 'run': with_earlier_tokens of %x f32[2,5,3]: got 0 earlier tokens, "
            "expected at least 1, of x (B, S, C)");
  EXPECT_EQ(
      with([](Var x, Var a) { return selective_scan(x, x, x, a, a); }),
      "graph test, eval 'run': selective_scan: a is not (D, N): x f32[2,5,3], step f32[2,5,3], "
      "a f32[2,5,3], b f32[3,4], c f32[3,4]");
}

}  // namespace
}  // namespace zg::nn
