// Every cell of the boxing table on 1 to 4 ranks: a value is brought to one placement, from there
// to another, and back to B, where it must be what it was.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "framework/comm/in_process.h"
#include "framework/ir/parser.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/insert_collectives.h"
#include "framework/runtime/executor.h"

namespace zg {
namespace {

struct Cell {
  std::string from;
  std::string to;
};

class BoxingTest : public ::testing::TestWithParam<Cell> {};

INSTANTIATE_TEST_SUITE_P(Cells, BoxingTest, ::testing::ValuesIn([] {
                           std::vector<Cell> cells;
                           for (const char* from : {"B", "S(0)", "S(1)", "S(2)", "P"}) {
                             for (const char* to : {"B", "S(0)", "S(1)", "S(2)", "P"})
                               cells.push_back({from, to});
                           }
                           return cells;
                         }()),
                         [](const auto& info) {
                           std::string name = info.param.from + "_to_" + info.param.to;
                           for (char bracket : {'(', ')'})
                             name.erase(std::remove(name.begin(), name.end(), bracket), name.end());
                           return name;
                         });

// On one rank everything is B, as infer-sbp has it.
std::string Program(const Cell& cell, int ranks) {
  const std::string from = ranks == 1 ? "B" : cell.from;
  const std::string to = ranks == 1 ? "B" : cell.to;
  return fmt::format(
      "graph \"boxing\" mesh(data={0}) micro_batches={0}\n"
      "variables:\n"
      "  %x: f32[12,24,12] {{B}} @parameters = variable (dtype=\"f32\", shape=[12,24,12])\n"
      "    tensor \"x\" f32[12,24,12] at 0 init zeros\n"
      "eval \"box\":\n"
      "  %from: f32[12,24,12] {{{1}}} = place %x (sbp=\"{{{1}}}\")\n"
      "  %to: f32[12,24,12] {{{2}}} = place %from (sbp=\"{{{2}}}\")\n"
      "  %back: f32[12,24,12] {{B}} = place %to (sbp=\"{{B}}\")\n"
      "  output %back (name=\"y\")\n",
      ranks, from, to);
}

Status RunCell(const Cell& cell, Communicator& communicator) {
  ZG_ASSIGN_OR_RETURN(Graph graph, Parse(Program(cell, communicator.size())));
  ZG_RETURN_IF_ERROR(InsertCollectives().Run(graph).status());
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                      Executor::Create(&graph, CpuKernels(), &communicator, {}));
  const Executor::LocalPart x = executor->LocalPartOf(graph.tensors()[0]);
  std::vector<float> expected(x.count);
  std::iota(expected.begin(), expected.end(), 1.0f);
  std::memcpy(x.data, expected.data(), expected.size() * sizeof(float));
  ZG_RETURN_IF_ERROR(communicator.Barrier("values are set"));
  ZG_RETURN_IF_ERROR(executor->RunEval("box"));
  ZG_ASSIGN_OR_RETURN(const std::vector<std::byte>* output, executor->Output("box", "y"));
  std::vector<float> got(expected.size());
  std::memcpy(got.data(), output->data(), output->size());
  return got == expected ? Status::Ok()
                         : InvalidArgument("rank {} got another value", communicator.rank());
}

TEST_P(BoxingTest, KeepsTheValueOnOneToFourRanks) {
  RegisterAllOps();
  for (int ranks : {1, 2, 3, 4}) {
    const Status status = RunRanks(
        ranks, [](Communicator& communicator) { return RunCell(GetParam(), communicator); });
    EXPECT_TRUE(status.ok()) << ranks << " ranks: " << status.message();
  }
}

}  // namespace
}  // namespace zg
