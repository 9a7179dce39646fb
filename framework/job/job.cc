#include "framework/job/job.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/check.h"
#include "framework/base/env.h"
#include "framework/comm/in_process.h"
#include "framework/comm/mpi_communicator.h"
#include "framework/comm/rendezvous.h"
#include "framework/job/claim_files.h"
#include "framework/job/compile_flags.h"
#include "framework/job/console.h"
#include "framework/job/flag_names.h"
#include "framework/job/launcher.h"
#include "framework/job/logging.h"
#include "framework/job/place_on_device.h"
#include "framework/job/process_memory.h"
#include "framework/job/rank_errors.h"
#include "framework/job/same_options.h"
#include "framework/job/save_signals.h"
#include "framework/job/start_line.h"

namespace zg {
namespace {

// Only the first virtual rank to end the process prints; the others wait here for that.
void TakeTheLastWord() {
  static std::mutex last_word;
  last_word.lock();
}

// For errors that are not printed by PrintError.
Status NamingFlags(const Status& status) {
  return Status(status.code(), WithFlagNames(status.message()));
}

}  // namespace

struct Job::Impl {
  std::string program;
  FlagParser own_flags{""};  // for programs without flags
  FlagParser* flags = nullptr;
  JobOptions options;
  bool is_started = false;
  int64_t resident_bytes_at_start = 0;
  bool is_virtual_rank = false;
  std::string trained_graph;                   // that has the files of the flags; "": none
  const SaveSignals signals{/*saves=*/false};  // a SIGUSR1 before training is kept for it

  // One of the two provides the communicator.
  std::unique_ptr<InProcessGroup> single;
  std::unique_ptr<MpiSession> session;
  std::unique_ptr<Communicator> mpi_communicator;  // destroyed before its session
  RankOnDevice on_device;                          // on top of one of the two
  Communicator* communicator = nullptr;

  std::unique_ptr<Impl> OfVirtualRank(Communicator* rank_communicator) const;
  void RunVirtualRanks(const std::function<Status(Job&)>& body);

  // Number of ranks of the job, also if it is only planned.
  int num_ranks() const { return std::max(options.ranks, options.ranks_in_process); }

  // Checks that the calling code runs as a single rank, if the process holds several.
  void CheckIsRank() {
    if (is_virtual_rank || options.ranks_in_process == 1 || options.plan) return;
    ExitWithError(InvalidArgument(
        "--ranks-in-process: got {}, but this program has no virtual ranks: what it does on a rank "
        "must be inside Job::run",
        options.ranks_in_process));
  }

  void PrintHint(StatusCode code) const {
    if (code != StatusCode::kInvalidArgument || is_started) return;
    print_error(fmt::format("hint: {} --help lists all flags\n", program));
  }

  // Parses the flags of this process, and checks them as far as one process can. Returns true if
  // help was requested.
  StatusOr<bool> ReadFlags(int argc, char** argv);
  void ConnectSingle();
  void ConnectMpi(const MpiJob& job);
  void GoToDevice();
  void LogStart();
  [[noreturn]] void Launch(int argc, char** argv);
  void Start(int argc, char** argv);

  void AgreeWithOtherRanks(const StatusOr<bool>& wants_help);
  void CheckOnAllRanks(const Status& mine);
  [[noreturn]] void Exit(int code);
  [[noreturn]] void ExitWithError(const Status& status);
};

StatusOr<bool> Job::Impl::ReadFlags(int argc, char** argv) {
  ZG_ASSIGN_OR_RETURN(const bool wants_help, flags->parse(argc, argv));
  if (wants_help) return true;
  ZG_RETURN_IF_ERROR(CheckEnvironment());
  if (!flags->is_given("timeout")) {
    ZG_ASSIGN_OR_RETURN(options.timeout_s, CollectiveTimeoutSeconds());
  }
  ZG_RETURN_IF_ERROR(CheckSchedule(*flags, options));
  ZG_RETURN_IF_ERROR(CheckSaving(*flags, options));
  ZG_RETURN_IF_ERROR(CheckObserving(*flags, options));
  ZG_RETURN_IF_ERROR(CheckPlan(*flags, options));
  ZG_RETURN_IF_ERROR(CheckGpuFlags(*flags, options));
  ZG_RETURN_IF_ERROR(CheckSupported(options));
  return false;
}

void Job::Impl::Exit(int code) {
  if (is_virtual_rank) {  // the other threads keep running, so nothing they use may be destroyed
    std::fflush(nullptr);
    std::_Exit(code);
  }
  communicator = nullptr;
  on_device.communicator.reset();
  on_device.device.reset();
  mpi_communicator.reset();
  session.reset();
  std::exit(code);
}

void Job::Impl::ExitWithError(const Status& status) {
  if (is_virtual_rank) TakeTheLastWord();
  const std::string where = is_virtual_rank ? " on " + FormatRanks({communicator->rank()}) : "";
  print_error(fmt::format("error{}: {}\n", where, status.message()));
  PrintHint(status.code());
  Exit(ExitCode(status.code()));
}

void Job::Impl::ConnectSingle() {
  single = std::make_unique<InProcessGroup>(1, options.timeout_s);
  communicator = &single->communicator(0);
}

void Job::Impl::ConnectMpi(const MpiJob& job) {
  const auto check = [&](const Status& status) {
    if (status.ok()) return;
    // An error on one rank is an error on all, so rank 0 can report it for all of them.
    if (job.rank == 0) print_error(fmt::format("error: {}\n", status.message()));
    Exit(ExitCode(status.code()));
  };
  StatusOr<std::unique_ptr<MpiSession>> started = MpiSession::Start();
  check(started.status());
  session = std::move(*started);
  MpiOptions mpi_options;
  mpi_options.timeout_s = options.timeout_s;
  StatusOr<std::unique_ptr<Communicator>> connected = MakeMpiCommunicator(mpi_options);
  check(connected.status());
  mpi_communicator = std::move(*connected);
  communicator = mpi_communicator.get();
}

// Each virtual rank goes on its own (RunVirtualRanks).
void Job::Impl::GoToDevice() {
  if (options.ranks_in_process > 1 || options.plan) return;
  StatusOr<RankOnDevice> placed = PlaceOnDevice(options, communicator);
  CheckOnAllRanks(placed.status());
  on_device = std::move(*placed);
  if (on_device.communicator != nullptr) communicator = on_device.communicator.get();
}

void Job::Impl::LogStart() {
  const StatusOr<std::string> line = StartLine(options, *communicator, on_device.transport_reason);
  CheckOnAllRanks(line.status());
  spdlog::info("{}", *line);
  const StatusOr<std::string> warning = ThreadsWarning(options, *communicator);
  CheckOnAllRanks(warning.status());
  if (communicator->rank() == 0 && !warning->empty()) spdlog::warn("{}", *warning);
}

void Job::Impl::Launch(int argc, char** argv) {
  const StatusOr<int> code = LaunchRanks({options.ranks, !options.save.empty()}, argc, argv);
  if (!code.ok()) ExitWithError(code.status());
  std::exit(*code);
}

void Job::Impl::CheckOnAllRanks(const Status& mine) {
  const StatusOr<std::vector<std::string>> packed =
      communicator->Exchange("compare errors", PackStatus(mine));
  if (!packed.ok()) {
    // The ranks have lost contact, so this one reports its own error.
    communicator->Abort(NamingFlags(mine.ok() ? packed.status() : mine));
    ExitWithError(mine.ok() ? packed.status() : mine);
  }
  std::vector<Status> by_rank;
  for (const std::string& text : *packed) by_rank.push_back(UnpackStatus(text));
  const auto first_error =
      std::find_if(by_rank.begin(), by_rank.end(), [](const Status& s) { return !s.ok(); });
  if (first_error == by_rank.end()) return;
  if (communicator->rank() == 0) {
    print_error(FormatErrors(by_rank));
    PrintHint(first_error->code());
  } else if (is_virtual_rank) {
    while (true) pause();  // rank 0 ends the process
  }
  Exit(ExitCode(first_error->code()));
}

// Together with the other ranks: all of them report what one of them cannot do.
void Job::Impl::AgreeWithOtherRanks(const StatusOr<bool>& wants_help) {
  CheckOnAllRanks(wants_help.status());
  const StatusOr<std::vector<std::string>> help =
      communicator->Exchange("who wants help", *wants_help ? "help" : "");
  CheckOnAllRanks(help.status());
  if (std::count(help->begin(), help->end(), "help") == communicator->size()) {
    if (communicator->rank() == 0) print_out(flags->help(program));
    Exit(0);
  }
  CheckOnAllRanks(*wants_help ? InvalidArgument("--help on some ranks, but not on all")
                              : Status::Ok());
  const int size = communicator->size();
  CheckOnAllRanks(flags->is_given("ranks") && options.ranks != size
                      ? InvalidArgument("--ranks: got {}, but mpirun started {}; leave it out or "
                                        "start the program without mpirun",
                                        options.ranks, size)
                      : Status::Ok());
  CheckOnAllRanks(ResolveForProcesses(*flags, size, &options));
  CheckOnAllRanks(CheckSameOptions(*communicator, FlagsAsText(flags->resolved())));
}

void Job::Impl::Start(int argc, char** argv) {
  program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "program";
  // A closed pipe under the output is an error of write() and does not end the training.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // likewise a limit on the size of files
  AddJobFlags(flags, &options);
  const StatusOr<bool> wants_help = ReadFlags(argc, argv);

  SetThreadsPerRank(options.threads);

  const std::optional<MpiJob> mpi_job = FindMpiJob();
  const bool is_alone = !mpi_job || mpi_job->size == 1;
  if (is_alone) {
    if (!wants_help.ok()) ExitWithError(wants_help.status());
    if (*wants_help) {
      print_out(flags->help(program));
      Exit(0);
    }
    if (!mpi_job && options.ranks_in_process == 1) {
      TakeRanksOfMesh(*flags, options.compile, &options.ranks);
    }
    const int num_processes = mpi_job ? 1 : options.ranks;
    if (num_processes != options.ranks && flags->is_given("ranks")) {
      ExitWithError(
          InvalidArgument("--ranks: got {}, but mpirun started 1; leave it out or start "
                          "the program without mpirun",
                          options.ranks));
    }
    if (const Status status = ResolveForProcesses(*flags, num_processes, &options); !status.ok()) {
      ExitWithError(status);
    }
    if (const Status status = CheckPaths(options); !status.ok()) ExitWithError(status);
    if (num_processes > 1 && !options.plan) Launch(argc, argv);
    ConnectSingle();
  } else {
    ConnectMpi(*mpi_job);
    AgreeWithOtherRanks(wants_help);
    // Rank 0 writes; every rank may read.
    JobOptions mine = options;
    if (communicator->rank() != 0) {
      mine.report = mine.metrics = mine.trace = mine.compile.dump_directory = "";
    }
    CheckOnAllRanks(CheckPaths(mine));
  }
  GoToDevice();
  StartLogging(communicator->rank(), options.log_level);
  if (!options.plan) LogStart();
  const StatusOr<ProcessMemory> memory = ReadProcessMemory();
  CheckOnAllRanks(memory.status());
  resident_bytes_at_start = memory->resident_bytes;
  is_started = true;
}

std::unique_ptr<Job::Impl> Job::Impl::OfVirtualRank(Communicator* rank_communicator) const {
  auto impl = std::make_unique<Impl>();
  impl->program = program;
  impl->flags = flags;
  impl->options = options;
  impl->is_started = true;
  impl->resident_bytes_at_start = resident_bytes_at_start;
  impl->is_virtual_rank = true;
  impl->communicator = rank_communicator;
  return impl;
}

void Job::Impl::RunVirtualRanks(const std::function<Status(Job&)>& body) {
  std::vector<Status> by_rank(options.ranks_in_process);
  const Status first = RunRanks(
      options.ranks_in_process, options.timeout_s, [&](Communicator& rank_communicator) -> Status {
        LogAsRank(rank_communicator.rank());
        ZG_ASSIGN_OR_RETURN(const RankOnDevice placed, PlaceOnDevice(options, &rank_communicator));
        Job job(OfVirtualRank(placed.communicator != nullptr ? placed.communicator.get()
                                                             : &rank_communicator));
        return by_rank[rank_communicator.rank()] = body(job);
      });
  if (first.ok()) return;
  // Ranks that gave up because another had failed have nothing to report.
  if (first.code() != StatusCode::kAborted) {
    for (Status& status : by_rank) {
      if (status.code() == StatusCode::kAborted) status = Status::Ok();
    }
  }
  const bool is_a_ranks = std::any_of(by_rank.begin(), by_rank.end(),
                                      [](const Status& status) { return !status.ok(); });
  if (!is_a_ranks) ExitWithError(first);
  print_error(FormatErrors(by_rank));
  Exit(ExitCode(first.code()));
}

Job::Job(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job Job::start(int argc, char** argv, FlagParser& flags, const JobOptions& defaults) {
  auto impl = std::make_unique<Impl>();
  impl->flags = &flags;
  impl->options = defaults;
  impl->Start(argc, argv);
  return Job(std::move(impl));
}

Job Job::start(int argc, char** argv) {
  auto impl = std::make_unique<Impl>();
  impl->flags = &impl->own_flags;
  impl->Start(argc, argv);
  return Job(std::move(impl));
}

void Job::run(const std::function<Status(Job&)>& body) {
  if (impl_->options.ranks_in_process > 1 && !impl_->options.plan) {
    impl_->RunVirtualRanks(body);
  } else {
    impl_->CheckOnAllRanks(body(*this));
  }
}

int Job::rank() const { return impl_->communicator->rank(); }
int Job::data_rank() const { return options().compile.MeshOf(size()).DataIndex(rank()); }
int Job::num_data_ranks() const { return options().compile.MeshOf(size()).num_data_ranks(); }
int Job::size() const {
  impl_->CheckIsRank();
  return impl_->communicator->size();
}
Communicator& Job::communicator() const {
  impl_->CheckIsRank();
  return *impl_->communicator;
}
const JobOptions& Job::options() const { return impl_->options; }
int Job::num_planned_ranks() const { return impl_->num_ranks(); }
int64_t Job::resident_bytes_at_start() const { return impl_->resident_bytes_at_start; }

CompileOptions Job::apply_compile_flags(const CompileOptions& of_graph) {
  CompileOptions options = WithGivenCompileFlags(*impl_->flags, of_graph);
  impl_->CheckOnAllRanks(ResolveCompileFlags(*impl_->flags, impl_->num_ranks(), &options));
  return impl_->options.compile = options;
}

Status Job::with_compile_flags(const Status& error) const {
  if (error.code() != StatusCode::kInvalidArgument) return error;
  const std::string given = GivenCompileFlags(*impl_->flags);
  return given.empty() ? error : Status(error.code(), error.message() + "\n  with " + given);
}

std::vector<ResolvedFlag> Job::config() const {
  std::vector<ResolvedFlag> config = impl_->flags->resolved();
  // The values of the compiler's flags may be the graph's.
  for (const ResolvedFlag& resolved : CompileFlagsOf(impl_->options.compile)) {
    for (ResolvedFlag& flag : config) {
      if (flag.name == resolved.name) flag.value = resolved.value;
    }
  }
  return config;
}
Status Job::claim_files(const std::string& graph, bool reports) {
  return ClaimFiles(impl_->options, graph, reports, &impl_->trained_graph);
}
void Job::check_on_all_ranks(const Status& mine) { impl_->CheckOnAllRanks(mine); }

void Job::exit(int code) { impl_->Exit(code); }

void Job::fail(const Status& status) {
  ZG_CHECK(!status.ok(), "Fail needs an error");
  if (impl_->session)
    impl_->communicator->Abort(NamingFlags(status));  // prints, and does not return
  impl_->ExitWithError(status);
}

}  // namespace zg
