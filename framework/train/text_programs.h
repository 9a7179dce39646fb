// TextPrograms: the eval programs by which a Generator (framework/train/generator.h) computes texts, each
// of all rows at once, with a text of its own in each row. They share caches by name:
//
//   prefill   a chunk of tokens of each text; only fills the caches
//   decode    one token of each text -> logits (rows, vocabulary). With beams, each text first takes
//             what the caches hold of its parent
//   check     as many tokens as two chunks and one, which must have the same logits
//   inputs    what follows from inputs beside the tokens alone (passes/hoist_inputs.h)
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/nn/graph.h"
#include "framework/train/trainer.h"

namespace zg {

struct GeneratorOptions {
  int64_t context = 0;            // maximum number of tokens that attention sees
  int64_t chunk = 64;             // tokens of a text that "prefill" computes at once
  std::string name = "generate";  // prefix of the names of the programs and of the caches
  int64_t texts = 1;              // that are computed at once
  int64_t beams = 0;              // of beam_search; 0: it is not called
};

// The text of a row, and the number of its first tokens that the caches hold. A row without a text is
// idle.
struct TextRow {
  std::vector<int64_t> text;
  int64_t computed = 0;

  bool is_idle() const { return text.empty(); }
  bool is_computed() const { return computed == static_cast<int64_t>(text.size()); }
};

class TextPrograms {
 public:
  // `model`: tokens i64 (rows, S) -> logits (rows, S, vocabulary), for every S up to the context. The
  // graph keeps errors: those of the model; a model that does not see earlier tokens.
  TextPrograms(Graph& graph, const GeneratorOptions& options,
               const std::function<Var(Var, Inputs&)>& model);

  int64_t num_rows() const { return std::max(options_.texts, options_.beams); }
  int64_t vocabulary() const { return vocabulary_; }
  // Whether there are caches of `context` tokens, and states, which hold what any number of tokens has
  // left.
  bool has_caches() const { return has_caches_; }
  bool has_states() const { return has_states_; }
  static bool HasOtherInputs(const Trainer& trainer, const GeneratorOptions& options);

  // Prepares for texts with these inputs. Error unless "check", which computes many tokens at once,
  // agrees with the other programs on a text that begins like this one, with this version of the
  // parameters; it may leave other caches behind.
  Status Begin(Trainer& trainer, const std::vector<int64_t>& text,
               const std::vector<NamedData>& inputs);

  // Computes further tokens of the texts, each of which has some: up to a chunk of each but for its last
  // token, which returns nothing; or one of each, which returns the logits after them, (rows,
  // vocabulary). `parents`: the rows of the last call that the rows go on from, each by one token;
  // empty: the same ones.
  StatusOr<std::vector<float>> Advance(Trainer& trainer, std::vector<TextRow>* rows,
                                       const std::vector<NamedData>& inputs,
                                       const std::vector<int64_t>& parents = {}) const;
  // Advances until the first row is computed, and returns the logits of the last run.
  StatusOr<std::vector<float>> ComputeFirst(Trainer& trainer, std::vector<TextRow>* rows,
                                            const std::vector<NamedData>& inputs) const;

  // Returns "generator 'generate'".
  std::string who() const;

 private:
  std::string prefill() const { return options_.name + ".prefill"; }
  std::string decode() const { return options_.name + ".decode"; }
  std::string check() const { return options_.name + ".check"; }
  // Logits of `size` tokens of each text, (rows size, vocabulary). With parents a text may go on from
  // another one.
  Var Call(Inputs& in, int64_t size, bool has_parents,
           const std::function<Var(Var, Inputs&)>& model);
  int64_t num_checked() const;  // tokens of "check"
  bool IsForPrefill(const std::vector<TextRow>& rows) const;
  Status Prefill(Trainer& trainer, std::vector<TextRow>* rows,
                 const std::vector<NamedData>& inputs) const;
  Status Run(Trainer& trainer, const std::string& program, const std::vector<int64_t>& tokens,
             const std::vector<int64_t>& starts, const std::vector<NamedData>& inputs,
             const std::vector<int64_t>& parents = {}) const;
  Status ComputeInputs(Trainer& trainer, const std::vector<NamedData>& inputs) const;
  Status CheckTogether(Trainer& trainer, const std::vector<int64_t>& text,
                       const std::vector<NamedData>& inputs) const;
  // Error unless the logits after a token agree, computed one after the other and together.
  Status CompareLogits(int64_t token, const float* expected, const float* logits,
                       double tolerance) const;

  GeneratorOptions options_;
  int64_t vocabulary_ = 0;
  bool has_caches_ = false;
  bool has_states_ = false;
  int64_t checked_version_ = -1;  // of the parameters (Executor::version)
};

}  // namespace zg
