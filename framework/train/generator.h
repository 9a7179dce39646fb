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
#include "framework/train/trainer.h"

namespace zg {

struct GeneratorOptions {
  int64_t context = 0;            // maximum number of tokens that attention sees
  int64_t chunk = 64;             // tokens of a text that "prefill" computes at once
  std::string name = "generate";  // prefix of the names of the programs and of the caches
};

struct GenerateOptions {
  int64_t max_tokens = 100;
  SamplerOptions sampler = {};
  std::optional<int64_t> stop = {};  // the token that ends a text; it is returned, too
  // If the text outgrows the context: false gives an error before the first token; with true the
  // model continues from the last half of its context, which is computed again.
  bool slide = false;
  // What the model sees beside the tokens (the other constructor of Generator).
  std::vector<NamedData> inputs = {};
};

class Generator {
 public:
  // Adds the programs to the graph. `model`: tokens i64 (1, S) -> logits (1, S, vocabulary), for
  // every S up to the context. The graph keeps errors: those of the model; a model that does not
  // see earlier tokens.
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

  // The logits of the token after the text, which has at most `context` tokens. The prefix that the
  // text shares with that of the last call is not computed again, unless a training step or another
  // change of the parameters came in between, or the model sees more than the text; with states it
  // must be the whole last text. Every rank must call this.
  StatusOr<std::vector<float>> logits(Trainer& trainer, const std::vector<int64_t>& text,
                                      const std::vector<NamedData>& inputs = {});
  void reset() { cached_.clear(); }

 private:
  std::string prefill() const { return options_.name + ".prefill"; }
  std::string decode() const { return options_.name + ".decode"; }
  std::string check() const { return options_.name + ".check"; }
  std::string compute_inputs() const { return options_.name + ".inputs"; }
  int64_t num_checked() const;  // tokens of "check"
  // Returns "generator 'generate'".
  std::string who() const;
  Status CheckText(const std::vector<int64_t>& text) const;
  // logits() of the same inputs as in the last call.
  StatusOr<std::vector<float>> Continue(Trainer& trainer, const std::vector<int64_t>& text,
                                        const std::vector<NamedData>& inputs);
  // Whether the tokens of the text from `begin` on, but for the last one, are enough for "prefill".
  bool FillsChunk(const std::vector<int64_t>& text, int64_t begin) const;
  Status Run(Trainer& trainer, const std::string& program, const std::vector<int64_t>& tokens,
             int64_t start, const std::vector<NamedData>& inputs) const;
  // What follows from the inputs of a new text.
  Status ComputeInputs(Trainer& trainer, const std::vector<NamedData>& inputs) const;
  // Error unless "check", which computes many tokens at once, agrees with the other programs on the
  // tokens of the text. It leaves other caches behind.
  Status CheckTogether(Trainer& trainer, const std::vector<int64_t>& text,
                       const std::vector<NamedData>& inputs) const;
  // Error unless the logits of one token agree, computed one after the other and together.
  Status CompareLogits(int64_t token, const std::vector<float>& expected, const float* logits,
                       double tolerance) const;
  // Computes the text from token `begin` on, and returns the logits after its last token.
  StatusOr<std::vector<float>> Compute(Trainer& trainer, const std::vector<int64_t>& text,
                                       const std::vector<NamedData>& inputs, int64_t begin) const;

  GeneratorOptions options_;
  int64_t vocabulary_ = 0;
  bool has_caches_ = false;  // of `context` tokens
  bool has_states_ = false;
  // The text whose keys and values the caches hold, and the version of the parameters
  // (Executor::version) that they were computed with.
  std::vector<int64_t> cached_;
  int64_t version_ = 0;
  int64_t checked_version_ = -1;  // for which CheckTogether has passed
};

}  // namespace zg
