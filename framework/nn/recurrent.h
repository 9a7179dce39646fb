// LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al., arXiv 1406.1078) with the parameters of
// torch.nn.LSTM and torch.nn.GRU (batch_first): weight_ih_l0 (gates x H, in), weight_hh_l0 (gates x H,
// H), bias_ih_l0, bias_hh_l0, and so on for each layer; gates in the order i, f, g, o and r, z, n.
// Time is unrolled in the graph: a few nodes for each element of a sequence.
// Shapes: x (B, T, in) -> (B, T, H); with two directions (B, T, 2H).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

struct RecurrentOptions {
  int64_t layers = 1;
  double dropout = 0.0;  // applied to the result of each layer but the last
  // Each layer also reads the sequence from its end, with parameters of the suffix _reverse; the
  // results of both directions are side by side.
  bool bidirectional = false;
};

// The states of each layer, (B, H): c is the LSTM's cell. Of two directions, that from the end is
// behind the other one of its layer.
struct RecurrentState {
  std::vector<Var> h;
  std::vector<Var> c;
};

class Recurrent : public Module {
 public:
  // Starts from `state` and updates it to the state after the last element; null, or without
  // states: starts from zeros.
  Var operator()(Var x, RecurrentState* state = nullptr);

 protected:
  Recurrent(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
            const RecurrentOptions& options, int64_t gates);
  Var forward(Var x) override { return (*this)(x, nullptr); }

  // Computes h after an element, from the element's and h's contributions to the gates, (B, gates x
  // H). h may be empty, for zeros; so may c, which is updated.
  virtual Var Step(Var from_x, Var from_h, Var h, Var* c) = 0;

 private:
  // One layer in one direction.
  struct Layer {
    Layer(const Module* module, const std::string& suffix, int64_t in, int64_t hidden,
          int64_t rows);

    Parameter weight_ih;
    Parameter weight_hh;
    Parameter bias_ih;
    Parameter bias_hh;
  };

  // (B, T, H); updates h and c, which may be empty. An empty Var if the graph has an error.
  Var Run(const Layer& layer, Var x, bool from_end, Var* h, Var* c);

  RecurrentOptions options_;
  std::deque<Layer> layers_;  // a deque, because parameters must not move
};

class LSTM : public Recurrent {
 public:
  LSTM(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
       const RecurrentOptions& options)
      : Recurrent(parent, name, in, hidden, options, 4) {}
  LSTM(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
       int64_t layers = 1)
      : LSTM(parent, name, in, hidden, RecurrentOptions{layers}) {}

 protected:
  Var Step(Var from_x, Var from_h, Var h, Var* c) override;
};

class GRU : public Recurrent {
 public:
  GRU(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
      const RecurrentOptions& options)
      : Recurrent(parent, name, in, hidden, options, 3) {}
  GRU(const Module* parent, const std::string& name, int64_t in, int64_t hidden, int64_t layers = 1)
      : GRU(parent, name, in, hidden, RecurrentOptions{layers}) {}

 protected:
  Var Step(Var from_x, Var from_h, Var h, Var* c) override;
};

}  // namespace zg::nn
