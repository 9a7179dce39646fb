#include "framework/train/generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/nn/decoding.h"
#include "framework/nn/shapes.h"

namespace zg {

Generator::Generator(Graph& graph, const GeneratorOptions& options,
                     const std::function<Var(Var)>& model)
    : options_(options) {
  options_.chunk = std::min(options.chunk, options.context);
  // The logits of `size` tokens, (size, vocabulary).
  const auto call = [&](Inputs& in, int64_t size) {
    nn::Trace& trace = nn::Trace::Of("Generator");
    if (size < 1) {
      return trace.Fail(InvalidArgument("{}: context is {} and chunk {}, expected at least 1 each",
                                        who(), options.context, options.chunk));
    }
    const Var tokens = in.i64("tokens", {1, size}, Sbp::B());
    const nn::Decoding decoding(options_.name, in.i64("start", {1}, Sbp::B()), options_.context);
    const Var logits = model(tokens);
    if (!trace.status().ok() || logits.empty()) return logits;
    const Shape shape = logits.shape();
    if (shape.num_dims() != 3 || shape.dim(0) != 1 || shape.dim(1) != size) {
      return trace.Fail(
          InvalidArgument("{}: the model returns {} of tokens [1,{}], expected logits "
                          "(1, {}, vocabulary)",
                          who(), shape.ToString(), size, size));
    }
    has_caches_ = decoding.has_caches();
    has_states_ = decoding.has_states();
    if (!has_caches_ && !has_states_) {
      return trace.Fail(InvalidArgument(
          "{}: the model has neither causal attention nor a recurrence, through which it would see "
          "the text so far; expected functions or modules that call zg::attention, or others of "
          "framework/nn/decoding.h",
          who()));
    }
    vocabulary_ = shape.dim(2);
    return reshape(logits, {size, vocabulary_});
  };
  graph.eval(prefill(), [&](Inputs& in) {
    call(in, options_.chunk);
    return Outputs{};  // only the caches: what computes logits is dead code
  });
  graph.eval(decode(), [&](Inputs& in) { return call(in, 1); });
}

std::string Generator::who() const { return fmt::format("generator '{}'", options_.name); }

Status Generator::CheckText(const std::vector<int64_t>& text) const {
  if (text.empty()) {
    return InvalidArgument(
        "{}: got a text without tokens, expected at least one; begin with the token that stands for "
        "the beginning of a text, or with a line break",
        who());
  }
  if (has_caches_ && static_cast<int64_t>(text.size()) > options_.context) {
    return InvalidArgument(
        "{}: got a text of {} tokens, expected at most {}, the context; give its last ones", who(),
        text.size(), options_.context);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= 0 && text[i] < vocabulary_) continue;
    return InvalidArgument("{}: token {} of the text is {}, expected 0 to {}, the vocabulary",
                           who(), i, text[i], vocabulary_ - 1);
  }
  return Status::Ok();
}

StatusOr<std::vector<int64_t>> Generator::generate(Trainer& trainer,
                                                   const std::vector<int64_t>& prompt,
                                                   const GenerateOptions& options) {
  ZG_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::create(options.sampler));
  ZG_RETURN_IF_ERROR(CheckText(prompt));
  if (options.max_tokens < 0) {
    return InvalidArgument("{}: max_tokens is {}, expected at least 0", who(), options.max_tokens);
  }
  // The last token is returned, but not computed.
  const int64_t room = options_.context - static_cast<int64_t>(prompt.size()) + 1;
  if (has_caches_ && !options.slide && options.max_tokens > room) {
    return InvalidArgument(
        "{}: got a prompt of {} tokens and max_tokens {}, which outgrow the context of {}; give "
        "max_tokens <= {}, or slide to go on from the last half of the context",
        who(), prompt.size(), options.max_tokens, options_.context, room);
  }
  reset();
  std::vector<int64_t> seen = prompt;
  std::vector<int64_t> tokens;
  while (static_cast<int64_t>(tokens.size()) < options.max_tokens) {
    if (has_caches_ && static_cast<int64_t>(seen.size()) > options_.context) {
      seen.erase(seen.begin(), seen.end() - std::max<int64_t>(1, options_.context / 2));
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, this->logits(trainer, seen));
    ZG_ASSIGN_OR_RETURN(const int64_t token, sampler.draw(logits, tokens.size()));
    tokens.push_back(token);
    seen.push_back(token);
    if (options.stop == token) break;
  }
  return tokens;
}

StatusOr<std::vector<float>> Generator::logits(Trainer& trainer, const std::vector<int64_t>& text) {
  ZG_RETURN_IF_ERROR(CheckText(text));
  if (version_ != trainer.executor().version()) reset();
  const size_t most = std::min(cached_.size(), text.size() - 1);  // the logits come from the last
                                                                  // token, so it is computed again
  const auto common = std::mismatch(text.begin(), text.begin() + most, cached_.begin()).first;
  int64_t begin = common - text.begin();
  // A state does not go back to what it was.
  if (has_states_ && begin < static_cast<int64_t>(cached_.size())) begin = 0;
  reset();  // an error leaves no valid cache
  ZG_ASSIGN_OR_RETURN(std::vector<float> logits, Compute(trainer, text, begin));
  cached_ = text;
  version_ = trainer.executor().version();
  return logits;
}

StatusOr<std::vector<float>> Generator::Compute(Trainer& trainer, const std::vector<int64_t>& text,
                                                int64_t begin) const {
  const int64_t last = static_cast<int64_t>(text.size()) - 1;
  // States know no tokens but those of the text, each of them once: only whole chunks.
  while (last - begin >= (has_states_ ? options_.chunk : 2)) {
    // A chunk does not extend beyond the context: the last one computes some tokens again.
    const int64_t latest = has_caches_ ? options_.context - options_.chunk : begin;
    const std::vector<int64_t> start = {std::min(begin, latest)};
    const int64_t count = std::min(options_.chunk, last - start[0]);
    std::vector<int64_t> tokens(text.begin() + start[0], text.begin() + start[0] + count);
    tokens.resize(options_.chunk);  // including some after the text, which later ones overwrite
    ZG_RETURN_IF_ERROR(trainer.eval(prefill(), {{"tokens", tokens}, {"start", start}}));
    begin = start[0] + count;
  }
  for (; begin <= last; ++begin) {
    const std::vector<int64_t> start = {begin};
    const std::vector<int64_t> token = {text[begin]};
    ZG_RETURN_IF_ERROR(trainer.eval(decode(), {{"tokens", token}, {"start", start}}));
  }
  return trainer.result(decode());
}

}  // namespace zg
