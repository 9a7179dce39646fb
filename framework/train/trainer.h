// Trainer: a program with its memory, ready to train. create() allocates the arena and initializes
// the parameters; then step() trains and eval() evaluates with the same parameters.
//
//   ZG_ASSIGN_OR_RETURN(auto trainer, Trainer::create(std::move(program), communicator, options));
//   ZG_ASSIGN_OR_RETURN(float loss, trainer->step([&](int64_t micro_batch) {
//     FillBatch(step, micro_batch, &x, &y);
//     return trainer->feed({{"x", x}, {"y", y}});
//   }));
//
// Every rank must make the same calls, in the same order. From within `feed`, what changes the trainer,
// saves it, or takes a step or an eval is an error, after which nothing has changed.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/io/checkpoint_store.h"
#include "framework/nn/graph.h"
#include "framework/passes/program.h"
#include "framework/runtime/executor.h"
#include "framework/state/name_in_file.h"
#include "framework/state/save_memory.h"
#include "framework/state/save_options.h"
#include "framework/state/tensor_state.h"
#include "framework/state/tensor_values.h"

namespace zg {

class CheckpointSave;
class MeasuredGemms;

// The data of one input for one micro-batch. A view of the caller's memory.
struct NamedData {
  NamedData(std::string_view input, const std::vector<float>& values)
      : NamedData(input, values.data(), static_cast<int64_t>(values.size())) {}
  NamedData(std::string_view input, const std::vector<int64_t>& values)
      : NamedData(input, values.data(), static_cast<int64_t>(values.size())) {}
  NamedData(std::string_view input, const std::vector<uint8_t>& values)  // of bool
      : NamedData(input, values.data(), static_cast<int64_t>(values.size())) {}
  // A part of a longer array.
  NamedData(std::string_view input, const float* values, int64_t count)
      : name(input), dtype(DType::kF32), data(values), bytes(count * 4) {}
  NamedData(std::string_view input, const int64_t* values, int64_t count)
      : name(input), dtype(DType::kI64), data(values), bytes(count * 8) {}
  NamedData(std::string_view input, const uint8_t* values, int64_t count)
      : name(input), dtype(DType::kBool), data(values), bytes(count) {}

  std::string_view name;
  DType dtype;
  const void* data;
  int64_t bytes;
};

struct TrainerOptions {
  uint64_t seed = 1;  // for initial values and dropout
  bool measure_memory = true;
  // Checks the initial parameters and the outputs of every node. The first infinity or NaN is an
  // error that names the node. Slow.
  bool detect_anomaly = false;
  bool profile = false;  // measures the time of every node, for executor().profile()
  int64_t gradient_histograms_every = 0;  // steps; 0: never
  int64_t trace_steps = 0;                // records when the nodes of so many steps ran, for
                                          // executor().timeline()
  bool record = false;  // records a step's work on the device and replays it (CUDA graphs)
  bool tf32 = false;    // linear layers in f32 on a GPU may round operands (CudaKernels)
  int threads = 1;      // CPU threads of a rank that compute together; no bit depends on their
                        // number
  const KernelRegistry* kernels = nullptr;  // null: those of the communicator's device
  // What the bits of its kernels depend on, as recorded in checkpoints; "": ArithmeticOf that
  // device.
  std::string arithmetic = {};
  // The kernels that the program was compiled for, instead of `kernels`; null: the program uses
  // `kernels`.
  std::shared_ptr<MeasuredGemms> measured_gemms = nullptr;
};

// The state of the optimizer: f32 tensors by name, such as "hidden.weight.exp_avg"; with f16 also
// the state of the loss scaler.
struct OptimizerState {
  int64_t step = 0;  // steps done
  // By name, the parameter groups that some steps did not update, and how many (step_groups).
  std::map<std::string, int64_t> skipped_steps = {};
  NamedValues tensors;  // logical shapes; whole, or a rank's parts
};

class Trainer {
 public:
  ~Trainer();

  // Errors: a program for another number of ranks, ranks whose programs differ, too little memory.
  // The communicator must outlive the trainer. A trainer that is made while another one of the same
  // communicator exists gets a duplicate of it, so that several can take steps in turns, in the same
  // order on every rank. All of them are used by one thread.
  static StatusOr<std::unique_ptr<Trainer>> create(Program program, Communicator& communicator,
                                                   const TrainerOptions& options);

  // Replaces the initializers' values by those of a safetensors file, shards or a checkpoint, by
  // name, in F32, F16 or BF16 (Weights::Open in io/weights.h says what a path may be).
  // Every rank must call this, before the first step. Errors, on every rank: a file that cannot be
  // read; all tensors that are missing, unknown or of another shape. The file may lack the
  // parameters that the patterns `may_lack` name: these keep their values. Tensors that `may_skip`
  // names are not read, such as the classifier of a pretrained model, nor are PyTorch's counts of
  // batches (num_batches_tracked). `name_in_file` says how the file names the parameters, if not as the
  // model does; patterns of `may_lack` are of the model's names, those of `may_skip` of the file's.
  Status load_parameters(const std::string& path, const std::string& may_lack = "",
                         const std::string& may_skip = "",
                         const NameInFile& name_in_file = nullptr);
  // Writes the parameters and buffers to a safetensors file in F32, by those names; kAveraged: those that
  // averaged_parameters() returns. Rank 0 writes it, and holds all of them meanwhile. Every rank must
  // call this. Errors, on every rank: a file that cannot be written; two parameters of one name; those of
  // averaged_parameters().
  enum class Weights { kTrained, kAveraged };
  Status save_parameters(const std::string& path, const NameInFile& name_in_file = nullptr,
                         Weights weights = Weights::kTrained);

  // Takes one step. Calls `feed` for each micro-batch of this rank, with its index among the
  // micro-batches of all ranks in this step. Returns the mean loss over all micro-batches. A step
  // that fails does not count; if only some ranks fail, the others wait for them or fail as well, and the
  // job must end. What `feed` throws is an error.
  StatusOr<float> step(const std::function<Status(int64_t micro_batch)>& feed);
  // The same with the data of this rank's only micro-batch. Error: a step has several.
  StatusOr<float> step(const std::vector<NamedData>& data);
  // A step that updates only the parameters of these groups, such as the players of a game in turns:
  //   trainer->step_groups({"critic"}, {{"real", x}, {"noise", z}});
  // "" names the parameters that are in no group. The others keep their values and states, and what
  // only their gradients need is not computed; the loss and the other results are. An optimizer that
  // counts its updates (Adam) counts those of a group. Errors: no such group, or one that the phase does
  // not train; a program whose groups share one norm of gradients or one count of updates (max_grad_norm, f16, on_non_finite skip); a
  // recorded one; ranks that name different groups.
  StatusOr<float> step_groups(const std::vector<std::string>& groups,
                              const std::function<Status(int64_t micro_batch)>& feed);
  StatusOr<float> step_groups(const std::vector<std::string>& groups,
                              const std::vector<NamedData>& data);
  // Sets inputs of the training program for one micro-batch, from within `feed`: all of its inputs,
  // each time. The data is copied. Error: no step is being taken.
  Status feed(std::initializer_list<NamedData> data);  // allocates nothing after the first step
  Status feed(const std::vector<NamedData>& data);
  // The size of the inputs of the next steps, out of those that Graph::train was given; at first it is
  // the largest. It must be the same on every rank, or the next step is an error. Errors: no such size;
  // called from within `feed`.
  Status set_size(int64_t size);
  int64_t size() const { return variant_.size; }  // 0: the graph has one size only
  // The phase of the next steps (Graph::train); at first it is the first one. Errors as those of
  // set_size.
  Status set_phase(const std::string& phase);
  const std::string& phase() const { return variant_.phase; }  // "": the graph has none

  // This rank's part of a result that the last step returned beside the loss: the values of its
  // micro-batches, one after the other; for a scalar, the mean over the step. Errors: no such result; no
  // step has been taken since the program was compiled.
  StatusOr<std::vector<float>> local_step_result(std::string_view result) const;
  // The result of all micro-batches of the last step, in their order, on rank `to`. The other ranks
  // get an empty vector, or also the result if every rank holds it whole, such as a scalar. Every
  // rank must call this.
  StatusOr<std::vector<float>> step_result(std::string_view result, int to = 0) const;

  // Runs an eval program on this rank's micro-batch. Its results stay in the arena until the next
  // run. Every rank must call this, in the same order.
  Status eval(std::string_view name, const std::vector<NamedData>& data);
  // This rank's part of a result of the eval program that ran last: the rows of its own
  // micro-batch, or, for a scalar, the mean over all ranks. Error: another program has run since.
  StatusOr<std::vector<float>> local_result(std::string_view eval,
                                            std::string_view result = "result") const;
  // The result of all ranks, side by side, on rank `to`. The other ranks get an empty vector, or
  // also the result if every rank holds it whole, such as a scalar. Every rank must call this.
  StatusOr<std::vector<float>> result(std::string_view eval, std::string_view result = "result",
                                      int to = 0) const;

  // Writes a checkpoint to `directory`/step-... It can be resumed at any stage and on any number of
  // ranks. Errors, on every rank: the failure of any rank. Older checkpoints then remain, and
  // training can go on.
  Status save(const std::string& directory, const SaveOptions& options = {});
  // Creates and locks the directory, on rank 0. The first save() into a directory does so, too;
  // call this before training so that errors come early.
  Status prepare_saving(const std::string& directory);

  // Starts an asynchronous save: copies the state, which a thread then writes while steps go on.
  // The files are those of save(). Errors, after which nothing was started: those of save();
  // another save is in progress.
  Status start_saving(const std::string& directory, const SaveOptions& options = {});
  // Continues the asynchronous save and returns whether it has ended; does not wait. Call it
  // between steps until it returns true. Error, on every rank: that of save(); the save has then
  // ended, too.
  StatusOr<bool> continue_saving();
  // Waits for the end of the asynchronous save. Error: that of save().
  Status finish_saving();
  // The step of the asynchronous save in progress, if any.
  std::optional<int64_t> saving_step() const;

  // Allocates the memory for the copies of all asynchronous saves. The first start_saving() does
  // so, too; call this before training so that errors come early. Error, on every rank: too little
  // memory.
  Status reserve_for_saving();
  // The most of any rank.
  int64_t reserved_for_saving_bytes() const { return save_memory_.most_bytes; }

  // Restores a checkpoint. `path` is its directory, or a directory with `latest`. Every byte is
  // checked first. Errors, on every rank: a damaged checkpoint or one of a newer format; tensors or
  // settings that differ from those of this run.
  // `groups` are those that add_parameter_group had added before.
  Status resume(const std::string& path, const std::vector<optim::ParameterGroup>& groups = {});

  // The whole parameters (f32 masters of 16-bit ones) on rank `to`, nothing on the other ranks.
  // The same bits at every stage and on any number of ranks. Every rank must call this, in the same
  // order. Error: no such rank.
  StatusOr<NamedValues> consolidate_parameters(int to = 0);
  // The same with the weights that eval programs read where the optimizer keeps such: averages
  // (optim::with_ema). Rank `to` holds the optimizer's state meanwhile. Error, on every rank: no
  // parameter has such.
  StatusOr<NamedValues> averaged_parameters(int to = 0);
  // Distributes the parameters of rank `from`; the other ranks may pass nothing. Every rank must
  // call this, in the same order. Errors, on every rank: no such rank; all tensors that are
  // missing, unknown, not whole or of another shape. After an error nothing has changed. `may_lack` is
  // that of load_parameters, so that one parameter can be set:
  //   trainer->scatter_parameters({{"scale", zg::WholeTensor({1}, {0.5})}}, 0, "**");
  Status scatter_parameters(const NamedValues& whole, int from = 0,
                            const std::string& may_lack = "");

  // The same for the optimizer's state: PyTorch's ZeroRedundancyOptimizer calls this
  // consolidate_state_dict(to). `step` is set on every rank.
  StatusOr<OptimizerState> consolidate_optimizer_state(int to = 0);
  // Also sets the step to that of rank `from`.
  Status scatter_optimizer_state(const OptimizerState& whole, int from = 0);

  // A copy of this rank's part of the optimizer's state. It fits the same rank of a trainer with
  // the same stage, number of ranks and buckets.
  StatusOr<OptimizerState> local_optimizer_state() const;
  // Each rank passes what local_optimizer_state returned there, or a whole state, of the same step
  // everywhere (load_state_dict). Every rank must call this. Errors, on every rank: as above;
  // elements that a rank holds and was not given; ranks that pass different steps.
  Status load_optimizer_state(const OptimizerState& state);

  // Change between steps which parameters are trained, and how, like the functions of Graph. The program is
  // compiled again, and every tensor that stays keeps its values. Parameters that become frozen lose their
  // optimizer state, and those that join begin with new state and a new count of updates. Checkpoints
  // record the changes, and resume() makes them again. An asynchronous save that is in progress is waited
  // for; finish_saving() still returns its error. Every rank must call these, with the same arguments.
  // Errors, on every rank, after which nothing has changed: those of Graph; nothing is left to train;
  // arguments that differ; too little memory.
  Status freeze(const std::string& parameters);
  Status unfreeze(const std::string& parameters);
  Status add_parameter_group(const optim::ParameterGroup& group);
  // Between steps, sets other hyperparameters of the same optimizer: the graph's, or that of a
  // group. Its state stays. The program is not compiled again, so that this may be called before
  // every step, unless the rule takes norms of tensors or its average weights for eval change. Call
  // it before resume() if the saved run had changed them. Every rank must call this, with the same
  // arguments. Errors, on every rank, which change nothing: another optimizer; no such group;
  // arguments that differ.
  Status set_optimizer(const optim::Optimizer& optimizer, const std::string& group = "");
  // The function that compiles a changed graph. make_trainer sets it.
  using Compiler = std::function<StatusOr<Program>(const Graph& graph)>;
  void set_compiler(std::unique_ptr<Graph> graph, Compiler compile);

  // Adds a setting of the caller that determines the bits of further steps: save() writes it,
  // resume() compares it. The trainer adds its own: seed, micro-batches, optimizer, ...
  void set_setting(const std::string& name, std::string value);

  // Texts in UTF-8 that the program keeps with its checkpoints, such as its best validation loss so far: save()
  // writes those of rank 0, and resume() sets them on every rank. None: nothing of that name.
  void set_note(const std::string& name, std::string text) { notes_[name] = std::move(text); }
  std::optional<std::string> note(const std::string& name) const;

  // What the bits depend on beside settings (kernels/device_kernels.h, train/order_of_sums.h). Resuming a
  // checkpoint with another value gives a warning.
  std::string arithmetic() const;

  // The learning rate of the next steps, relative to the optimizer's: a finite number >= 0, or the next
  // step is an error.
  void set_lr_factor(double factor) { lr_factor_ = factor; }
  double lr_factor() const { return lr_factor_; }
  int64_t steps_done() const { return step_; }
  int64_t micro_batches_per_rank() const;  // micro-batches of a step
  // The index of this rank among the ranks that compute different micro-batches, which selects its
  // data, and the number of these ranks. Ranks that share micro-batches along an axis of the mesh
  // (tensor) count once.
  int data_rank() const;
  int num_data_ranks() const;
  // The number of parameter updates: the steps without those that were skipped because gradients
  // were not finite. Valid on rank 0.
  int64_t num_updates() const;
  // The norm of the gradients of the last step, before clipping; none if the program does not
  // compute it.
  std::optional<float> grad_norm() const { return grad_norm_; }

  StatusOr<TensorDigest> digest_parameters();
  StatusOr<TensorDigest> digest_optimizer_state();
  // The traffic of all steps. Waits for transfers that the last step has left to the next.
  StatusOr<TrafficCounters> step_traffic() const;
  // That of the largest size or the first phase, in whose arena the others run.
  Executor& executor() { return *executor_; }
  // By size, from the smallest, or the first phase behind the others.
  std::vector<const Executor*> executors() const;
  // The one that took the last step.
  Executor& step_executor() { return *stepped_; }
  const Program& program() const { return program_; }
  const Program& stepping_program() const;                // of the size or phase of the next step
  int64_t num_programs() const { return num_programs_; }  // so far, one more after each change
  double create_ms() const { return create_ms_; }         // the time that create() took

 private:
  explicit Trainer(Program program);
  Status MakeExecutors();  // for the program, with initial values
  StatusOr<std::unique_ptr<Executor>> MakeExecutor(const Program& program);
  void ForgetExecutors();
  ExecutorOptions ExecutorOptionsFor(const Program& program) const;
  Status CheckBetweenSteps(std::string_view function) const;
  Status CheckHasStepped(std::string_view result) const;
  Status SetVariant(const char* function, const Variant& variant);
  Status CheckFirstValues();
  StatusOr<float> Scalar(std::string_view name) const;  // an output of training
  Status CheckFeeds() const;
  Status FeedOne(const NamedData& item, bool is_copied);
  Status FeedAll(const std::vector<NamedData>& data);
  // Updates the groups that are named, whose names a message may say.
  StatusOr<float> RunStep(const std::function<Status(int64_t micro_batch)>& feed,
                          const std::string& names, const std::vector<bool>& is_named);
  Status CheckOneMicroBatch(const char* function) const;
  std::optional<size_t> FindGroup(const std::string& name) const;  // its number
  std::vector<int64_t> NumberUpdates(const std::vector<bool>& is_named);
  std::map<std::string, int64_t> skipped_steps() const;  // as in TrainState
  Status set_skipped_steps(const std::map<std::string, int64_t>& skipped);
  std::unique_ptr<CheckpointSave> MakeSave(const SaveOptions& options);
  Status CheckNoneIsUnderWay() const;
  void AwaitSave();  // whose result finish_saving() or continue_saving() will return
  Status Change(const std::string& verb, const std::string& parameters,
                const std::function<void(Graph& graph, const optim::PastSteps& past)>& apply);
  Status CheckSameChange(const std::string& change, int64_t* num_updates) const;
  // Whether the running program updates by `after` now; if not, nothing has changed.
  StatusOr<bool> ReplaceRules(const optim::UpdateRules& before, const optim::UpdateRules& after);
  StatusOr<bool> ReplaceRulesIn(const ir::Graph& graph, const optim::UpdateRules& before,
                                const optim::UpdateRules& after, Executor* executor);
  Status Rebuild(std::unique_ptr<Graph> graph, std::string changes);
  Status RepeatChanges(const std::map<std::string, std::string>& settings,
                       const std::vector<optim::ParameterGroup>& groups);
  // An error of saving the checkpoint of a step, for the user.
  static Status NotSaved(const std::string& directory, int64_t step, const Status& status);

  Program program_;
  TrainerOptions options_;
  std::unique_ptr<Communicator> own_communicator_;  // of a trainer beside others
  Communicator* communicator_ = nullptr;
  const KernelRegistry* kernels_ = nullptr;
  std::unique_ptr<Graph> graph_;  // the graph that the program was compiled from, with its changes
  Compiler compile_;
  std::string changes_;                          // since create(), as in the settings
  std::map<std::string, std::string> settings_;  // as in TrainState
  std::string arithmetic_;                       // likewise
  std::map<std::string, std::string> notes_;     // likewise
  std::optional<CheckpointStore> store_;         // on rank 0, once saving is prepared
  std::string save_directory_;                   // the directory that saving is prepared for
  std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<Executor>> others_;  // by Program::other_variants
  Executor* stepping_ = nullptr;                   // takes the next step
  Executor* stepped_ = nullptr;                    // took the last one
  Variant variant_;                                // of the next step
  bool is_in_step_ = false;
  bool has_stepped_ = false;              // with these executors
  SaveMemory save_memory_;                // for the copy of the save in progress
  std::unique_ptr<CheckpointSave> save_;  // the save in progress
  struct EndedSave {
    int64_t step = 0;
    Status status;
  };
  std::optional<EndedSave> ended_save_;  // of AwaitSave
  bool has_grad_norm_ = false;
  int64_t num_programs_ = 1;
  int64_t step_ = 0;
  std::map<std::string, int64_t> eval_runs_;  // of each program, since the last step
  int64_t eval_runs_after_ = 0;               // that step
  std::vector<int64_t> skipped_;              // by group: the steps that did not update it
  double lr_factor_ = 1.0;
  std::optional<float> grad_norm_;
  TrafficCounters traffic_before_changes_ = {};  // of steps with earlier programs
  double create_ms_ = 0;
};

}  // namespace zg
