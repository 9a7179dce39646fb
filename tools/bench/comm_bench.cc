// Times the collectives of the MPI communicator, in turn with those of the MPI library, whose sums
// have their own order: the cost of equal bits. Results are medians of all repetitions, of the
// slowest rank.
//
//   mpirun -n 2 comm_bench [BYTES...]     ZG_COMM=messages for messages

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "framework/comm/mpi_calls.h"
#include "framework/comm/mpi_communicator.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

struct Candidate {
  std::string_view name;
  std::function<Status()> run;
};

class Bench {
 public:
  explicit Bench(Communicator& communicator) : communicator_(communicator) {}

  Status Run(int64_t bytes) {
    const int n = communicator_.size();
    const int64_t part_bytes = bytes / n / 4096 * 4096;
    bytes = part_bytes * n;
    const int64_t elements = bytes / 4;
    // input, output, workspace
    ZG_ASSIGN_OR_RETURN(std::byte* const arena,
                        communicator_.arena().Allocate(
                            2 * bytes + communicator_.arena().workspace_bytes(), 2 * bytes));
    std::memset(arena, 0, 2 * bytes);
    const ArenaOperand input{0, 0};
    const ArenaOperand own_part{0, part_bytes};
    const ArenaOperand output{bytes, 0};
    const int count = static_cast<int>(elements);
    Group& world = communicator_.world();

    ZG_RETURN_IF_ERROR(Measure(0, {{"barrier", [&] { return communicator_.Barrier("barrier"); }},
                                   {"MPI_Barrier", [&] {
                                      return MpiStatus(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
                                    }}}));
    const auto reduce_scatter = [&](const ArenaOperand& to, bool accumulate) {
      return world.ReduceScatter("rs", input, to, elements, DType::kF32, accumulate);
    };
    ZG_RETURN_IF_ERROR(Measure(
        bytes, {{"reduce-scatter in place", [&] { return reduce_scatter(own_part, false); }},
                {"reduce-scatter accumulate", [&] { return reduce_scatter(output, true); }},
                {"MPI_Reduce_scatter_block", [&] {
                   return MpiStatus(MPI_Reduce_scatter_block(arena, arena + bytes, count / n,
                                                             MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD),
                                    "MPI_Reduce_scatter_block");
                 }}}));
    ZG_RETURN_IF_ERROR(
        Measure(bytes, {{"all-gather in place",
                         [&] { return world.AllGather("ag", own_part, input, part_bytes); }},
                        {"MPI_Allgather", [&] {
                           return MpiStatus(MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, arena,
                                                          count / n, MPI_FLOAT, MPI_COMM_WORLD),
                                            "MPI_Allgather");
                         }}}));
    ZG_RETURN_IF_ERROR(Measure(
        bytes, {{"all-reduce in place",
                 [&] { return world.AllReduce("ar", input, input, elements, DType::kF32, false); }},
                {"MPI_Allreduce", [&] {
                   return MpiStatus(MPI_Allreduce(MPI_IN_PLACE, arena, count, MPI_FLOAT, MPI_SUM,
                                                  MPI_COMM_WORLD),
                                    "MPI_Allreduce");
                 }}}));
    return Measure(
        bytes, {{"all-to-all", [&] { return world.AllToAll("a2a", input, output, part_bytes); }},
                {"MPI_Alltoall", [&] {
                   return MpiStatus(MPI_Alltoall(arena, count / n, MPI_FLOAT, arena + bytes,
                                                 count / n, MPI_FLOAT, MPI_COMM_WORLD),
                                    "MPI_Alltoall");
                 }}});
  }

 private:
  // In turn, so that all see the same machine.
  Status Measure(int64_t bytes, const std::vector<Candidate>& candidates) {
    const int repetitions =
        static_cast<int>(std::clamp<int64_t>((2ll << 30) / (bytes + 1), 7, 500));
    std::vector<std::vector<double>> ms(candidates.size());
    for (int i = -2; i < repetitions; ++i) {
      for (size_t c = 0; c < candidates.size(); ++c) {
        ZG_RETURN_IF_ERROR(communicator_.Barrier("start"));
        const Clock::time_point start = Clock::now();
        ZG_RETURN_IF_ERROR(candidates[c].run());
        if (i < 0) continue;
        ms[c].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      }
    }
    for (size_t c = 0; c < candidates.size(); ++c) {
      ZG_RETURN_IF_ERROR(OfSlowestRank(&ms[c]));
      std::sort(ms[c].begin(), ms[c].end());
      if (communicator_.rank() != 0) continue;
      fmt::print("{:9.2f} MB  {:<26} median {:9.4f} ms  best {:9.4f} ms\n",
                 static_cast<double>(bytes) / 1e6, candidates[c].name, ms[c][repetitions / 2],
                 ms[c][0]);
      std::fflush(stdout);
    }
    return Status::Ok();
  }

  Status OfSlowestRank(std::vector<double>* ms) {
    const std::string own(reinterpret_cast<const char*>(ms->data()), ms->size() * sizeof(double));
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, communicator_.Exchange("times", own));
    for (const std::string& one : all) {
      for (size_t i = 0; i < ms->size(); ++i) {
        double of_rank = 0;
        std::memcpy(&of_rank, one.data() + i * sizeof(of_rank), sizeof(of_rank));
        (*ms)[i] = std::max((*ms)[i], of_rank);
      }
    }
    return Status::Ok();
  }

  Communicator& communicator_;
};

Status Main(int argc, char** argv, Communicator& communicator) {
  std::vector<int64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error != std::errc() || end != text.data() + text.size() || bytes < 1 ||
        bytes / 4 > std::numeric_limits<int>::max()) {  // MPI counts elements in an int
      return InvalidArgument("'{}' is not a number of bytes; usage: comm_bench [BYTES...]", text);
    }
    sizes.push_back(bytes);
  }
  if (sizes.empty()) sizes = {32 << 10, 1 << 20, 16 << 20, 320 << 20};
  Bench bench(communicator);
  for (int64_t bytes : sizes) ZG_RETURN_IF_ERROR(bench.Run(bytes));
  return Status::Ok();
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) {
  const auto session = zg::MpiSession::Start();
  if (!session.ok()) {
    fmt::print(stderr, "comm_bench: {}\n", session.status().ToString());
    return 1;
  }
  const auto communicator = zg::MakeMpiCommunicator();
  if (!communicator.ok()) {
    fmt::print(stderr, "comm_bench: {}\n", communicator.status().ToString());
    return 1;
  }
  const zg::Status status = zg::Main(argc, argv, **communicator);
  if (!status.ok()) (*communicator)->Abort(status);
  return 0;
}
