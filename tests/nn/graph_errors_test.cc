#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "framework/nn/nn.h"

namespace zg::nn {
namespace {

// The error of a graph of 2 ranks for a training function of x (2, 3).
std::string TrainError(const std::function<Var(Inputs&, Var)>& build,
                       const optim::Optimizer& optimizer = optim::Sgd{}) {
  Graph graph("test");
  graph.train(optimizer, [&](Inputs& in) { return build(in, in.f32("x", {2, 3})); });
  return graph.status().message();
}

std::string EvalError(const std::function<Outputs(Inputs&)>& build) {
  Graph graph("test");
  graph.eval("run", build);
  return graph.status().message();
}

TEST(GraphErrorsTest, Loss) {
  EXPECT_EQ(TrainError([](Inputs&, Var) { return Var(); }),
            "graph test, train: the function returned no loss; return one, such as "
            "cross_entropy(...)");
  EXPECT_EQ(TrainError([](Inputs&, Var x) { return x; }),
            "graph test, train: the loss %x is f32[2,3], expected the scalar f32[]; take the "
            "mean(...), as losses do");
  EXPECT_EQ(
      TrainError([](Inputs& in, Var) {
        const Var same = in.f32("same", {2, 3}, Sbp::B());
        return mse_loss(same, same);
      }),
      "graph test, train: the loss %mse_loss does not depend on an input with placement "
      "S(dim), so that all ranks would compute the same\n  hint: the ranks share what such an "
      "input lists: samples, or the nodes of a graph whose losses are averaged; where there is nothing "
      "to share, add 0.0 * sum(x) of one");
}

TEST(GraphErrorsTest, Optimizer) {
  EXPECT_EQ(TrainError([](Inputs&, Var x) { return mse_loss(x, x); }, optim::Sgd{.lr = -1.0}),
            "graph test, train: Sgd: lr is -1, expected a finite number >= 0");
  optim::Muon muon;
  muon.a = std::nan("");
  EXPECT_EQ(
      TrainError([](Inputs&, Var x) { return mse_loss(x, x); }, muon),
      "graph test, train: Muon: a, b and c are nan, -4.775 and 2.0315, expected finite numbers");
}

TEST(GraphErrorsTest, Inputs) {
  EXPECT_EQ(TrainError([](Inputs& in, Var) { return in.i64("x", {2}); }),
            "graph test, train: two inputs are named 'x'");
  EXPECT_EQ(TrainError([](Inputs& in, Var) { return in.f32("", {2}); }),
            "graph test, train: input name '': expected letters, digits and '_', in parts joined "
            "by '.'");
  EXPECT_EQ(TrainError([](Inputs& in, Var) {
              return in.f32("y", {2, 0});
            }),
            "graph test, train: input 'y': got shape [2,0], expected dims >= 1");
  EXPECT_EQ(TrainError([](Inputs& in, Var) { return in.f32("y", {}); }),
            "graph test, train: input 'y': got placement S(0) for f32[], expected B, or S(dim) "
            "with one of its dims");
  EXPECT_EQ(TrainError([](Inputs& in, Var) { return in.f32("y", {2}, Sbp::S(1)); }),
            "graph test, train: input 'y': got placement S(1) for f32[2], expected B, or S(dim) "
            "with one of its dims");
  EXPECT_EQ(TrainError([](Inputs& in, Var) { return in.f32("y", {2}, Sbp::P()); }),
            "graph test, train: input 'y': got placement P for f32[2], expected B, or S(dim) with "
            "one of its dims");
}

TEST(GraphErrorsTest, Results) {
  EXPECT_EQ(EvalError([](Inputs&) { return Var(); }),
            "graph test, eval 'run': result 'result': the Var is empty; it was never given a "
            "value");
  EXPECT_EQ(EvalError([](Inputs&) { return Outputs{}; }),
            "graph test, eval 'run': the function returned no result");
  EXPECT_EQ(EvalError([](Inputs& in) {
              const Var x = in.f32("x", {2});
              return Outputs{{"a", x}, {"a", x}};
            }),
            "graph test, eval 'run': two results are named 'a'");
  EXPECT_EQ(EvalError([](Inputs& in) {
              return Outputs{{"a b", in.f32("x", {2})}};
            }),
            "graph test, eval 'run': result name 'a b': expected letters, digits and '_', in parts "
            "joined by '.'");
}

TEST(GraphErrorsTest, VarsOfAnotherFunction) {
  Graph graph("test");
  Var kept;
  graph.eval("first", [&](Inputs& in) { return kept = in.f32("x", {2}); });
  graph.eval("second", [&](Inputs&) { return relu(kept); });
  EXPECT_EQ(graph.status().message(),
            "graph test, eval 'second': relu: input 0: the Var comes from another train or eval "
            "function, or from an Eager; each of them makes its own");

  Graph other("other");
  other.eval("run", [&](Inputs&) { return kept; });
  EXPECT_EQ(other.status().message(),
            "graph other, eval 'run': result 'result': the Var comes from another train or eval "
            "function, or from an Eager; each of them makes its own");
}

TEST(GraphErrorsTest, CallsThatDoNotFit) {
  const auto identity = [](Inputs& in) { return in.f32("x", {2}); };
  const auto loss = [](Inputs& in) {
    const Var x = in.f32("x", {2});
    return mse_loss(x, x);
  };
  Graph twice("twice");
  twice.train(optim::Sgd{}, loss);
  twice.train(optim::Sgd{}, loss);
  EXPECT_EQ(twice.status().message(),
            "graph twice, train: called twice; a graph has one training loss");

  Graph same("same");
  same.eval("run", identity);
  same.eval("run", identity);
  EXPECT_EQ(same.status().message(),
            "graph same, eval 'run': the graph has an eval of that name already; give this one "
            "another");

  Graph nameless("nameless");
  nameless.eval("", identity);
  EXPECT_EQ(nameless.status().message(),
            "graph nameless, eval '': eval name '': expected letters, digits and '_', in parts "
            "joined by '.'");

  Graph nested("nested");
  nested.eval("outer", [&](Inputs& in) {
    nested.eval("inner", identity);
    return in.f32("x", {2});
  });
  EXPECT_EQ(nested.status().message(),
            "graph nested, eval 'inner': called inside the function of eval 'outer'; call it after "
            "that");

  Graph empty("empty");
  empty.eval("run", std::function<Outputs(Inputs&)>());
  EXPECT_EQ(empty.status().message(), "graph empty, eval 'run': got an empty function");
}

std::string SizesError(const std::vector<int64_t>& sizes,
                       const std::function<Var(Var x, int64_t size)>& forward) {
  Graph graph("test");
  graph.train(optim::Sgd{}, sizes, [&](Inputs& in, int64_t size) {
    const Var y = forward(in.f32("x", {2, size}), size);
    return mse_loss(y, y);
  });
  return graph.status().message();
}

TEST(GraphErrorsTest, Sizes) {
  const auto same = [](Var x, int64_t) { return x; };
  EXPECT_EQ(SizesError({4, 3}, same), "");
  for (const auto& [sizes, text] : std::map<std::vector<int64_t>, std::string>{
           {{}, "[]"}, {{3, 0}, "[0, 3]"}, {{3, 4, 3}, "[3, 3, 4]"}}) {
    EXPECT_EQ(SizesError(sizes, same),
              "graph test, train: sizes: got " + text + ", expected different numbers > 0");
  }
  EXPECT_EQ(
      SizesError({3, 4}, [](Var x, int64_t size) { return size == 3 ? slice(x, 1, 0, 9) : x; }),
      "graph test, train: size 3: slice of %x f32[2,3]: got 0 to 9 in steps of 1 along dim 1, "
      "expected a range inside its 3 elements");
  struct Model : Module {
    Parameter a{this, "a", {1}, Initializer::Zeros()};
    Parameter b{this, "b", {1}, Initializer::Zeros()};
    Var forward(Var x) override { return x.dim(1) == 3 ? x + b : x + a; }
  } model;
  const auto forward = [&](Var x, int64_t) { return model(x); };
  EXPECT_EQ(
      SizesError({3, 4}, forward),
      "graph test, train: size 3: parameter 1 is 'b' f32[1], but 'a' f32[1] at size 4; use the same "
      "parameters in the same order");

  Graph graph("test");
  graph.eval("run", [](Inputs& in) { return in.f32("x", {2}); });
  graph.train(optim::Sgd{}, {3}, [](Inputs& in, int64_t size) { return in.f32("x", {size}); });
  EXPECT_EQ(
      graph.status().message(),
      "graph test, train: eval 'run' was added before; with several sizes call train() first");
}

TEST(GraphErrorsTest, OnlyTheFirstIsKept) {
  Graph graph("test");
  graph.train(optim::Sgd{}, [](Inputs& in) { return in.f32("x", {0}); });
  const std::string first = graph.status().message();
  bool called = false;
  graph.eval("run", [&](Inputs&) {
    called = true;
    return Var();
  });
  EXPECT_FALSE(called);
  EXPECT_EQ(graph.status().message(), first);
  EXPECT_EQ(graph.check().message(), first);
}

TEST(GraphErrorsTest, AnExceptionLeavesAProgramThatIsUnfinished) {
  Graph graph("test");
  EXPECT_THROW(graph.eval("run", [](Inputs&) -> Outputs { throw 1; }), int);
  EXPECT_EQ(graph.check().message(),
            "graph test, eval 'run': its function threw an exception, which left the program "
            "unfinished; make another graph");
  EXPECT_EQ(EvalError([](Inputs& in) { return in.f32("x", {2}); }), "");
}

std::string UnfreezeError(const optim::PastSteps& past) {
  Parameter scale(nullptr, "scale", {3}, Initializer::Ones());
  Graph graph("test");
  graph.train(optim::Sgd{}, [&](Inputs& in) { return mean(in.f32("x", {2, 3}) * scale); });
  graph.freeze("scale");
  graph.unfreeze("scale", past);
  return graph.status().message();
}

TEST(GraphErrorsTest, Updates) {
  EXPECT_EQ(UnfreezeError({3, {}}), "");
  EXPECT_EQ(
      UnfreezeError({-1, {}}),
      "graph test, unfreeze 'scale': past steps: got -1, expected the number of steps so far, "
      "or 0");
  EXPECT_EQ(
      UnfreezeError({3, {{"critic", 4}}}),
      "graph test, unfreeze 'scale': past steps: group 'critic' skipped 4, expected 0 to all 3");
}

TEST(GraphErrorsTest, AGraphNeedsAProgram) {
  EXPECT_EQ(Graph("empty").check().message(), "graph empty: neither train() nor eval() was called");
}

}  // namespace
}  // namespace zg::nn
