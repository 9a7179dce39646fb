// Decoding: lets a function of Graph::eval compute the next tokens of texts whose beginning earlier
// runs have computed. While a Decoding exists, operations that look at other tokens continue from
// there:
//
//   causal attention  of tokens to themselves keeps keys and values in a cache, and also attends to
//                     those of earlier runs
//   rotary            without positions of its own counts them from `start`
//   at_positions      returns the rows of a table from `start` on
//   relative_positions
//                     has all positions of the context as keys
//   LSTM, GRU, RNN    continue from the states that the last run has left, as do the functions of
//                     over_tokens.h
//
// So a model made of these needs no change. Everything else must compute token by token: other ways
// to look at other tokens, such as a convolution over time, do not see those of earlier runs; a
// Generator finds out and refuses.
// zg::Generator (framework/train/generator.h) makes the programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/nn/shapes.h"
#include "framework/nn/var.h"

namespace zg {
namespace nn {

class Decoding {
 public:
  // `start`: i64 (1), the position of the function's first token in all texts, or (B), in each
  // text. `context`: the maximum number of tokens of a text. Functions with the same `name` share
  // their caches; they must call the same modules. `parents`: i64 (B), the text of the last run that
  // each text goes on from, for beam search; without them it is the same one.
  Decoding(const std::string& name, Var start, int64_t context, Var parents = {});
  ~Decoding();
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  static Decoding* Current();  // null if there is none

  Var start() const { return start_; }
  int64_t context() const { return context_; }
  // Whether the traced function depends on earlier tokens through caches, which hold `context` of
  // them, or through states, which hold what any number of them has left.
  bool has_caches() const { return !num_caches_.empty(); }
  bool has_states() const { return !num_states_.empty(); }

  // rows (B, S, C) -> (B, context, C): writes the rows from `start` on into a cache of the module
  // that is being called, and returns the cache with the rows of earlier runs. Rows after the
  // written ones are undefined.
  Var Cached(Var rows, const std::string& what);

  // The state of the module that is being called, before this run's first token: f32 (B, shape) for
  // the B texts of x (B, ...). It is what the last run has given to Keep; 0 for a text that begins.
  // A function that reads a state must keep a new one, for the same module and `what`; no token of
  // the run may then be one that is not part of the text.
  Var State(Var x, const Dims& shape, const std::string& what);
  void Keep(Var next, const std::string& what);  // (B, shape)

 private:
  std::string NameOf(const std::string& what) const;  // in the module that is being called
  // The inputs of an op that reads what earlier runs have left.
  std::vector<Var> WithEarlier(Var x) const;

  std::string name_;
  Var start_;
  Var parents_;
  int64_t context_;
  std::map<std::string, int> num_caches_;  // by module and `what`
  std::map<std::string, int> num_states_;
  Decoding* previous_;
};

}  // namespace nn

// The rows of a table (T, C) for the positions of `size` tokens: the first rows, (size, C); while
// decoding, the rows of each text from its start on, (1 or B, size, C).
Var at_positions(Var table, int64_t size);

// i64 (1, size, size): how far the position of a query is behind that of a key, of `size` tokens to
// themselves; while decoding (1 or B, size, context), with the positions of earlier runs as keys. For
// biases of attention that depend on the distance (ALiBi, T5), which decoding then knows, too:
//   const Var distance = maximum(relative_positions(tokens), 0);               // of causal attention
//   options.bias = permute(embedding(distance, table), {0, 3, 1, 2});          // of each head
Var relative_positions(int64_t size);

}  // namespace zg
