#include "models/text/language.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/hugging_face/from_flag.h"
#include "models/text/text_windows.h"
#include "zerograph/zerograph.h"

namespace zg::models {

Status TrainLanguage(Job& job, const LanguageTask& task, const Text& text,
                     const TextFlags& text_flags, const SampleFlags& sample_flags,
                     const std::function<Var(Var)>& model) {
  ZG_ASSIGN_OR_RETURN(TextWindows windows, TextWindows::Create(job, text.tokens(), task.context,
                                                               text_flags.eval_windows));
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> prompt,
                      text.Prompt(sample_flags, task.longest_prompt));
  Graph graph(task.name);
  const int64_t batch = job.options().batch;
  const auto loss = [&](Inputs& in, int64_t rows) {
    const Shape shape = {rows, task.context};
    return cross_entropy(model(in.i64("x", shape)), in.i64("y", shape));
  };
  graph.train(task.optimizer, [&](Inputs& in) {
    const Var of_text = loss(in, batch);
    return task.penalty == nullptr ? of_text : of_text + task.penalty();
  });
  windows.AddPrograms(graph, loss);
  std::optional<Generator> generator;
  if (sample_flags.tokens > 0) {
    generator.emplace(graph, GeneratorOptions{.context = task.context}, model);
  }

  TrainOptions options;
  options.description = task.description;
  options.settings = task.settings;
  options.samples_per_micro_batch = batch;
  options.tokens_per_micro_batch = batch * task.context;
  std::unique_ptr<Trainer> made = make_trainer(job, graph, options);
  ZG_RETURN_IF_ERROR(LoadFrom(job, task.from, *made));
  Training training(job, std::move(made), options);
  Trainer& trainer = training.trainer();
  while (training.next()) {
    training.step([&](int64_t micro_batch) {
      return windows.Feed(trainer, training.step_number(), micro_batch);
    });
  }
  if (training.report().was_ended_by_signal) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const double validation, windows.ValidationLoss(trainer));
  training.log("validation_loss", validation);
  ZG_ASSIGN_OR_RETURN(const std::string lines,
                      text.LossLines(validation, windows.validation_tokens()));
  if (job.is_main()) print_out(lines);
  if (!generator) return Status::Ok();
  const auto seed = static_cast<uint64_t>(job.options().seed);
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> sample,
                      generator->generate(trainer, prompt, OptionsOf(sample_flags, seed)));
  if (job.is_main()) print_out(text.Continuation(sample_flags, sample));
  return Status::Ok();
}

}  // namespace zg::models
