// Training: the training loop of a job. It sets learning rates by the schedule of the flags, whose
// factor is multiplied with trainer().lr_factor() (so a program sets a schedule of its own by calling
// trainer().set_lr_factor before each step, and leaves theirs constant), shows progress,
// saves checkpoints, handles signals, and at the end writes summary and report, all as the job's
// flags say. The program supplies the data.
//
//   Training training(job, trainer);
//   while (training.next()) {
//     training.step({{"x", x}, {"y", y}});            // this rank's micro-batch
//   }
//
// Every rank must make the same calls, in the same order. An error ends the job on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/job/report.h"
#include "framework/train/trainer.h"

namespace zg {

struct TrainingOptions {
  // For a run that is resumed: the parameter groups that the saved one had added between steps, and
  // what is called before its checkpoint, of step `step`, is restored: it repeats changes such as
  // Trainer::set_optimizer.
  std::vector<optim::ParameterGroup> groups;
  std::function<Status(Trainer& trainer, int64_t step)> before_resume;
  // Settings of the program that determine the bits, besides flags and optimizer
  // (Trainer::set_setting).
  std::map<std::string, std::string> settings;
  int64_t samples_per_micro_batch = 0;  // 0: unknown
  // 0: a model without tokens. If inputs have several sizes (Graph::train): at the largest; another
  // has as many as is in proportion.
  int64_t tokens_per_micro_batch = 0;
  bool summarizes = true;  // prints the summary and writes the report at the end
};

class Training {
 public:
  // Resumes as the flags say, then prints the configuration, so that errors of the start come
  // before it. The job must outlive it.
  Training(Job& job, std::unique_ptr<Trainer> trainer, TrainingOptions options = {});
  Training(Training&&) noexcept;
  ~Training();

  // Whether there is another step to take. Also saves the checkpoints that are due and, after the
  // last step or when a signal has ended the run, completes the report.
  bool next();
  int64_t step_number() const;  // of the next step; the first of a run is 1

  // Takes the step. Returns the mean loss of its micro-batches.
  float step(const std::vector<NamedData>& data);  // one micro-batch per rank
  // `feed` sets the inputs of each micro-batch of this rank (trainer().feed); `micro_batch` is its
  // index within the step over all ranks.
  float step(const std::function<Status(int64_t micro_batch)>& feed);
  // A step that updates only the parameters of these groups (Trainer::step_groups).
  float step_groups(const std::vector<std::string>& groups, const std::vector<NamedData>& data);
  float step_groups(const std::vector<std::string>& groups,
                    const std::function<Status(int64_t micro_batch)>& feed);

  // Ends training after the last step that was taken, as if it were that of the job's steps: saves the
  // last checkpoint and completes the report; next() then returns false. For early stopping:
  //   while (training.next()) {
  //     training.step(...);
  //     if (validation_loss_rises) training.stop();
  //   }
  // A loop that is left otherwise has no last checkpoint and no report, and says so. Every rank must leave
  // it after the same step.
  void stop();

  // Adds a value of the last step, such as the loss of an evaluation, to the job's metrics of that
  // step. Every rank may call it; the value of rank 0 counts. A name that the step already has is
  // left out, because a resumed run may evaluate a second time.
  void log(std::string_view name, double value);

  Trainer& trainer();
  const Report& report() const;  // complete when next() has returned false

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zg
