#include "framework/nn/module.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "tests/nn/traced_text.h"

namespace zg::nn {
namespace {

// For a graph or a module.
template <typename Owner>
std::vector<std::string> NamesOf(const Owner& owner) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : owner.named_parameters()) names.push_back(parameter.name);
  return names;
}

struct Shift : Module {
  Parameter value{this, "value", {3}, Initializer::Zeros()};
  using Module::Module;
  Var forward(Var x) override { return add(x, value); }
};

struct Net : Module {
  Linear hidden{this, "hidden", 3, 3};
  ModuleList<Shift> shifts{this, "shifts", 2};
  Sequential tail{this, "tail"};

  explicit Net(const std::string& name = "") : Module(nullptr, name) {
    tail.add<ReLU>();
    tail.add<Linear>(3, 1, LinearOptions{.has_bias = false});
  }
  Var forward(Var x) {
    x = hidden(x);
    for (Shift& shift : shifts) x = shift(x);
    return tail(x);
  }
};

TEST(ModuleTest, PathsComeFromTheTree) {
  Net net;
  EXPECT_EQ(net.path(), "");
  EXPECT_EQ(net.hidden.path(), "hidden");
  EXPECT_EQ(net.hidden.weight.path(), "hidden.weight");
  EXPECT_EQ(net.shifts.size(), 2);
  EXPECT_EQ(net.shifts[1].value.path(), "shifts.1.value");
  Net named("critic");
  EXPECT_EQ(named.shifts[0].value.path(), "critic.shifts.0.value");
}

TEST(ModuleTest, NodesBelongToTheModuleThatMadeThem) {
  Net net;
  const std::string text = TracedText([&](Inputs& in) {
    return scale(net(in.f32("x", {2, 3})), 2.0);
  });
  EXPECT_EQ(text,
            "%x: f32[2,3] = input (dtype=\"f32\", name=\"x\", shape=[2,3])\n"
            "%hidden.linear: f32[2,3] = linear %x, %hidden.weight, %hidden.bias  // hidden\n"
            "%shifts.0.add: f32[2,3] = add %hidden.linear, %shifts.0.value  // "
            "shifts.0\n"
            "%shifts.1.add: f32[2,3] = add %shifts.0.add, "
            "%shifts.1.value  // shifts.1\n"
            "%tail.0.relu: f32[2,3] = relu %shifts.1.add  // tail.0\n"
            "%tail.1.linear: f32[2,1] = linear %tail.0.relu, %tail.1.weight  // tail.1\n"
            "%scale: f32[2,1] = scale %tail.1.linear (factor=2.0)\n"
            "output %scale (name=\"result\")\n");
}

TEST(ModuleTest, ParametersBelongToTheModelFromTheirConstruction) {
  Net net;
  EXPECT_EQ(NamesOf(net),
            (std::vector<std::string>{"hidden.weight", "hidden.bias", "shifts.0.value",
                                      "shifts.1.value", "tail.1.weight"}));
  EXPECT_EQ(net.named_parameters()[0].shape, (Shape{3, 3}));
  EXPECT_EQ(net.num_parameters(), 9 + 3 + 3 + 3 + 3);
  EXPECT_EQ(NamesOf(net.hidden), (std::vector<std::string>{"hidden.weight", "hidden.bias"}));
  EXPECT_EQ(net.shifts.num_parameters(), 3 + 3);
  net.hidden.bias.reset();
  net.tail.add<Linear>(1, 1);
  EXPECT_EQ(NamesOf(net),
            (std::vector<std::string>{"hidden.weight", "shifts.0.value", "shifts.1.value",
                                      "tail.1.weight", "tail.2.weight", "tail.2.bias"}));
  Net named("critic");
  EXPECT_EQ(NamesOf(named.tail), (std::vector<std::string>{"critic.tail.1.weight"}));
}

TEST(ModuleTest, ModulesAndParametersOfATree) {
  Net net;
  std::vector<std::string> names;
  for (const NamedModule& named : net.named_modules()) {
    EXPECT_EQ(named.module->path(), named.name);
    names.push_back(named.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"", "hidden", "shifts", "shifts.0", "shifts.1", "tail",
                                             "tail.0", "tail.1"}));
  EXPECT_EQ(net.named_modules()[1].module, &net.hidden);
  EXPECT_EQ(net.shifts.named_modules().size(), 3u);
  EXPECT_EQ(net.parameters().size(), 5u);
  EXPECT_EQ(net.parameters()[2], &net.shifts[0].value);
  EXPECT_TRUE(net.buffers().empty());
  BatchNorm1d norm(nullptr, "norm", 3);
  ASSERT_EQ(norm.buffers().size(), 2u);
  EXPECT_EQ(norm.buffers()[0]->path(), "norm.running_mean");
  {
    const Shift more(&net, "more");
    EXPECT_EQ(net.named_modules().back().name, "more");
  }
  EXPECT_EQ(net.named_modules().size(), 8u);
}

TEST(ModuleTest, ApplyGivesOtherInitialValues) {
  Net net;
  net.apply([](Module& module) {
    if (auto* linear = dynamic_cast<Linear*>(&module)) {
      linear->weight.set_initializer(Initializer::Constant(0.5));
    }
  });
  Eager eager;
  EXPECT_EQ(Tensor(net.hidden.weight).values(), std::vector<float>(9, 0.5f));
  EXPECT_EQ(Tensor(net.shifts[0].value).values(), std::vector<float>(3, 0.0f));
}

// "a" is not the module of "ab".
TEST(ModuleTest, ModulesWhoseNamesBeginAlikeAreApart) {
  struct Model : Module {
    Shift a{this, "a"};
    Shift ab{this, "ab"};
  } model;
  EXPECT_EQ(NamesOf(model.a), std::vector<std::string>{"a.value"});
  EXPECT_EQ(NamesOf(model.ab), std::vector<std::string>{"ab.value"});
}

TEST(ModuleTest, TwoParametersOfOneNameAreAnError) {
  struct Twins : Module {
    Shift first{this, "shift"};
    Shift second{this, "shift"};
    Var forward(Var x) override { return second(x); }
  } twins;
  Graph graph("test");
  graph.train(optim::Sgd(), [&](Inputs& in) {
    const Var x = in.f32("x", {2, 3});
    return mse_loss(twins(x), x);
  });
  EXPECT_EQ(
      graph.status().message(),
      "graph test, train: shift: two parameters or buffers of the model are named 'shift.value': one of "
      "module 'shift', one of module 'shift'; give one of them, or its module, another name");

  struct Crossed : Module {
    Parameter whole{this, "shift.value", {3}, Initializer::Zeros()};
    Shift shift{this, "shift"};
    Var forward(Var x) override { return add(x, whole); }
  } crossed;
  EXPECT_EQ(
      TracedText([&](Inputs& in) {
        return crossed(in.f32("x", {2, 3}));
      }),
      "graph test, eval 'run': two parameters or buffers of the model are named 'shift.value': one of "
      "module 'shift', one of module ''; give one of them, or its module, another name");
}

TEST(ModuleTest, AModuleCanBeReplaced) {
  struct Model : Module {
    std::unique_ptr<Shift> head = std::make_unique<Shift>(this, "head");
    Var forward(Var x) override { return (*head)(x); }
  } model;
  model.head = std::make_unique<Shift>(&model, "head");
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return model(in.f32("x", {2, 3})); });
  EXPECT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(NamesOf(model), std::vector<std::string>{"head.value"});
}

TEST(ModuleTest, AParameterThatAGraphDoesNotUseIsNotInIt) {
  Net net;
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return net.hidden(in.f32("x", {2, 3})); });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(NamesOf(graph), (std::vector<std::string>{"hidden.weight", "hidden.bias"}));
  EXPECT_EQ(net.named_parameters().size(), 5u);
}

// The header promises an exit code of 1 and a message, instead of a Var without a value.
TEST(ModuleDeathTest, OutsideOfATrace) {
  const auto expected = [](const std::string& caller) {
    return "^error: " + caller +
           " was used outside the function given to Graph::train or Graph::eval, where a Var has "
           "no value; use it inside that function, or while a zg::Eager exists\n$";
  };
  const auto exits = ::testing::ExitedWithCode(1);
  EXPECT_EXIT(relu(Var()), exits, expected("relu"));
  EXPECT_EXIT(Var() + Var(), exits, expected("add"));
  EXPECT_EXIT(dropout(Var(), 0.5), exits, expected("dropout"));
  EXPECT_EXIT(cross_entropy(Var(), Var()), exits, expected("cross_entropy"));
  Net net;
  EXPECT_EXIT(net(Var()), exits, expected("a model"));
  EXPECT_EXIT(net.hidden(Var()), exits, expected("module 'hidden'"));
  EXPECT_EXIT((void)static_cast<Var>(net.hidden.weight), exits,
              expected("parameter 'hidden.weight'"));
  EXPECT_EXIT(nn::ConstantParameters{net}, exits, expected("ParameterValues"));
  Graph graph("test");  // unusable once its function has returned
  graph.eval("run", [&](Inputs& in) { return net(in.f32("x", {2, 3})); });
  EXPECT_EXIT(net(Var()), exits, expected("a model"));
}

TEST(ModuleTest, ParametersBecomeVariablesAtTheirFirstUse) {
  Net net;
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return net(in.f32("x", {2, 3})); });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(NamesOf(graph),
            (std::vector<std::string>{"hidden.weight", "hidden.bias", "shifts.0.value",
                                      "shifts.1.value", "tail.1.weight"}));
  EXPECT_EQ(graph.num_parameters(), 9 + 3 + 3 + 3 + 3);
}

TEST(ModuleTest, AModuleUsedTwiceHasOneSetOfParameters) {
  Linear square(nullptr, "square", 3, 3);
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return square(square(in.f32("x", {2, 3}))); });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(NamesOf(graph), (std::vector<std::string>{"square.weight", "square.bias"}));
}

TEST(ModuleTest, OneModuleServesSeveralGraphs) {
  Linear layer(nullptr, "layer", 3, 3);
  Graph first("first");
  Graph second("second");
  for (Graph* graph : {&first, &second}) {
    graph->eval("run", [&](Inputs& in) { return layer(in.f32("x", {2, 3})); });
    ASSERT_TRUE(graph->status().ok()) << graph->status().message();
    EXPECT_EQ(graph->named_parameters().size(), 2u);
  }
}

TEST(ModuleTest, TwoModelsInOneGraphNeedNames) {
  Net generator("generator");
  Net critic("critic");
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) {
    const Var x = in.f32("x", {2, 3});
    return generator(x) + critic(x);
  });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(graph.named_parameters().size(), 10u);

  Net one;
  Net other;
  EXPECT_EQ(TracedText([&](Inputs& in) {
              const Var x = in.f32("x", {2, 3});
              return one(x) + other(x);
            }),
            "graph test, eval 'run': hidden: two variables are named 'hidden.weight'; give one of "
            "the modules another name, and members of modules their parent: {this, \"name\", ...}");
}

TEST(ModuleTest, ParametersKeepTheirNamesWhenAValueHasIt) {
  Parameter scale_parameter(nullptr, "scale", {3}, Initializer::Ones());
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return add(in.f32("x", {2, 3}) * 2.0, scale_parameter); });
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(graph.ir().FindValue("scale")->producer->op->name, "variable");
}

TEST(ModuleTest, ErrorsNameTheModule) {
  struct Inner : Module {
    using Module::Module;
    Linear wide{this, "wide", 4, 4};
    Var forward(Var x) override { return wide(x); }
  };
  struct Model : Module {
    ModuleList<Inner> blocks{this, "blocks", 2};
    Var forward(Var x) override { return blocks[1](x); }
  } model;
  EXPECT_EQ(TracedText([&](Inputs& in) {
              return model(in.f32("x", {2, 3}));
            }),
            "graph test, eval 'run': blocks.1.wide: linear: inner dims differ: x f32[2,3], weight "
            "f32[4,4], bias f32[4]");
}

TEST(ModuleTest, AForwardCanFail) {
  struct Picky : Module {
    using Module::Module;
    Var forward(Var x) override {
      if (x.dim(0) != 8) return fail(InvalidArgument("got a batch of {}, expected 8", x.dim(0)));
      return x;
    }
  } picky(nullptr, "picky");
  EXPECT_EQ(TracedText([&](Inputs& in) {
              return picky(in.f32("x", {2, 3}));
            }),
            "graph test, eval 'run': picky: got a batch of 2, expected 8");
}

TEST(ModuleTest, AModuleWithoutForwardCannotBeCalled) {
  Module module(nullptr, "empty");
  EXPECT_EQ(TracedText([&](Inputs& in) {
              return module(in.f32("x", {2, 3}));
            }),
            "graph test, eval 'run': empty: the module has no `Var forward(Var)`, so it cannot be "
            "called");
}

TEST(ModuleTest, SeveralArgumentsTakeAnOperatorOfOnesOwn) {
  struct Mix : Module {
    using Module::Module;
    Var operator()(Var a, Var b) {
      Scope scope(*this);
      return a + b;
    }
  } mix(nullptr, "mix");
  EXPECT_EQ(TracedText([&](Inputs& in) {
              const Var a = in.f32("a", {2}), b = in.f32("b", {2});
              return mix(a, b);
            }),
            "%a: f32[2] = input (dtype=\"f32\", name=\"a\", shape=[2])\n"
            "%b: f32[2] = input (dtype=\"f32\", name=\"b\", shape=[2])\n"
            "%mix.add: f32[2] = add %a, %b  // mix\n"
            "output %mix.add (name=\"result\")\n");
}

TEST(ModuleTest, NamesAreChecked) {
  for (const std::string name : {"", "a b", "a..b", ".a", "a.", "ä"}) {
    Parameter parameter(nullptr, name, {3}, Initializer::Ones());
    EXPECT_EQ(TracedText([&](Inputs& in) { return add(in.f32("x", {3}), parameter); }),
              "graph test, eval 'run': parameter name '" + name +
                  "': expected letters, digits and '_', in parts joined by '.'");
  }
}

TEST(ModuleTest, ParameterShapesAreChecked) {
  Linear linear(nullptr, "narrow", 0, 3);
  EXPECT_EQ(TracedText([&](Inputs& in) {
              return linear(in.f32("x", {2, 3}));
            }),
            "graph test, eval 'run': narrow: parameter 'narrow.weight': got shape [3,0], expected "
            "dims >= 1");
}

}  // namespace
}  // namespace zg::nn
