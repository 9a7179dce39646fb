// Functions of Vars give PyTorch's results and gradients (tests/reference/make_functions.py made
// them, in double precision).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/zero/reference_functions.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

// Relative to the largest element, at least 1: gradients come from a difference of parameters.
constexpr double kTolerance = 4e-6;

std::map<std::string, Function> AllFunctions() {
  std::map<std::string, Function> all;
  for (const auto* functions : {&TensorFunctions(), &ImageFunctions(), &ModuleFunctions(),
                                &ScatterFunctions(), &MatrixFunctions(), &ShapeFunctions()}) {
    all.insert(functions->begin(), functions->end());
  }
  return all;
}

std::vector<float> Floats(const Json& numbers) { return numbers.get<std::vector<float>>(); }

void ExpectNear(const std::vector<float>& got, const Json& want) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1.0;
  for (const Json& number : want) largest = std::max(largest, std::abs(number.get<double>()));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i].get<double>(), kTolerance * largest) << "element " << i;
  }
}

std::vector<float> ValuesOf(Trainer& trainer, const std::string& name) {
  const ir::StoredTensor* tensor = trainer.executor().graph().FindTensor(name);
  const LocalPart part = trainer.executor().LocalPartOf(*tensor).value();
  const auto* const values = reinterpret_cast<const float*>(part.data);
  return std::vector<float>(values, values + part.count);
}

class FunctionReference : public ::testing::TestWithParam<std::string> {};

// The operands are parameters, the loss is the weighted sum, and a step of size 1 subtracts the
// gradient from them.
TEST_P(FunctionReference, GivesPyTorchsResultsAndGradients) {
  RegisterAllOps();
  const Json file = Json::parse(std::ifstream("tests/reference/functions.json"));
  const auto& cases = file["cases"];
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [](const Json& one) { return one["name"] == GetParam(); });
  ASSERT_NE(found, cases.end()) << "make_functions.py has no such case";
  const Json& c = *found;
  const Function function = AllFunctions().at(GetParam());
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    const std::vector<int64_t> b_shape = c["b_shape"], y_shape = c["y_shape"];
    nn::Parameter a(nullptr, "a", {2, 3, 4}, Initializer::Zeros());
    nn::Parameter b(nullptr, "b", Shape(b_shape), Initializer::Zeros());
    // Operands are the fed values plus the parameters, which are 0 before the step.
    const auto result = [&](Inputs& in) {
      return function(in.f32("x", {2, 3, 4}, Sbp::B()) + a,
                      in.f32("z", Shape(b_shape), Sbp::B()) + b);
    };
    Graph graph("g");
    graph.train(optim::Sgd{.lr = 1.0}, [&](Inputs& in) {
      return sum(result(in) * in.f32("weights", Shape(y_shape), Sbp::B())) +
             sum(in.f32("nothing", {1}));
    });
    graph.eval("run", [&](Inputs& in) { return reshape(result(in), {-1}); });
    graph.config().zero.shard_min_elements = 0;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    const std::vector<float> x = Floats(file["a"]), z = Floats(c["b"]),
                             weights = Floats(c["weights"]), nothing = {0.0f};
    ZG_RETURN_IF_ERROR(trainer->eval("run", {{"x", x}, {"z", z}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> y, trainer->result("run"));
    ExpectNear(y, c["y"]);
    ZG_RETURN_IF_ERROR(
        trainer->step({{"x", x}, {"z", z}, {"weights", weights}, {"nothing", nothing}}).status());
    std::vector<float> da = ValuesOf(*trainer, "a"), db = ValuesOf(*trainer, "b");
    for (float& value : da) value = -value;
    for (float& value : db) value = -value;
    ExpectNear(da, c["da"]);
    ExpectNear(db, c["db"]);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : AllFunctions()) names.push_back(name);
  return names;
}

TEST(FunctionReferenceCases, AreAllRun) {
  const Json file = Json::parse(std::ifstream("tests/reference/functions.json"));
  const std::map<std::string, Function> functions = AllFunctions();
  for (const Json& one : file["cases"]) {
    EXPECT_EQ(functions.count(one["name"].get<std::string>()), 1u) << one["name"];
  }
  EXPECT_EQ(functions.size(), file["cases"].size());
}

INSTANTIATE_TEST_SUITE_P(All, FunctionReference, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg
