#include "framework/train/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/nn/decoding.h"
#include "framework/nn/shapes.h"

namespace zg {

namespace {

constexpr char kTokens[] = "tokens", kStart[] = "start";

// What follows from inputs beside the tokens is computed once for each text.
void MarkInputsOfTheText(const ir::Section& section, const std::string& program) {
  for (ir::Node* node : section.nodes) {
    if (node->op->traits.kind != ir::OpKind::kInput) continue;
    const std::string& name = node->attributes.String("name");
    if (name != kTokens && name != kStart) node->attributes.Set("once", program);
  }
}

const ir::Section* FindEval(const ir::Graph& graph, const std::string& name) {
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kEval && section->name == name) return section.get();
  }
  return nullptr;
}

}  // namespace

Generator::Generator(Graph& graph, const GeneratorOptions& options,
                     const std::function<Var(Var)>& model)
    : Generator(graph, options, [&](Var tokens, Inputs&) { return model(tokens); }) {}

Generator::Generator(Graph& graph, const GeneratorOptions& options,
                     const std::function<Var(Var, Inputs&)>& model)
    : options_(options) {
  options_.chunk = std::min(options.chunk, options.context);
  // The logits of `size` tokens, (size, vocabulary).
  const auto call = [&](Inputs& in, int64_t size, bool computes_once = true) {
    nn::Trace& trace = nn::Trace::Of("Generator");
    if (size < 1) {
      return trace.Fail(InvalidArgument("{}: context is {} and chunk {}, expected at least 1 each",
                                        who(), options.context, options.chunk));
    }
    const Var tokens = in.i64(kTokens, {1, size}, Sbp::B());
    const nn::Decoding decoding(options_.name, in.i64(kStart, {1}, Sbp::B()), options_.context);
    const Var logits = model(tokens, in);
    if (!trace.status().ok() || logits.empty()) return logits;
    if (computes_once) MarkInputsOfTheText(*trace.builder().section(), compute_inputs());
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
  if (num_checked() > 1) {
    graph.eval(check(), [&](Inputs& in) { return call(in, num_checked(), false); });
  }
}

// Two chunks and one token, so that the last one is preceded by as many that an operation may look back
// to, across the ends of chunks.
int64_t Generator::num_checked() const {
  return std::min(2 * options_.chunk + 1, options_.context);
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
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, Continue(trainer, seen, options.inputs));
    ZG_ASSIGN_OR_RETURN(const int64_t token, sampler.draw(logits, tokens.size()));
    tokens.push_back(token);
    seen.push_back(token);
    if (options.stop == token) break;
  }
  return tokens;
}

StatusOr<std::vector<float>> Generator::logits(Trainer& trainer, const std::vector<int64_t>& text,
                                               const std::vector<NamedData>& inputs) {
  if (!inputs.empty() || FindEval(trainer.program().graph, compute_inputs()) != nullptr) reset();
  return Continue(trainer, text, inputs);
}

StatusOr<std::vector<float>> Generator::Continue(Trainer& trainer, const std::vector<int64_t>& text,
                                                 const std::vector<NamedData>& inputs) {
  ZG_RETURN_IF_ERROR(CheckText(text));
  if (version_ != trainer.executor().version()) reset();
  const size_t most = std::min(cached_.size(), text.size() - 1);  // the logits come from the last
                                                                  // token, so it is computed again
  const auto common = std::mismatch(text.begin(), text.begin() + most, cached_.begin()).first;
  int64_t begin = common - text.begin();
  // A state does not go back to what it was.
  if (has_states_ && begin < static_cast<int64_t>(cached_.size())) begin = 0;
  if (cached_.empty()) ZG_RETURN_IF_ERROR(ComputeInputs(trainer, inputs));
  reset();  // an error leaves no valid cache
  const int64_t version = trainer.executor().version();
  if (checked_version_ != version && num_checked() > 1) {
    ZG_RETURN_IF_ERROR(CheckTogether(trainer, text, inputs));
    checked_version_ = version;
    begin = 0;
  }
  ZG_ASSIGN_OR_RETURN(std::vector<float> logits, Compute(trainer, text, inputs, begin));
  cached_ = text;
  version_ = version;
  return logits;
}

StatusOr<std::vector<float>> Generator::Compute(Trainer& trainer, const std::vector<int64_t>& text,
                                                const std::vector<NamedData>& inputs,
                                                int64_t begin) const {
  const int64_t last = static_cast<int64_t>(text.size()) - 1;
  while (FillsChunk(text, begin)) {
    // A chunk does not extend beyond the context: the last one computes some tokens again.
    const int64_t latest = has_caches_ ? options_.context - options_.chunk : begin;
    const int64_t start = std::min(begin, latest);
    const int64_t count = std::min(options_.chunk, last - start);
    std::vector<int64_t> tokens(text.begin() + start, text.begin() + start + count);
    tokens.resize(options_.chunk);  // including some after the text, which later ones overwrite
    ZG_RETURN_IF_ERROR(Run(trainer, prefill(), tokens, start, inputs));
    begin = start + count;
  }
  for (; begin <= last; ++begin) {
    ZG_RETURN_IF_ERROR(Run(trainer, decode(), {text[begin]}, begin, inputs));
  }
  return trainer.result(decode());
}

// States know no tokens but those of the text, each of them once: only whole chunks.
bool Generator::FillsChunk(const std::vector<int64_t>& text, int64_t begin) const {
  const int64_t before_last = static_cast<int64_t>(text.size()) - 1 - begin;
  return before_last >= (has_states_ ? options_.chunk : 2);
}

Status Generator::Run(Trainer& trainer, const std::string& program,
                      const std::vector<int64_t>& tokens, int64_t start,
                      const std::vector<NamedData>& inputs) const {
  const std::vector<int64_t> position = {start};
  std::vector<NamedData> data = inputs;
  data.insert(data.end(), {{kTokens, tokens}, {kStart, position}});
  return trainer.eval(program, data);
}

Status Generator::ComputeInputs(Trainer& trainer, const std::vector<NamedData>& inputs) const {
  const ir::Section* const program = FindEval(trainer.program().graph, compute_inputs());
  if (program == nullptr) return Status::Ok();
  std::vector<NamedData> used;
  for (const NamedData& input : inputs) {
    const auto has_name = [&](const ir::Node* node) {
      return node->op->traits.kind == ir::OpKind::kInput &&
             node->attributes.String("name") == input.name;
    };
    if (std::any_of(program->nodes.begin(), program->nodes.end(), has_name)) used.push_back(input);
  }
  return trainer.eval(compute_inputs(), used);
}

Status Generator::CheckTogether(Trainer& trainer, const std::vector<int64_t>& text,
                                const std::vector<NamedData>& inputs) const {
  std::vector<int64_t> tokens = text;
  tokens.resize(num_checked(), text[0]);
  std::map<int64_t, std::vector<float>> expected;  // logits, by the token that they come after
  constexpr int64_t kFirst = 3;                    // which see none behind them
  for (int64_t i = 0; i < std::min(kFirst, num_checked()); ++i) {
    ZG_RETURN_IF_ERROR(Run(trainer, decode(), {tokens[i]}, i, inputs));
    ZG_ASSIGN_OR_RETURN(expected[i], trainer.result(decode()));
  }
  ZG_ASSIGN_OR_RETURN(expected[num_checked() - 1], Compute(trainer, tokens, inputs, 0));
  ZG_RETURN_IF_ERROR(Run(trainer, check(), tokens, 0, inputs));
  ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer.result(check()));
  // On the CPU few operations round otherwise for another number of tokens, and none in attention; a GPU
  // does, and so do 16 bits.
  const bool is_half = trainer.program().options.dtype != DType::kF32;
  const double tolerance = is_half ? 0.3 : trainer.executor().device().is_host() ? 1e-4 : 0.01;
  for (const auto& [token, row] : expected) {
    ZG_RETURN_IF_ERROR(CompareLogits(token, row, logits.data() + token * vocabulary_, tolerance));
  }
  return Status::Ok();
}

Status Generator::CompareLogits(int64_t token, const std::vector<float>& expected,
                                const float* logits, double tolerance) const {
  double square_of_difference = 0.0, square_of_expected = 0.0;
  int64_t worst = 0;
  for (int64_t i = 0; i < vocabulary_; ++i) {
    if (!std::isfinite(logits[i]) || !std::isfinite(expected[i])) continue;  // padded logits
    const double difference = logits[i] - expected[i];
    if (std::abs(difference) > std::abs(logits[worst] - expected[worst])) worst = i;
    square_of_difference += difference * difference;
    square_of_expected += static_cast<double>(expected[i]) * expected[i];
  }
  if (square_of_difference <= tolerance * tolerance * square_of_expected) return Status::Ok();
  return InvalidArgument(
      "{}: the logit of token {} after {} tokens is {} if they are computed one after the other, and "
      "{} if they are computed together; the model looks along the tokens in a way that does not know "
      "those of earlier runs, such as a slice, a sum or a convolution over them, or positions that "
      "begin anew\n"
      "  hint: attention, at_positions, the functions of nn/over_tokens.h and Decoding::State do",
      who(), worst, token + 1, expected[worst], logits[worst]);
}

}  // namespace zg
