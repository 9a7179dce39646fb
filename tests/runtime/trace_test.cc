// The events of a timeline. //tests/models:trace_test checks that a run's trace shows that run.

#include "framework/runtime/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "framework/ir/parser.h"
#include "framework/ops/register_all_ops.h"

namespace zg {
namespace {

constexpr char kProgram[] = R"(graph "g" mesh(data=2) micro_batches=2
variables:
  %w: f32[8,8] {B} = variable (dtype="f32", shape=[8,8])
    tensor "w" f32[8,8] at 0 init zeros
forward:
  %x: f32[4,8] {S(0)} = input (dtype="f32", name="x", shape=[4,8])
  %h: f32[4,8] {S(0)} = linear %x, %w
backward:
  %g: f32[8,8] {P} = linear_grad_weight %h, %x
  %s: f32[8,8] {B} = all_reduce %g
update:
)";

TEST(Trace, HasALaneWithSlicesAndMemory) {
  RegisterAllOps();
  StatusOr<ir::Graph> graph = ir::Parse(kProgram);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const MemoryPlan plan = PlanMemory(*graph, {});
  const ir::Node* const input = graph->FindValue("x")->producer;
  ir::Node* const linear = graph->FindValue("h")->producer;
  linear->scope = "block.\"q\"";
  Timeline timeline;
  timeline.steps = {{5, 2000, 9999}};
  timeline.slices = {{nullptr, 2001, 2002},
                     {input, 2002, 2003},
                     {linear, 3000, 4500},
                     {graph->FindValue("g")->producer, 4600, 4700},
                     {graph->FindValue("s")->producer, 4700, 4800}};
  EXPECT_EQ(TraceEvents({{&*graph, &plan, &timeline}}, /*rank=*/3, /*start_ns=*/1000),
            R"({"ph":"M","pid":3,"tid":0,"name":"process_name","args":{"name":"rank 3"}},
{"ph":"M","pid":3,"tid":0,"name":"process_sort_index","args":{"sort_index":3}},
{"ph":"M","pid":3,"tid":0,"name":"thread_name","args":{"name":"steps"}},
{"ph":"X","pid":3,"tid":0,"ts":1.000,"dur":7.999,"name":"step 5","cat":"step"},
{"ph":"X","pid":3,"tid":0,"ts":1.001,"dur":0.001,"name":"setting inputs","cat":"step"},
{"ph":"C","pid":3,"ts":1.002,"name":"memory","args":{"bytes":320}},
{"ph":"X","pid":3,"tid":0,"ts":1.002,"dur":0.001,"name":"input","cat":"forward","args":{"value":"%x","bytes":64}},
{"ph":"C","pid":3,"ts":2.000,"name":"memory","args":{"bytes":384}},
{"ph":"X","pid":3,"tid":0,"ts":2.000,"dur":1.500,"name":"linear","cat":"forward","args":{"module":"block.\"q\"","value":"%h","flops":256,"bytes":384}},
{"ph":"C","pid":3,"ts":3.600,"name":"memory","args":{"bytes":640}},
{"ph":"X","pid":3,"tid":0,"ts":3.600,"dur":0.100,"name":"linear_grad_weight","cat":"backward","args":{"value":"%g","flops":256,"bytes":384}},
{"ph":"C","pid":3,"ts":3.700,"name":"memory","args":{"bytes":512}},
{"ph":"X","pid":3,"tid":0,"ts":3.700,"dur":0.100,"name":"all_reduce","cat":"backward,collective","args":{"value":"%s","bytes":512,"sent_bytes":256}})");
}

TEST(Trace, TransfersHaveALaneOfTheirOwn) {
  RegisterAllOps();
  StatusOr<ir::Graph> graph = ir::Parse(kProgram);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Timeline timeline;
  timeline.transfers = {{graph->FindValue("s")->producer, 4700, 4800}};
  const MemoryPlan plan = PlanMemory(*graph, {});
  const std::string events = TraceEvents({{&*graph, &plan, &timeline}}, 3, 1000);
  EXPECT_NE(events.find(R"("pid":3,"tid":1,"name":"thread_name","args":{"name":"transfers"})"),
            std::string::npos)
      << events;
  EXPECT_NE(events.find(R"("ph":"X","pid":3,"tid":1,"ts":3.700,"dur":0.100,"name":"all_reduce")"),
            std::string::npos)
      << events;
}

// In the order of time, with the memory of each.
TEST(Trace, ProgramsTakeTurnsInOneLane) {
  RegisterAllOps();
  StatusOr<ir::Graph> first = ir::Parse(kProgram), second = ir::Parse(kProgram);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const MemoryPlan plan = PlanMemory(*first, {});
  MemoryPlan larger = PlanMemory(*second, {});
  for (PlannedBuffer& buffer : larger.buffers) buffer.bytes *= 2;
  const auto node = [](const StatusOr<ir::Graph>& graph) {
    return graph->FindValue("h")->producer;
  };
  Timeline of_first, of_second;
  of_first.steps = {{1, 2000, 2999}, {3, 4000, 4999}};
  of_first.slices = {{node(first), 2000, 2500}, {node(first), 4000, 4500}};
  of_second.steps = {{2, 3000, 3999}};
  of_second.slices = {{node(second), 3000, 3500}};
  const std::string events = TraceEvents({{&*first, &plan, &of_first, {0, "critic"}},
                                          {&*second, &larger, &of_second, {0, "generator"}}},
                                         3, 1000);
  std::vector<std::string> steps, memory;
  for (const auto& event : nlohmann::json::parse("[" + events + "]")) {
    if (event.value("cat", "") == "step") steps.push_back(event["name"]);
    if (event["ph"] == "C") memory.push_back(event["ts"].dump() + " " + event["args"].dump());
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"step 1, phase 'critic'", "step 3, phase 'critic'",
                                             "step 2, phase 'generator'"}));
  EXPECT_EQ(memory, (std::vector<std::string>{"1.0 {\"bytes\":384}", "2.0 {\"bytes\":768}",
                                              "3.0 {\"bytes\":384}"}));
}

TEST(Trace, AFileIsOneJsonObject) {
  const auto json =
      nlohmann::json::parse(TraceBegin("a \"b\"") + R"({"pid":0},{"pid":1})" + TraceEnd());
  EXPECT_EQ(json["otherData"]["model"], "a \"b\"");
  EXPECT_EQ(json["traceEvents"].size(), 2u);
}

}  // namespace
}  // namespace zg
