// Rank 0 receives what is predicted for it when sums go from host to host (comm/sum_route.h), and the
// sums have the bits of one host.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/mpi_communicator.h"
#include "framework/ir/parser.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/executor.h"
#include "framework/runtime/host_traffic.h"

namespace zg {
namespace {

constexpr int kMicroSteps = 3;

// Sums into an accumulator, without one, into halves, and into whole copies with an uneven number of
// elements.
std::string Program(int num_ranks) {
  const int elements = 10007 * num_ranks;
  return fmt::format(
      "graph \"traffic\" mesh(data={0}) micro_batches={1}\n"
      "variables:\n"
      "  %x: f32[{2}] {{P}} = variable (dtype=\"f32\", shape=[{2}])\n"
      "  %h: bf16[{2}] {{P}} = variable (dtype=\"bf16\", shape=[{2}])\n"
      "  %u: f32[{3}] {{P}} = variable (dtype=\"f32\", shape=[{3}])\n"
      "  %acc: f32[{2}] {{S(0)}} = variable (dtype=\"f32\", shape=[{2}], role=\"accumulator\")\n"
      "  %s: f32[{2}] {{S(0)}} = variable (dtype=\"f32\", shape=[{2}])\n"
      "  %hs: bf16[{2}] {{S(0)}} = variable (dtype=\"bf16\", shape=[{2}])\n"
      "  %us: f32[{3}] {{B}} = variable (dtype=\"f32\", shape=[{3}])\n"
      "backward:\n"
      "  %acc.next: f32[{2}] {{S(0)}} = reduce_scatter %x, %acc\n"
      "  assign %acc, %acc.next\n"
      "update:\n"
      "  %s.next: f32[{2}] {{S(0)}} = reduce_scatter %x\n"
      "  %hs.next: bf16[{2}] {{S(0)}} = reduce_scatter %h\n"
      "  %us.next: f32[{3}] {{B}} = all_reduce %u\n"
      "  assign %s, %s.next\n"
      "  assign %hs, %hs.next\n"
      "  assign %us, %us.next\n",
      num_ranks, num_ranks * kMicroSteps, elements, elements - 1);
}

struct Outcome {
  std::map<std::string, std::vector<std::byte>> sums;
  TrafficCounters measured = {};
  std::map<std::string, PredictedTraffic> predicted;
};

// Where this rank has the value.
std::byte* DataOf(const Executor& executor, const ir::Value* value) {
  Communicator& communicator = executor.communicator();
  return communicator.arena().data() + executor.plan().OffsetOn(value, communicator.rank());
}

StatusOr<Outcome> RunOn(const std::vector<int>& hosts) {
  RegisterAllOps();
  ZG_ASSIGN_OR_RETURN(const auto communicator,
                      MakeMpiCommunicator({CommTransport::kMessages, 120, hosts}));
  ZG_ASSIGN_OR_RETURN(ir::Graph graph, ir::Parse(Program(communicator->size())));
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                      Executor::Create(&graph, CpuKernels(), communicator.get(), {}));
  for (const char* name : {"x", "u"}) {
    const ir::Value* const terms = graph.FindValue(name);
    auto* const values = reinterpret_cast<float*>(DataOf(*executor, terms));
    for (int64_t i = 0; i < graph.LocalType(*terms).shape.num_elements(); ++i) {
      values[i] = 1.0f / static_cast<float>(1 + (i * 7 + communicator->rank() * 13) % 1009);
    }
  }
  const ir::Value* const halves = graph.FindValue("h");
  auto* const bits = reinterpret_cast<uint16_t*>(DataOf(*executor, halves));
  for (int64_t i = 0; i < graph.LocalType(*halves).shape.num_elements(); ++i) {
    bits[i] = static_cast<uint16_t>(0x3f80 + (i * 5 + communicator->rank() * 3) % 127);
  }
  ZG_RETURN_IF_ERROR(executor->RunStep(1, 1.0, [](int64_t) { return Status::Ok(); }));
  Outcome outcome;
  for (const char* name : {"acc", "s", "hs", "us"}) {
    const ir::Value* const sum = graph.FindValue(name);
    const std::byte* const data = DataOf(*executor, sum);
    outcome.sums[name].assign(data, data + graph.LocalType(*sum).bytes());
  }
  outcome.measured = communicator->traffic();
  outcome.predicted = PredictTrafficOnHosts(graph, communicator->hosts());
  MPI_Barrier(MPI_COMM_WORLD);
  return outcome;
}

TEST(HostTraffic, MeasuredIsPredictedAndTheBitsAreThoseOfOneHost) {
  int num_ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto one_host = RunOn(std::vector<int>(num_ranks));
  ASSERT_TRUE(one_host.ok()) << one_host.status().ToString();
  int num_differences = 0;  // from the traffic of one host
  for (const int of_first : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << of_first << " ranks on the first host");
    std::vector<int> hosts(num_ranks, 1);
    std::fill_n(hosts.begin(), of_first, 0);
    const auto outcome = RunOn(hosts);
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(outcome->sums, one_host->sums);
    if (rank > 0) continue;
    for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
      const std::string name(CollectiveName(kind));
      const Traffic& measured = outcome->measured[static_cast<int>(kind)];
      EXPECT_EQ(outcome->predicted.at(name).bytes, measured.bytes) << name;
      num_differences +=
          outcome->predicted.at(name).bytes == one_host->predicted.at(name).bytes ? 0 : 1;
    }
  }
  EXPECT_GE(num_differences, rank == 0 ? 1 : 0);
}

}  // namespace
}  // namespace zg
