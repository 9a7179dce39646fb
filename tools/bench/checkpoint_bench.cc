// Times checkpoints: saving and loading against the disk's speed with the same bytes, and the cost
// of a save for training with and without waiting. Measurements take turns; results are medians of
// the rounds, of the slowest rank.
//
//   checkpoint_bench --ranks 2 --zero 2 --save DIR [--layers 10] [--width 1000] [--rounds 5]

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/format.h"
#include "framework/base/median.h"
#include "framework/base/random.h"
#include "framework/io/durable_file.h"
#include "framework/job/console.h"
#include "framework/job/job.h"
#include "framework/ops/register_all_ops.h"
#include "framework/state/checkpoint_slices.h"
#include "models/recipe/model.h"
#include "zero/zerograph/train.h"

namespace zg {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr size_t kChunkBytes = size_t{1} << 20;

struct Flags {
  int64_t layers = 10;
  int64_t width = 1000;
  int64_t rounds = 5;
  int64_t steps_alone = 20;
};

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// The measurements of one quantity, one per round.
struct Column {
  std::string name;
  std::vector<double> ms;
};

class Bench {
 public:
  Bench(Job& job, const Flags& flags) : job_(job), flags_(flags) {}

  Status Run() {
    models::Recipe model(flags_.layers, flags_.width);
    Graph graph("recipe");
    const Shape shape = {job_.options().batch, flags_.width};
    graph.train(optim::Adam{}, [&](Inputs& in) {
      return mse_loss(model(in.f32("x", shape)), in.f32("y", shape));
    });
    trainer_ = make_trainer(job_, graph);
    data_.resize(shape.num_elements());
    FillNormal(RandomKey{1}, 0, data_.size(), 0.0f, 1.0f, data_.data());
    ZG_RETURN_IF_ERROR(trainer_->prepare_saving(directory()));
    ZG_RETURN_IF_ERROR(trainer_->reserve_for_saving());
    my_bytes_ = CheckpointBytesOf(trainer_->program().graph, job_.rank());
    for (int rank = 0; rank < job_.size(); ++rank) {
      all_bytes_ += CheckpointBytesOf(trainer_->program().graph, rank);
    }
    for (int i = 0; i < 3; ++i) ZG_RETURN_IF_ERROR(Step());  // warm up
    for (int64_t round = 0; round < flags_.rounds; ++round) {
      ZG_RETURN_IF_ERROR(Round().WithContext(fmt::format("round {}", round + 1)));
    }
    Print();
    return Status::Ok();
  }

 private:
  std::string directory() const { return job_.options().save; }
  std::string PlainFile() const { return fmt::format("{}/plain-{}", directory(), job_.rank()); }

  Status Step() {
    return trainer_->step([&](int64_t) {
                     return trainer_->feed({{"x", data_}, {"y", data_}});
                   })
        .status();
  }

  // The slowest rank's time for work that all begin together.
  StatusOr<double> Time(const std::function<Status()>& work) {
    ZG_RETURN_IF_ERROR(job_.communicator().Barrier("begin"));
    const Clock::time_point start = Clock::now();
    ZG_RETURN_IF_ERROR(work());
    ZG_RETURN_IF_ERROR(job_.communicator().Barrier("end"));
    return MsSince(start);
  }

  Status Measure(Column* column, const std::function<Status()>& work) {
    ZG_ASSIGN_OR_RETURN(const double ms, Time(work));
    column->ms.push_back(ms);
    return Status::Ok();
  }

  Status Round() {
    ZG_RETURN_IF_ERROR(Measure(&write_, [&] { return WritePlainFile(); }));
    ZG_RETURN_IF_ERROR(Measure(&save_, [&] { return trainer_->save(directory()); }));
    ZG_RETURN_IF_ERROR(ForgetCachedFiles());
    ZG_RETURN_IF_ERROR(Measure(&read_, [&] { return ReadPlainFile(); }));
    ZG_RETURN_IF_ERROR(Measure(&load_, [&] { return trainer_->resume(directory()); }));
    unlink(PlainFile().c_str());
    return StepWhileSaving();
  }

  // Writes like `dd conv=fsync`.
  Status WritePlainFile() {
    const std::vector<char> chunk(kChunkBytes, 'x');
    ZG_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Create(PlainFile(), 0));
    for (int64_t offset = 0; offset < my_bytes_; offset += kChunkBytes) {
      const size_t size = std::min<int64_t>(kChunkBytes, my_bytes_ - offset);
      ZG_RETURN_IF_ERROR(file.WriteAt(offset, chunk.data(), size));
    }
    return file.Sync();
  }

  Status ReadPlainFile() const {
    std::vector<char> chunk(kChunkBytes);
    const int file = open(PlainFile().c_str(), O_RDONLY | O_CLOEXEC);
    ssize_t count = 1;
    while (file >= 0 && count > 0) count = read(file, chunk.data(), chunk.size());
    if (file >= 0) close(file);
    return count == 0 ? Status::Ok() : FailedPrecondition("{}: cannot be read", PlainFile());
  }

  // Makes the next reads come from the disk, as after a restart.
  Status ForgetCachedFiles() {
    if (job_.is_main()) {
      for (const auto& entry : fs::recursive_directory_iterator(directory())) {
        const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        close(file);
      }
    }
    return job_.communicator().Barrier("files are forgotten");
  }

  Status StepWhileSaving() {
    for (int64_t i = 0; i < flags_.steps_alone; ++i) {
      ZG_RETURN_IF_ERROR(Measure(&step_alone_, [&] { return Step(); }));
    }
    ZG_RETURN_IF_ERROR(Measure(&start_, [&] { return trainer_->start_saving(directory()); }));
    const Clock::time_point start = Clock::now();
    bool is_saved = false;
    double added_ms = start_.ms.back();
    while (!is_saved) {
      ZG_ASSIGN_OR_RETURN(const double ms, Time([&]() -> Status {
                            ZG_RETURN_IF_ERROR(Step());
                            ZG_ASSIGN_OR_RETURN(is_saved, trainer_->continue_saving());
                            return Status::Ok();
                          }));
      step_during_.ms.push_back(ms);
      added_ms += ms - Mean(step_alone_.ms);
    }
    save_async_.ms.push_back(MsSince(start));
    added_.ms.push_back(added_ms);
    return Status::Ok();
  }

  void PrintRate(const Column& column, const Column& plain) const {
    const double ms = Median(column.ms);
    print_out(
        fmt::format("  {:<34} {:>8.1f} ms  {:>10}/s  {:.2f} x the disk\n", column.name, ms,
                    FormatBytes(static_cast<int64_t>(static_cast<double>(all_bytes_) * 1e3 / ms)),
                    Median(plain.ms) / ms));
  }

  void Print() const {
    if (!job_.is_main()) return;
    print_out(fmt::format("{} on {} ranks, ZeRO stage {}, medians of {} rounds\n",
                          FormatBytes(all_bytes_), job_.size(), job_.options().compile.zero.stage,
                          flags_.rounds));
    PrintRate(write_, write_);
    PrintRate(save_, write_);
    PrintRate(read_, read_);
    PrintRate(load_, read_);
    PrintRate(save_async_, write_);
    const double alone = Mean(step_alone_.ms);
    const double during = Mean(step_during_.ms);
    print_out(fmt::format(
        "  a step alone {:.1f} ms, while a thread saves {:.1f} ms ({:.2f} x; means)\n"
        "  a save takes from training: {:.1f} ms when it waits, {:.1f} ms when it does not, of "
        "which "
        "{:.1f} ms for the copy\n",
        alone, during, during / alone, Median(save_.ms), Median(added_.ms), Median(start_.ms)));
  }

  Job& job_;
  const Flags flags_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<float> data_;
  int64_t my_bytes_ = 0;
  int64_t all_bytes_ = 0;
  Column write_{"disk: write and fsync", {}};
  Column save_{"save", {}};
  Column read_{"disk: read", {}};
  Column load_{"load, with checksums", {}};
  Column save_async_{"save while training goes on", {}};
  Column start_{"start of a save", {}};
  Column added_{"added by a save", {}};
  Column step_alone_{"step", {}};
  Column step_during_{"step while saving", {}};
};

int Main(int argc, char** argv) {
  RegisterAllOps();
  Flags flags;
  FlagParser parser("Times checkpoints. --save names a directory on the disk in question.");
  parser.section("Benchmark");
  parser.add_int("layers", &flags.layers, at_least(1), "linear layers");
  parser.add_int("width", &flags.width, at_least(1), "inputs and outputs of each");
  parser.add_int("rounds", &flags.rounds, at_least(1), "rounds of everything");
  parser.add_int("steps-alone", &flags.steps_alone, at_least(1), "steps per round without a save");
  JobOptions defaults;
  defaults.batch = 20;
  Job job = Job::start(argc, argv, parser, defaults);
  job.check_on_all_ranks(
      job.options().save.empty()
          ? InvalidArgument("--save: got none, expected a directory to save into")
          : Status::Ok());
  job.run([&](Job& rank) { return Bench(rank, flags).Run(); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
