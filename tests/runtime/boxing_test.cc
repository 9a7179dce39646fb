// Every cell of the boxing table on 1 to 4 ranks: a value is brought to one placement, from there
// to another, and back to B, where it must have its original value.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ir/parser.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/insert_collectives.h"
#include "framework/runtime/executor.h"
#include "framework/tensor/half.h"

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

// On one rank everything is B, as infer-sbp places it.
std::string Program(const Cell& cell, DType dtype, int ranks) {
  const std::string from = ranks == 1 ? "B" : cell.from;
  const std::string to = ranks == 1 ? "B" : cell.to;
  return fmt::format(
      "graph \"boxing\" mesh(data={0}) micro_batches={0}\n"
      "variables:\n"
      "  %x: {3}[12,24,12] {{B}} = variable (dtype=\"{3}\", shape=[12,24,12])\n"
      "    tensor \"x\" {3}[12,24,12] at 0 init zeros\n"
      "eval \"box\":\n"
      "  %from: {3}[12,24,12] {{{1}}} = place %x (sbp=\"{{{1}}}\")\n"
      "  %to: {3}[12,24,12] {{{2}}} = place %from (sbp=\"{{{2}}}\")\n"
      "  %back: {3}[12,24,12] {{B}} = place %to (sbp=\"{{B}}\")\n"
      "  output %back (name=\"y\")\n",
      ranks, from, to, DTypeName(dtype));
}

// Integers, each a different one in f32; their bf16 roundings differ sufficiently.
std::vector<std::byte> Values(DType dtype, int64_t count) {
  std::vector<std::byte> bytes(count * SizeOf(dtype));
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      const T value = FromF32<T>(static_cast<float>(i + 1));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

Status RunCell(const Cell& cell, DType dtype, Communicator& communicator) {
  ZG_ASSIGN_OR_RETURN(ir::Graph graph, ir::Parse(Program(cell, dtype, communicator.size())));
  ZG_RETURN_IF_ERROR(InsertCollectives().Run(graph).status());
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                      Executor::Create(&graph, CpuKernels(), &communicator, {}));
  ZG_ASSIGN_OR_RETURN(const LocalPart x, executor->LocalPartOf(graph.tensors()[0]));
  const std::vector<std::byte> expected = Values(dtype, x.count);
  std::copy(expected.begin(), expected.end(), x.data);
  ZG_RETURN_IF_ERROR(communicator.Barrier("values are set"));
  ZG_RETURN_IF_ERROR(executor->RunEval("box"));
  ZG_ASSIGN_OR_RETURN(const Executor::LocalResult y, executor->Result("box", "y"));
  return std::equal(expected.begin(), expected.end(), y.data)
             ? Status::Ok()
             : InvalidArgument("rank {} got another value", communicator.rank());
}

TEST_P(BoxingTest, KeepsTheValueOnOneToFourRanks) {
  RegisterAllOps();
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (int ranks : {1, 2, 3, 4}) {
      const Status status = RunRanks(ranks, [dtype](Communicator& communicator) {
        return RunCell(GetParam(), dtype, communicator);
      });
      EXPECT_TRUE(status.ok()) << DTypeName(dtype) << ", " << ranks
                               << " ranks: " << status.message();
    }
  }
}

}  // namespace
}  // namespace zg
