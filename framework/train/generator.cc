#include "framework/train/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace zg {

Generator::Generator(Graph& graph, const GeneratorOptions& options,
                     const std::function<Var(Var)>& model)
    : Generator(graph, options, [&](Var tokens, Inputs&) { return model(tokens); }) {}

Generator::Generator(Graph& graph, const GeneratorOptions& options,
                     const std::function<Var(Var, Inputs&)>& model)
    : options_(options), programs_(graph, options, model) {}

Status Generator::CheckText(const std::vector<int64_t>& text) const {
  if (text.empty()) {
    return InvalidArgument(
        "{}: got a text without tokens, expected at least one; begin with the token that stands for "
        "the beginning of a text, or with a line break",
        who());
  }
  if (programs_.has_caches() && static_cast<int64_t>(text.size()) > options_.context) {
    return InvalidArgument(
        "{}: got a text of {} tokens, expected at most {}, the context; give its last ones", who(),
        text.size(), options_.context);
  }
  const int64_t vocabulary = programs_.vocabulary();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= 0 && text[i] < vocabulary) continue;
    return InvalidArgument("{}: token {} of the text is {}, expected 0 to {}, the vocabulary",
                           who(), i, text[i], vocabulary - 1);
  }
  return Status::Ok();
}

Status Generator::CheckEnd(int64_t max_tokens, std::optional<int64_t> stop) const {
  if (max_tokens < 0) {
    return InvalidArgument("{}: max_tokens is {}, expected at least 0", who(), max_tokens);
  }
  const int64_t vocabulary = programs_.vocabulary();
  if (!stop || (*stop >= 0 && *stop < vocabulary)) return Status::Ok();
  return InvalidArgument("{}: the token to stop at is {}, expected 0 to {}, the vocabulary", who(),
                         *stop, vocabulary - 1);
}

Status Generator::CheckRoom(const std::vector<int64_t>& prompt, int64_t max_tokens,
                            const char* hint) const {
  // The last token is returned, but not computed.
  const int64_t room = options_.context - static_cast<int64_t>(prompt.size()) + 1;
  if (!programs_.has_caches() || max_tokens <= room) return Status::Ok();
  return InvalidArgument(
      "{}: got a prompt of {} tokens and max_tokens {}, which outgrow the context of {}; give "
      "max_tokens <= {}{}",
      who(), prompt.size(), max_tokens, options_.context, room, hint);
}

StatusOr<std::vector<int64_t>> Generator::generate(Trainer& trainer,
                                                   const std::vector<int64_t>& prompt,
                                                   const GenerateOptions& options) {
  ZG_ASSIGN_OR_RETURN(auto texts, generate_all(trainer, {prompt}, options));
  return std::move(texts[0]);
}

// What a row generates.
struct Generator::Running {
  size_t index = 0;  // of the prompt
  std::vector<int64_t> tokens = {};

  // The first prompt's draws are numbered from 0 on, the others' far behind.
  uint64_t NumberOfDraw() const { return (static_cast<uint64_t>(index) << 32) + tokens.size(); }
};

Status Generator::CheckPrompts(const std::vector<std::vector<int64_t>>& prompts,
                               const GenerateOptions& options) const {
  ZG_RETURN_IF_ERROR(CheckEnd(options.max_tokens, options.stop));
  for (size_t i = 0; i < prompts.size(); ++i) {
    Status valid = CheckText(prompts[i]);
    if (valid.ok() && !options.slide) {
      valid = CheckRoom(prompts[i], options.max_tokens,
                        ", or slide to go on from the last half of the context");
    }
    ZG_RETURN_IF_ERROR(prompts.size() > 1 ? valid.WithContext(fmt::format("prompt {}", i)) : valid);
  }
  const auto num_prompts = static_cast<int64_t>(prompts.size());
  if (options.inputs.empty() || num_prompts <= programs_.num_rows()) return Status::Ok();
  return InvalidArgument(
      "{}: got inputs and {} prompts, expected at most {}, which are computed at once", who(),
      num_prompts, programs_.num_rows());
}

void Generator::SlideIfFull(TextRow* row) const {
  const bool is_full = static_cast<int64_t>(row->text.size()) > options_.context;
  if (!programs_.has_caches() || !is_full) return;
  const int64_t kept = std::max<int64_t>(1, options_.context / 2);
  *row = {{row->text.end() - kept, row->text.end()}};
}

StatusOr<std::vector<std::vector<int64_t>>> Generator::generate_all(
    Trainer& trainer, const std::vector<std::vector<int64_t>>& prompts,
    const GenerateOptions& options) {
  ZG_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::create(options.sampler));
  ZG_RETURN_IF_ERROR(CheckPrompts(prompts, options));
  std::vector<std::vector<int64_t>> results(prompts.size());
  if (prompts.empty() || options.max_tokens == 0) return results;
  reset();
  ZG_RETURN_IF_ERROR(programs_.Begin(trainer, prompts[0], options.inputs));
  std::vector<TextRow> rows(programs_.num_rows());
  std::vector<Running> running(std::min(rows.size(), prompts.size()));
  size_t num_begun = 0, num_ended = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    rows[i].text = prompts[i];
    running[i].index = num_begun++;
  }
  while (num_ended < prompts.size()) {
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits,
                        programs_.Advance(trainer, &rows, options.inputs));
    for (size_t i = 0; i < running.size() && !logits.empty(); ++i) {
      TextRow& row = rows[i];
      Running& own = running[i];
      if (row.is_idle() || !row.is_computed()) continue;
      const auto first = logits.begin() + i * programs_.vocabulary();
      std::vector<float> own_logits(first, first + programs_.vocabulary());
      if (options.adjust) options.adjust(row.text, &own_logits);
      ZG_ASSIGN_OR_RETURN(const int64_t token, sampler.draw(own_logits, own.NumberOfDraw()));
      own.tokens.push_back(token);
      row.text.push_back(token);
      SlideIfFull(&row);
      const bool is_full = static_cast<int64_t>(own.tokens.size()) == options.max_tokens;
      if (!is_full && options.stop != token) continue;
      results[own.index] = std::move(own.tokens);
      ++num_ended;
      row = {};
      if (num_begun == prompts.size()) continue;
      row.text = prompts[num_begun];
      own = {num_begun++};
    }
  }
  return results;
}

StatusOr<std::vector<Beam>> Generator::beam_search(Trainer& trainer,
                                                   const std::vector<int64_t>& prompt,
                                                   const BeamSearchOptions& options,
                                                   const std::vector<NamedData>& inputs) {
  if (options_.beams < 1) {
    return InvalidArgument("{}: its programs keep no beams; set GeneratorOptions::beams", who());
  }
  ZG_RETURN_IF_ERROR(CheckText(prompt));
  ZG_RETURN_IF_ERROR(CheckEnd(options.max_tokens, options.stop));
  if (!std::isfinite(options.length_penalty)) {
    return InvalidArgument("{}: length_penalty is {}, expected a finite number", who(),
                           options.length_penalty);
  }
  ZG_RETURN_IF_ERROR(CheckRoom(prompt, options.max_tokens, ""));
  BeamSearch search(options_.beams, options);
  if (search.done()) return search.best();
  reset();
  ZG_RETURN_IF_ERROR(programs_.Begin(trainer, prompt, inputs));
  std::vector<TextRow> rows(programs_.num_rows());
  rows[0].text = prompt;
  ZG_ASSIGN_OR_RETURN(std::vector<float> logits, programs_.ComputeFirst(trainer, &rows, inputs));
  logits.resize(programs_.vocabulary());  // the prompt's
  while (true) {
    ZG_RETURN_IF_ERROR(search.take(logits));
    if (search.done()) return search.best();
    std::vector<TextRow> next(rows.size());
    std::vector<int64_t> parents(rows.size());
    for (size_t i = 0; i < search.tokens().size(); ++i) {
      parents[i] = search.parents()[i];
      next[i] = rows[parents[i]];
      next[i].text.push_back(search.tokens()[i]);
    }
    rows = std::move(next);
    ZG_ASSIGN_OR_RETURN(logits, programs_.Advance(trainer, &rows, inputs, parents));
    logits.resize(search.tokens().size() * programs_.vocabulary());
  }
}

StatusOr<std::vector<float>> Generator::logits(Trainer& trainer, const std::vector<int64_t>& text,
                                               const std::vector<NamedData>& inputs) {
  ZG_RETURN_IF_ERROR(CheckText(text));
  const int64_t version = trainer.executor().version();
  const bool sees_more = !inputs.empty() || TextPrograms::HasOtherInputs(trainer, options_);
  if (sees_more || version_ != version) reset();
  TextRow row = {text};
  const size_t most = std::min(cached_.size(), text.size() - 1);  // the logits come from the last
                                                                  // token, so it is computed again
  const auto common = std::mismatch(text.begin(), text.begin() + most, cached_.begin()).first;
  row.computed = common - text.begin();
  // A state does not go back to what it was.
  if (programs_.has_states() && row.computed < static_cast<int64_t>(cached_.size())) {
    row.computed = 0;
  }
  if (cached_.empty()) ZG_RETURN_IF_ERROR(programs_.Begin(trainer, text, inputs));
  reset();  // an error leaves no valid cache
  std::vector<TextRow> rows(programs_.num_rows());
  rows[0] = std::move(row);
  ZG_ASSIGN_OR_RETURN(std::vector<float> logits, programs_.ComputeFirst(trainer, &rows, inputs));
  logits.resize(programs_.vocabulary());
  cached_ = text;
  version_ = version;
  return logits;
}

}  // namespace zg
