// Times the collectives of the MPI communicator: median of all repetitions, the slowest rank
// counting.
//
//   mpirun -n 2 comm_bench [BYTES...]     ZG_COMM=messages for messages

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/comm/mpi_communicator.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;

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

    ZG_RETURN_IF_ERROR(Measure("barrier", 0, [&] { return communicator_.Barrier("barrier"); }));
    ZG_RETURN_IF_ERROR(Measure("reduce-scatter in place", bytes, [&] {
      return communicator_.world().ReduceScatter("rs", input, own_part, elements, DType::kF32,
                                                 false);
    }));
    ZG_RETURN_IF_ERROR(Measure("reduce-scatter accumulate", bytes, [&] {
      return communicator_.world().ReduceScatter("rs", input, output, elements, DType::kF32, true);
    }));
    ZG_RETURN_IF_ERROR(Measure("all-gather in place", bytes, [&] {
      return communicator_.world().AllGather("ag", own_part, input, part_bytes);
    }));
    ZG_RETURN_IF_ERROR(Measure("all-reduce in place", bytes, [&] {
      return communicator_.world().AllReduce("ar", input, input, elements, DType::kF32, false);
    }));
    return Measure("all-to-all", bytes, [&] {
      return communicator_.world().AllToAll("a2a", input, output, part_bytes);
    });
  }

 private:
  Status Measure(std::string_view what, int64_t bytes, const std::function<Status()>& collective) {
    const int repetitions =
        static_cast<int>(std::clamp<int64_t>((2ll << 30) / (bytes + 1), 7, 500));
    std::string times;
    for (int i = -2; i < repetitions; ++i) {
      ZG_RETURN_IF_ERROR(communicator_.Barrier("start"));
      const Clock::time_point start = Clock::now();
      ZG_RETURN_IF_ERROR(collective());
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (i >= 0) times.append(reinterpret_cast<const char*>(&ms), sizeof(ms));
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<std::string> all, communicator_.Exchange("times", times));
    std::vector<double> slowest(repetitions, 0.0);
    for (const std::string& one : all) {
      for (int i = 0; i < repetitions; ++i) {
        double ms = 0;
        std::memcpy(&ms, one.data() + i * sizeof(ms), sizeof(ms));
        slowest[i] = std::max(slowest[i], ms);
      }
    }
    std::sort(slowest.begin(), slowest.end());
    if (communicator_.rank() == 0) {
      fmt::print("{:9.2f} MB  {:<26} median {:9.4f} ms  best {:9.4f} ms\n",
                 static_cast<double>(bytes) / 1e6, what, slowest[repetitions / 2], slowest[0]);
      std::fflush(stdout);
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
    if (error != std::errc() || end != text.data() + text.size() || bytes < 1) {
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
