#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

constexpr double kRootTwoOverPi = 0.7978845608028654;

double Gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(kRootTwoOverPi * (x + 0.044715 * x * x * x)));
}

double GeluSlope(double x) {
  const double t = std::tanh(kRootTwoOverPi * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) +
         0.5 * x * (1.0 - t * t) * kRootTwoOverPi * (1.0 + 3.0 * 0.044715 * x * x);
}

struct Case {
  std::string op;
  int num_inputs;
  ir::Attributes attributes;
  std::function<double(double, double)> formula;
};

const std::vector<Case>& Cases() {
  static const auto* cases = new std::vector<Case>{
      {"add", 2, {}, [](double a, double b) { return a + b; }},
      {"subtract", 2, {}, [](double a, double b) { return a - b; }},
      {"multiply", 2, {}, [](double a, double b) { return a * b; }},
      {"scale", 1, {{"factor", 0.3}}, [](double a, double) { return a * 0.3; }},
      {"relu", 1, {}, [](double a, double) { return std::max(a, 0.0); }},
      {"relu_grad", 2, {}, [](double dy, double y) { return y > 0.0 ? dy : 0.0; }},
      {"gelu", 1, {}, [](double a, double) { return Gelu(a); }},
      {"gelu_grad", 2, {}, [](double dy, double x) { return dy * GeluSlope(x); }},
  };
  return *cases;
}

std::vector<float> RunCase(const Case& test, const std::vector<float>& a,
                           const std::vector<float>& b, int64_t misalignment = 0,
                           int in_place = -1) {
  const TensorType type = F32({static_cast<int64_t>(a.size())});
  KernelRunner runner(test.op, std::vector<TensorType>(test.num_inputs, type), {type},
                      test.attributes, misalignment);
  runner.SetInput(0, a);
  if (test.num_inputs == 2) runner.SetInput(1, b);
  if (in_place >= 0) runner.PutInPlace(0, in_place);
  EXPECT_TRUE(runner.Run().ok());
  return runner.output(0);
}

TEST(Elementwise, MatchesTheFormula) {
  const int64_t count = 5003;
  const std::vector<float> a = Random(count, 1, -8.0f, 8.0f);
  const std::vector<float> b = Random(count, 2, -8.0f, 8.0f);
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.op);
    std::vector<double> want;
    for (int64_t i = 0; i < count; ++i) want.push_back(test.formula(a[i], b[i]));
    ExpectNear(RunCase(test, a, b), want, 2e-6, 1e-6);
  }
}

TEST(Elementwise, InPlaceHasTheSameBits) {
  const std::vector<float> a = Random(1003, 1, -8.0f, 8.0f);
  const std::vector<float> b = Random(1003, 2, -8.0f, 8.0f);
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.op);
    for (int input = 0; input < test.num_inputs; ++input) {
      ExpectSameBits(RunCase(test, a, b, 0, input), RunCase(test, a, b));
    }
  }
}

// Body and tail compute alike, regardless of an element's position and the memory's alignment.
TEST(Elementwise, BitsDoNotDependOnThePlace) {
  const int64_t count = 517;
  const std::vector<float> a = Random(count, 1, -8.0f, 8.0f);
  const std::vector<float> b = Random(count, 2, -8.0f, 8.0f);
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.op);
    const std::vector<float> whole = RunCase(test, a, b);
    for (const auto& [begin, end] :
         std::vector<std::pair<int, int>>{{0, 1}, {3, 20}, {1, 48}, {64, 517}, {500, 517}}) {
      const auto cut = [begin = begin, end = end](const std::vector<float>& values) {
        return std::vector<float>(values.begin() + begin, values.begin() + end);
      };
      ExpectSameBits(RunCase(test, cut(a), cut(b), begin % 4), cut(whole));
    }
  }
}

// In 16 bits: computed in f32, and rounded once.
TEST(Elementwise, HalfIsTheRoundedResult) {
  const int64_t count = 1003;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    std::vector<float> a = Random(count, 1, -8.0f, 8.0f);
    std::vector<float> b = Random(count, 2, -8.0f, 8.0f);
    RoundFloats(dtype, a.data(), count);
    RoundFloats(dtype, b.data(), count);
    for (const Case& test : Cases()) {
      SCOPED_TRACE(test.op);
      std::vector<float> want = RunCase(test, a, b);
      RoundFloats(dtype, want.data(), count);
      for (int in_place = -1; in_place < test.num_inputs; ++in_place) {
        const TensorType type = {dtype, {count}};
        KernelRunner runner(test.op, std::vector<TensorType>(test.num_inputs, type), {type},
                            test.attributes, 3);
        runner.SetInput(0, a);
        if (test.num_inputs == 2) runner.SetInput(1, b);
        if (in_place >= 0) runner.PutInPlace(0, in_place);
        ASSERT_TRUE(runner.Run().ok());
        ExpectSameBits(runner.output(0), want);
      }
    }
  }
}

TEST(Elementwise, NaNStaysNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string op : {"relu", "gelu", "gelu_grad", "scale"}) {
    for (const Case& test : Cases()) {
      if (test.op != op) continue;
      EXPECT_TRUE(std::isnan(RunCase(test, {nan}, {nan})[0])) << op;
    }
  }
}

TEST(Elementwise, GeluFarOut) {
  const Case& gelu = Cases()[6];
  const std::vector<float> y = RunCase(gelu, {-1000.0f, -20.0f, 20.0f, 1000.0f}, {});
  EXPECT_NEAR(y[0], 0.0, 1e-30);
  EXPECT_NEAR(y[1], 0.0, 1e-30);
  EXPECT_EQ(y[2], 20.0f);
  EXPECT_EQ(y[3], 1000.0f);
}

TEST(Elementwise, OtherDTypesAreRejected) {
  const TensorType small{DType::kI32, {4}};
  const Status status = MakeStatus("relu", {small}, {small}, {});
  EXPECT_EQ(status.message(),
            "relu: input 0 is i32[4], the CPU kernel takes f32, bf16, f16, i64 and bool");
}

std::vector<float> RunFused(const std::string& program, const std::vector<std::vector<float>>& in,
                            int in_place = -1) {
  const TensorType type = F32({static_cast<int64_t>(in[0].size())});
  KernelRunner runner("fused_elementwise", std::vector<TensorType>(in.size(), type), {type},
                      {{"program", program}});
  for (size_t i = 0; i < in.size(); ++i) runner.SetInput(static_cast<int>(i), in[i]);
  if (in_place >= 0) runner.PutInPlace(0, in_place);
  EXPECT_TRUE(runner.Run().ok());
  return runner.output(0);
}

TEST(FusedElementwise, HasTheBitsOfTheSeparateOps) {
  for (const int64_t count : {1, 100, 2048, 2049, 5000}) {
    const std::vector<float> a = Random(count, 1, -3.0f, 3.0f);
    const std::vector<float> b = Random(count, 2, -3.0f, 3.0f);
    const auto op = [&](int i, const std::vector<float>& x, const std::vector<float>& y) {
      return RunCase(Cases()[i], x, y);
    };
    const std::vector<float> sum = op(0, a, b);
    const std::vector<float> gelu = op(6, sum, {});
    const std::vector<float> scaled = op(3, gelu, {});
    const std::vector<float> want = op(1, op(2, scaled, sum), a);
    const std::string program =
        "t0=add(i0,i1);t1=gelu(t0);t2=scale(t1,factor=0.3);t3=multiply(t2,t0);t4=subtract(t3,i0)";
    ExpectSameBits(RunFused(program, {a, b}), want);
    ExpectSameBits(RunFused(program, {a, b}, 0), want);
    ExpectSameBits(RunFused(program, {a, b}, 1), want);
  }
}

TEST(FusedElementwise, BadProgramsAreRejected) {
  const auto message = [](const std::string& program) {
    return MakeStatus("fused_elementwise", {F32({4}), F32({4})}, {F32({4})}, {{"program", program}})
        .message();
  };
  const auto text = [](const std::string& program, const std::string& problem) {
    return "fused_elementwise: program \"" + program + "\": " + problem;
  };
  EXPECT_EQ(message(""), text("", "got \"\", expected \"t0=op(...)\""));
  EXPECT_EQ(message("t1=relu(i0)"),
            text("t1=relu(i0)", "got \"t1=relu(i0)\", expected \"t0=op(...)\""));
  EXPECT_EQ(message("t0=softmax(i0)"),
            text("t0=softmax(i0)", "\"softmax\" is not an elementwise op"));
  EXPECT_EQ(message("t0=relu(i0"), text("t0=relu(i0", "\"t0=relu(i0\" has no closing parenthesis"));
  EXPECT_EQ(message("t0=add(i0)"), text("t0=add(i0)", "add takes 2 operands, got 1"));
  EXPECT_EQ(
      message("t0=add(i0,i2)"),
      text("t0=add(i0,i2)", "operand \"i2\" is neither one of the 2 inputs nor an earlier result"));
  EXPECT_EQ(
      message("t0=relu(t0)"),
      text("t0=relu(t0)", "operand \"t0\" is neither one of the 2 inputs nor an earlier result"));
  EXPECT_EQ(message("t0=scale(i0)"), text("t0=scale(i0)", "scale needs its attribute factor"));
  EXPECT_EQ(message("t0=relu(i0,factor=2.0)"),
            text("t0=relu(i0,factor=2.0)", "\"factor=2.0\" is not an attribute of relu"));
  EXPECT_EQ(message("t0=relu(i0);t1=relu(i1)"),
            text("t0=relu(i0);t1=relu(i1)", "t0 is never used"));
}

// The mask is the same for dropout and its gradient, differs between steps, micro-batches and
// streams, and keeps about 1 - p of the elements.
TEST(Dropout, Mask) {
  const int64_t count = 20001;
  const TensorType type = F32({count});
  const auto run = [&](const std::string& op, StepContext step, int64_t stream) {
    KernelRunner runner(op, {type}, {type}, {{"probability", 0.25}, {"stream", stream}});
    runner.SetInput(0, std::vector<float>(count, 3.0f));
    runner.step() = step;
    EXPECT_TRUE(runner.Run().ok());
    return runner.output(0);
  };
  const StepContext step{7, 3, 1};
  const std::vector<float> y = run("dropout", step, 5);
  int64_t kept = 0;
  for (const float value : y) {
    ASSERT_TRUE(value == 0.0f || value == 4.0f) << value;
    kept += value != 0.0f;
  }
  EXPECT_NEAR(static_cast<double>(kept) / count, 0.75, 0.01);
  ExpectSameBits(run("dropout_grad", step, 5), y);
  EXPECT_NE(run("dropout", {8, 3, 1}, 5), y);
  EXPECT_NE(run("dropout", {7, 4, 1}, 5), y);
  EXPECT_NE(run("dropout", {7, 3, 2}, 5), y);
  EXPECT_NE(run("dropout", step, 6), y);
}

}  // namespace
}  // namespace zg::testing
