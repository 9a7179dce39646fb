// Decoding: a function of Graph::eval computes the next tokens of texts, of which earlier runs have
// computed the beginning. While one exists, what looks at other tokens goes on from there:
//
//   causal attention  of tokens to themselves keeps keys and values in a cache, and attends to those
//                     of earlier runs as well
//   rotary            without positions of its own counts them from `start`
//   at_positions      gives the rows of a table from `start` on
//
// so that a model made of these needs no change. Everything else is computed token by token anyway,
// or is an error (recurrent layers). zg::Generator (framework/train/generator.h) makes the programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/nn/var.h"

namespace zg {
namespace nn {

class Decoding {
 public:
  // `start`: i64 (1), where the function's first token stands in each text, or (B), of each.
  // `context`: tokens of a text, at most. Functions with the same `name` share their caches; they must
  // call the same modules.
  Decoding(const std::string& name, Var start, int64_t context);
  ~Decoding();
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  static Decoding* Current();  // null while there is none

  Var start() const { return start_; }
  int64_t context() const { return context_; }
  bool has_caches() const { return !num_caches_.empty(); }

  // rows (B, S, C) -> (B, context, C): put into a cache of the module that is being called, with what
  // earlier runs have put there before `start`. Rows behind theirs mean nothing.
  Var Cached(Var rows, const std::string& what);

 private:
  std::string name_;
  Var start_;
  int64_t context_;
  std::map<std::string, int> num_caches_;  // by module and `what`
  Decoding* previous_;
};

}  // namespace nn

// The rows of a table (T, C) that belong to positions, for `size` tokens: the first ones, (size, C);
// while decoding those of each text from its start on, (1 or B, size, C).
Var at_positions(Var table, int64_t size);

}  // namespace zg
