#include "framework/train/text_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "framework/nn/decoding.h"
#include "framework/nn/shapes.h"

namespace zg {

namespace {

constexpr char kTokens[] = "tokens", kStart[] = "start", kParents[] = "parents";

std::string ProgramOfInputs(const GeneratorOptions& options) { return options.name + ".inputs"; }

// What follows from inputs beside the tokens is computed once for each text.
void MarkInputsOfTheText(const ir::Section& section, const std::string& program) {
  for (ir::Node* node : section.nodes) {
    if (node->op->traits.kind != ir::OpKind::kInput) continue;
    const std::string& name = node->attributes.String("name");
    if (name == kTokens || name == kStart || name == kParents) continue;
    node->attributes.Set("once", program);
  }
}

const ir::Section* FindEval(const ir::Graph& graph, const std::string& name) {
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kEval && section->name == name) return section.get();
  }
  return nullptr;
}

}  // namespace

TextPrograms::TextPrograms(Graph& graph, const GeneratorOptions& options,
                           const std::function<Var(Var, Inputs&)>& model)
    : options_(options) {
  if (options.context > 0) options_.chunk = std::min(options.chunk, options.context);
  const auto call = [&](Inputs& in, int64_t size, bool has_parents = false) {
    return Call(in, size, has_parents, model);
  };
  const auto mark = [&] {
    const ir::Section* const section = nn::Trace::Of("Generator").builder().section();
    MarkInputsOfTheText(*section, ProgramOfInputs(options_));
  };
  graph.eval(prefill(), [&](Inputs& in) {
    call(in, options_.chunk);
    mark();
    return Outputs{};  // only the caches: what computes logits is dead code
  });
  graph.eval(decode(), [&](Inputs& in) {
    const Var logits = call(in, 1, options_.beams > 0);
    mark();
    return logits;
  });
  if (num_checked() > 1) {
    graph.eval(check(), [&](Inputs& in) { return call(in, num_checked()); });
  }
}

Var TextPrograms::Call(Inputs& in, int64_t size, bool has_parents,
                       const std::function<Var(Var, Inputs&)>& model) {
  nn::Trace& trace = nn::Trace::Of("Generator");
  if (options_.context < 1 || options_.chunk < 1) {
    return trace.Fail(InvalidArgument("{}: context is {} and chunk {}, expected at least 1 each",
                                      who(), options_.context, options_.chunk));
  }
  if (options_.texts < 1 || options_.beams < 0) {
    return trace.Fail(InvalidArgument("{}: texts is {} and beams {}, expected at least 1 and 0",
                                      who(), options_.texts, options_.beams));
  }
  const Var tokens = in.i64(kTokens, {num_rows(), size}, Sbp::B());
  const Var start = in.i64(kStart, {num_rows()}, Sbp::B());
  const Var parents = has_parents ? in.i64(kParents, {num_rows()}, Sbp::B()) : Var();
  const nn::Decoding decoding(options_.name, start, options_.context, parents);
  const Var logits = model(tokens, in);
  if (!trace.status().ok() || logits.empty()) return logits;
  const Shape shape = logits.shape();
  if (shape.num_dims() != 3 || shape.dim(0) != num_rows() || shape.dim(1) != size) {
    return trace.Fail(
        InvalidArgument("{}: the model returns {} of tokens {}, expected logits ({}, {}, "
                        "vocabulary)",
                        who(), shape.ToString(), tokens.shape().ToString(), num_rows(), size));
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
  return reshape(logits, {num_rows() * size, vocabulary_});
}

// Two chunks and one token, so that the last one is preceded by as many that an operation may look back
// to, across the ends of chunks.
int64_t TextPrograms::num_checked() const {
  return std::min(2 * options_.chunk + 1, options_.context);
}

std::string TextPrograms::who() const { return fmt::format("generator '{}'", options_.name); }

bool TextPrograms::HasOtherInputs(const Trainer& trainer, const GeneratorOptions& options) {
  return FindEval(trainer.program().graph, ProgramOfInputs(options)) != nullptr;
}

Status TextPrograms::Begin(Trainer& trainer, const std::vector<int64_t>& text,
                           const std::vector<NamedData>& inputs) {
  ZG_RETURN_IF_ERROR(ComputeInputs(trainer, inputs));
  const int64_t version = trainer.executor().version();
  if (checked_version_ == version || num_checked() == 1) return Status::Ok();
  ZG_RETURN_IF_ERROR(CheckTogether(trainer, text, inputs));
  checked_version_ = version;
  return Status::Ok();
}

StatusOr<std::vector<float>> TextPrograms::Advance(Trainer& trainer, std::vector<TextRow>* rows,
                                                   const std::vector<NamedData>& inputs,
                                                   const std::vector<int64_t>& parents) const {
  if (parents.empty() && IsForPrefill(*rows)) {
    ZG_RETURN_IF_ERROR(Prefill(trainer, rows, inputs));
    return std::vector<float>();
  }
  std::vector<int64_t> tokens(rows->size()), starts(rows->size());
  for (size_t i = 0; i < rows->size(); ++i) {
    TextRow& row = (*rows)[i];
    if (row.is_idle()) continue;
    starts[i] = row.computed++;
    tokens[i] = row.text[starts[i]];
  }
  ZG_RETURN_IF_ERROR(Run(trainer, decode(), tokens, starts, inputs, parents));
  return trainer.result(decode());
}

StatusOr<std::vector<float>> TextPrograms::ComputeFirst(
    Trainer& trainer, std::vector<TextRow>* rows, const std::vector<NamedData>& inputs) const {
  std::vector<float> logits;
  while (!rows->front().is_computed()) {
    ZG_ASSIGN_OR_RETURN(logits, Advance(trainer, rows, inputs));
  }
  return logits;
}

// A run of "decode" reads all parameters, which takes about as long as computing kTokensOfRead tokens,
// and computes one token of each row; a chunk computes all of its tokens, useful or not. The one that
// takes less time for each useful token is run.
bool TextPrograms::IsForPrefill(const std::vector<TextRow>& rows) const {
  constexpr int64_t kTokensOfRead = 8;
  int64_t useful = 0;
  for (const TextRow& row : rows) {
    if (row.is_idle()) continue;
    const int64_t before_last = static_cast<int64_t>(row.text.size()) - 1 - row.computed;
    // States know no tokens but those of the text, each of them once: only whole chunks.
    if (has_states_ && before_last < options_.chunk) return false;
    useful += std::min(before_last, options_.chunk);
  }
  const auto num_rows = static_cast<int64_t>(rows.size());
  return useful > 0 && useful * (kTokensOfRead + num_rows) >= options_.chunk * num_rows * num_rows;
}

Status TextPrograms::Prefill(Trainer& trainer, std::vector<TextRow>* rows,
                             const std::vector<NamedData>& inputs) const {
  std::vector<int64_t> tokens(rows->size() * options_.chunk), starts(rows->size());
  for (size_t i = 0; i < rows->size(); ++i) {
    TextRow& row = (*rows)[i];
    if (row.is_idle()) continue;
    // A chunk does not extend beyond the context: the last one computes some tokens again.
    const int64_t latest = has_caches_ ? options_.context - options_.chunk : row.computed;
    const int64_t start = std::min(row.computed, latest);
    const int64_t last = static_cast<int64_t>(row.text.size()) - 1;
    const int64_t count = std::min(options_.chunk, last - start);
    // It may include some after these, which later ones overwrite.
    std::copy_n(row.text.begin() + start, count, tokens.begin() + i * options_.chunk);
    starts[i] = start;
    row.computed = start + count;
  }
  return Run(trainer, prefill(), tokens, starts, inputs);
}

Status TextPrograms::Run(Trainer& trainer, const std::string& program,
                         const std::vector<int64_t>& tokens, const std::vector<int64_t>& starts,
                         const std::vector<NamedData>& inputs,
                         const std::vector<int64_t>& parents) const {
  std::vector<NamedData> data = inputs;
  data.insert(data.end(), {{kTokens, tokens}, {kStart, starts}});
  std::vector<int64_t> own = parents;
  if (options_.beams > 0 && program == decode()) {
    if (own.empty()) {
      own.resize(num_rows());
      std::iota(own.begin(), own.end(), 0);
    }
    data.push_back({kParents, own});
  }
  return trainer.eval(program, data);
}

Status TextPrograms::ComputeInputs(Trainer& trainer, const std::vector<NamedData>& inputs) const {
  const std::string name = ProgramOfInputs(options_);
  const ir::Section* const program = FindEval(trainer.program().graph, name);
  if (program == nullptr) return Status::Ok();
  std::vector<NamedData> used;
  for (const NamedData& input : inputs) {
    const auto has_name = [&](const ir::Node* node) {
      return node->op->traits.kind == ir::OpKind::kInput &&
             node->attributes.String("name") == input.name;
    };
    if (std::any_of(program->nodes.begin(), program->nodes.end(), has_name)) used.push_back(input);
  }
  return trainer.eval(name, used);
}

Status TextPrograms::CheckTogether(Trainer& trainer, const std::vector<int64_t>& text,
                                   const std::vector<NamedData>& inputs) const {
  std::vector<TextRow> rows(num_rows());
  std::vector<int64_t> tokens = text, all;
  tokens.resize(num_checked(), text[0]);
  for (TextRow& row : rows) {  // of different texts
    row.text = tokens;
    all.insert(all.end(), tokens.begin(), tokens.end());
    std::rotate(tokens.begin(), tokens.begin() + 1, tokens.end());
  }
  std::map<int64_t, std::vector<float>> expected;  // logits, by the token that they come after
  constexpr int64_t kFirst = 3;                    // which see none behind them
  for (int64_t i = 0; i < std::min(kFirst, num_checked()); ++i) {
    std::vector<int64_t> token_of_row, starts(num_rows(), i);
    for (const TextRow& row : rows) token_of_row.push_back(row.text[i]);
    ZG_RETURN_IF_ERROR(Run(trainer, decode(), token_of_row, starts, inputs));
    ZG_ASSIGN_OR_RETURN(expected[i], trainer.result(decode()));
  }
  ZG_ASSIGN_OR_RETURN(expected[num_checked() - 1], ComputeFirst(trainer, &rows, inputs));
  const std::vector<int64_t> from_the_beginning(num_rows(), 0);
  ZG_RETURN_IF_ERROR(Run(trainer, check(), all, from_the_beginning, inputs));
  ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer.result(check()));
  // On the CPU few operations round otherwise for another number of tokens, and none in attention; a GPU
  // does, and so do 16 bits.
  const bool is_half = trainer.program().options.dtype != DType::kF32;
  const double tolerance = is_half ? 0.3 : trainer.executor().device().is_host() ? 1e-4 : 0.01;
  for (const auto& [token, after] : expected) {
    for (int64_t row = 0; row < num_rows(); ++row) {
      ZG_RETURN_IF_ERROR(CompareLogits(token, after.data() + row * vocabulary_,
                                       logits.data() + (row * num_checked() + token) * vocabulary_,
                                       tolerance));
    }
  }
  return Status::Ok();
}

Status TextPrograms::CompareLogits(int64_t token, const float* expected, const float* logits,
                                   double tolerance) const {
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
