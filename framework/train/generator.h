// Generator: a model continues texts token by token. It uses eval programs, which share the
// parameters with training at every stage and on any number of ranks, and keep the keys and values
// of attention and the states of recurrences (framework/nn/decoding.h): "prefill" computes them for a
// chunk of a text at once, "decode" computes the logits after one token. Before the first text, and that
// after each change of the parameters, "check" computes those of two chunks and a token at once, which
// must be the same: a model that looks along the tokens in a way that decoding does not know is an error,
// unless it looks back further.
//
//   zg::Graph graph("gpt");
//   graph.train(...);
//   zg::GeneratorOptions options;
//   options.context = 256;
//   zg::Generator generator(graph, options, [&](zg::Var tokens) { return model(tokens); });
//   zg::Training training = zg::train(job, graph);
//   ...
//   zg::GenerateOptions how;
//   how.sampler.top_k = 40;
//   auto text = generator.generate(training.trainer(), prompt, how);
//
// Several texts are computed at once, each in a row of its own, if the options say so.
//
// Caches are part of the arena and of its plan: `context` rows for each of them, in the model's
// dtype, and one row in f32 for each state, whole on every rank. Logits equal those of the whole text
// computed at once; on the CPU in every bit. (In 16 bits the states of an LSTM's cells are rounded
// where a chunk ends.) A model without attention reads and writes texts of any length: the context
// limits it only in what a table of positions holds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/nn/graph.h"
#include "framework/text/sampler.h"
#include "framework/train/beam_search.h"
#include "framework/train/text_programs.h"
#include "framework/train/trainer.h"

namespace zg {

struct GenerateOptions {
  int64_t max_tokens = 100;
  SamplerOptions sampler = {};
  std::optional<int64_t> stop = {};  // the token that ends a text; it is returned, too
  // If the text outgrows the context: false gives an error before the first token; with true the
  // model continues from the last half of its context, which is computed again.
  bool slide = false;
  // What the model sees beside the tokens (the other constructor of Generator).
  std::vector<NamedData> inputs = {};
  // Changes the logits of the next token of a text, such as to -infinity for one that must not come.
  // The same on every rank.
  std::function<void(const std::vector<int64_t>& text, std::vector<float>* logits)> adjust = {};
};

class Generator {
 public:
  // Adds the programs to the graph. `model`: tokens i64 (N, S) -> logits (N, S, vocabulary), for
  // every S up to the context, of the N texts that are computed at once: the larger one of
  // options.texts, 1 unless set, and options.beams. The graph keeps errors: those of the model; a
  // model that does not see earlier tokens.
  Generator(Graph& graph, const GeneratorOptions& options, const std::function<Var(Var)>& model);
  // For a model that sees more than the text, such as what an encoder made of another one, or an
  // image. It declares that as inputs, which are the same on every rank:
  //
  //   zg::Generator generator(graph, options, [&](zg::Var tokens, zg::Inputs& in) {
  //     return decoder(tokens, in.f32("memory", {1, 64, 256}, zg::Sbp::B()));
  //   });
  //   how.inputs = {{"memory", memory}};  // the result of an eval program
  //
  // What it makes of them by products, such as the keys of attention to the memory, is computed once for
  // each text (passes/hoist_inputs.h).
  Generator(Graph& graph, const GeneratorOptions& options,
            const std::function<Var(Var, Inputs&)>& model);

  // The continuation of the prompt, on every rank. Every rank must call this with the same
  // arguments. Errors: a prompt that is empty or longer than the context, a token outside of the
  // vocabulary, sampler options, a text that outgrows the context.
  StatusOr<std::vector<int64_t>> generate(Trainer& trainer, const std::vector<int64_t>& prompt,
                                          const GenerateOptions& options = {});
  // Those of any number of prompts: where a text ends, the next prompt takes its place. Each has its
  // own draws, so equal prompts go on differently; those of the first are generate's. With
  // inputs there may be as many prompts as are computed at once; the inputs are those of all.
  StatusOr<std::vector<std::vector<int64_t>>> generate_all(
      Trainer& trainer, const std::vector<std::vector<int64_t>>& prompts,
      const GenerateOptions& options = {});

  // The continuations of the prompt with the best scores, options.beams of them, best first. Every rank
  // must call this. Errors: as generate; options.beams is 0.
  StatusOr<std::vector<Beam>> beam_search(Trainer& trainer, const std::vector<int64_t>& prompt,
                                          const BeamSearchOptions& options = {},
                                          const std::vector<NamedData>& inputs = {});

  // The logits of the token after the text, which has at most `context` tokens. The prefix that the
  // text shares with that of the last call is not computed again, unless a training step or another
  // change of the parameters came in between, or the model sees more than the text; with states it
  // must be the whole last text. Every rank must call this.
  StatusOr<std::vector<float>> logits(Trainer& trainer, const std::vector<int64_t>& text,
                                      const std::vector<NamedData>& inputs = {});
  void reset() { cached_.clear(); }

 private:
  struct Running;
  std::string who() const { return programs_.who(); }
  Status CheckText(const std::vector<int64_t>& text) const;
  Status CheckEnd(int64_t max_tokens, std::optional<int64_t> stop) const;
  Status CheckPrompts(const std::vector<std::vector<int64_t>>& prompts,
                      const GenerateOptions& options) const;
  // Error if `max_tokens` tokens after the prompt outgrow the context.
  Status CheckRoom(const std::vector<int64_t>& prompt, int64_t max_tokens, const char* hint) const;
  // Leaves the last half of a text that has outgrown the context.
  void SlideIfFull(TextRow* row) const;

  GeneratorOptions options_;
  TextPrograms programs_;
  // The text whose keys and values the caches hold in the first row, and the version of the parameters
  // (Executor::version) that they were computed with.
  std::vector<int64_t> cached_;
  int64_t version_ = 0;
};

}  // namespace zg
