#include "framework/passes/pass_manager.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ops/register_all_ops.h"

namespace zg {
namespace {

// A pass with any body.
class TestPass : public Pass {
 public:
  using Body = std::function<StatusOr<bool>(ir::Graph&)>;
  TestPass(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}

  std::string_view name() const override { return name_; }
  StatusOr<bool> Run(ir::Graph& graph) const override { return body_(graph); }

 private:
  std::string name_;
  Body body_;
};

using PassList = std::vector<std::unique_ptr<Pass>>;

void Add(PassList* passes, std::string name, TestPass::Body body) {
  passes->push_back(std::make_unique<TestPass>(std::move(name), std::move(body)));
}

TestPass::Body SetMicroBatches(int64_t count) {
  return [count](ir::Graph& graph) -> StatusOr<bool> {
    const bool changed = graph.micro_batches() != count;
    graph.set_micro_batches(count);
    return changed;
  };
}

TestPass::Body Nothing() {
  return [](ir::Graph&) -> StatusOr<bool> { return false; };
}

ir::Graph TestGraph() {
  RegisterAllOps();
  StatusOr<ir::Graph> graph = ir::Parse(R"(graph "g" mesh(data=2) micro_batches=2
forward:
  %x: f32[8,4] {S(0)} = input (dtype="f32", name="x", shape=[8,4])
  %y: f32[8,4] {B} = relu %x
)");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return std::move(*graph);
}

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string FreshDirectory(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(path);
  return path.string();
}

TEST(PassManagerTest, RunsInOrderAndRecords) {
  PassList passes;
  Add(&passes, "to-four", SetMicroBatches(4));
  Add(&passes, "to-four", SetMicroBatches(4));
  Add(&passes, "wait", [](ir::Graph&) -> StatusOr<bool> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return false;
  });
  Add(&passes, "to-six", SetMicroBatches(6));
  ir::Graph graph = TestGraph();
  PassManager manager(std::move(passes));
  ASSERT_TRUE(manager.Run(graph).ok());
  EXPECT_EQ(graph.micro_batches(), 6);
  ASSERT_EQ(manager.records().size(), 4u);
  const char* names[] = {"to-four", "to-four", "wait", "to-six"};
  const bool changed[] = {true, false, false, true};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(manager.records()[i].name, names[i]);
    EXPECT_EQ(manager.records()[i].changed, changed[i]);
  }
  EXPECT_GE(manager.records()[2].run_ms, 20.0);
  ASSERT_TRUE(manager.Run(graph).ok());
  EXPECT_EQ(manager.records().size(), 4u);
}

TEST(PassManagerTest, AnErrorEndsTheRunAndNamesThePass) {
  PassList passes;
  Add(&passes, "complain",
      [](ir::Graph&) -> StatusOr<bool> { return InvalidArgument("the loss is missing"); });
  Add(&passes, "to-four", SetMicroBatches(4));
  ir::Graph graph = TestGraph();
  const Status status = PassManager(std::move(passes)).Run(graph);
  EXPECT_EQ(status.message(), "complain: the loss is missing");
  EXPECT_EQ(graph.micro_batches(), 2);
}

TEST(PassManagerTest, TheGraphIsVerifiedAfterEachPass) {
  PassList passes;
  Add(&passes, "nothing", Nothing());
  Add(&passes, "break", [](ir::Graph& graph) -> StatusOr<bool> {
    graph.FindValue("y")->type.shape = Shape{1};
    return true;
  });
  Add(&passes, "to-four", SetMicroBatches(4));
  ir::Graph graph = TestGraph();
  const Status status = PassManager(std::move(passes)).Run(graph);
  EXPECT_EQ(status.message(),
            "after break: forward: relu %y: %y: got type f32[1], expected f32[8,4]");
  EXPECT_EQ(graph.micro_batches(), 2);
}

TEST(PassManagerTest, TheGraphIsVerifiedBeforeTheFirstPass) {
  ir::Graph graph = TestGraph();
  graph.FindValue("y")->type.shape = Shape{1};
  EXPECT_EQ(PassManager({}).Run(graph).message(),
            "before the first pass: forward: relu %y: %y: got type f32[1], expected f32[8,4]");
}

TEST(PassManagerTest, PlacementsMustFitFromInsertCollectivesOn) {
  const auto run = [](const std::string& name) {
    PassList passes;
    Add(&passes, name, Nothing());
    Add(&passes, "to-four", SetMicroBatches(4));
    ir::Graph graph = TestGraph();
    return PassManager(std::move(passes)).Run(graph);
  };
  EXPECT_TRUE(run("infer-sbp").ok());
  EXPECT_EQ(run("insert-collectives").message().rfind("after insert-collectives: forward: relu", 0),
            0u);
}

TEST(PassManagerDeathTest, ChangedMustBeTrueExactlyWhenTheTextChanged) {
  const auto run = [](TestPass::Body body) {
    PassList passes;
    Add(&passes, "lie", std::move(body));
    ir::Graph graph = TestGraph();
    return PassManager(std::move(passes)).Run(graph);
  };
  EXPECT_DEATH((void)run([](ir::Graph&) -> StatusOr<bool> { return true; }),
               "lie said that it changed the graph, but it did not");
  EXPECT_DEATH((void)run([](ir::Graph& graph) -> StatusOr<bool> {
                 graph.set_micro_batches(4);
                 return false;
               }),
               "lie said that it did not change the graph, but it did");
}

TEST(PassManagerTest, ReportsAreBelievedUnlessTheyAreChecked) {
  PassList passes;
  Add(&passes, "lie", [](ir::Graph&) -> StatusOr<bool> { return true; });
  PassManagerOptions options;
  options.checks_reports = false;
  ir::Graph graph = TestGraph();
  PassManager manager(std::move(passes), options);
  ASSERT_TRUE(manager.Run(graph).ok());
  EXPECT_TRUE(manager.records()[0].changed);
}

TEST(PassManagerTest, DumpsAreNumbered) {
  PassList passes;
  Add(&passes, "to-four", SetMicroBatches(4));
  Add(&passes, "left-out", SetMicroBatches(5));
  Add(&passes, "break", [](ir::Graph& graph) -> StatusOr<bool> {
    graph.FindValue("y")->type.shape = Shape{1};
    return true;
  });
  PassManagerOptions options;
  options.dump_directory = FreshDirectory("dumps/of/passes");
  options.disabled = {"left-out"};
  ir::Graph graph = TestGraph();
  const std::string input = ir::Print(graph);
  EXPECT_FALSE(PassManager(std::move(passes), options).Run(graph).ok());
  const std::filesystem::path directory(options.dump_directory);
  EXPECT_EQ(Read(directory / "00_input.graph"), input);
  EXPECT_NE(Read(directory / "01_after_to-four.graph").find("micro_batches=4"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory / "02_after_left-out.graph"));
  // The graph that broke the rules is dumped.
  EXPECT_NE(Read(directory / "03_after_break.graph").find("%y: f32[1]"), std::string::npos);
}

TEST(PassManagerTest, ADumpThatCannotBeWrittenIsAnError) {
  PassManagerOptions options;
  options.dump_directory = "/dev/null/dumps";
  ir::Graph graph = TestGraph();
  const Status status = PassManager({}, options).Run(graph);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "cannot write the dump /dev/null/dumps/00_input.graph");
}

TEST(PassManagerTest, PassesAreDisabledByName) {
  const auto run = [](ir::Graph* graph, const std::string& disabled) {
    PassList passes;
    Add(&passes, "to-four", SetMicroBatches(4));
    Add(&passes, "to-six", SetMicroBatches(6));
    PassManagerOptions options;
    options.disabled = {disabled};
    return PassManager(std::move(passes), options).Run(*graph);
  };
  ir::Graph graph = TestGraph();
  EXPECT_TRUE(run(&graph, "to-six").ok());
  EXPECT_EQ(graph.micro_batches(), 4);
  EXPECT_EQ(run(&graph, "to-seven").message(),
            "cannot disable pass 'to-seven': expected one of to-four, to-six");
}

}  // namespace
}  // namespace zg
