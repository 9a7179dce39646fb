// LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al., arXiv 1406.1078) with the parameters of
// torch.nn.LSTM and torch.nn.GRU (batch_first): weight_ih_l0 (gates x H, in), weight_hh_l0 (gates x H,
// H), bias_ih_l0, bias_hh_l0, and so on for each layer; gates in the order i, f, g, o and r, z, n.
// Time is unrolled in the graph: a few nodes for each element of a sequence.
// Shapes: x (B, T, in) -> (B, T, H).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "framework/nn/module.h"
#include "framework/nn/parameter.h"

namespace zg::nn {

// The states of each layer, (B, H): c is the LSTM's cell.
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
            int64_t layers, int64_t gates);
  Var forward(Var x) override { return (*this)(x, nullptr); }

  // Computes h after an element, from the element's and h's contributions to the gates, (B, gates x
  // H). h may be empty, for zeros; so may c, which is updated.
  virtual Var Step(Var from_x, Var from_h, Var h, Var* c) = 0;

 private:
  struct Layer {
    Layer(const Module* module, int64_t index, int64_t in, int64_t hidden, int64_t rows);

    Parameter weight_ih;
    Parameter weight_hh;
    Parameter bias_ih;
    Parameter bias_hh;
  };

  std::deque<Layer> layers_;  // a deque, because parameters must not move
};

class LSTM : public Recurrent {
 public:
  LSTM(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
       int64_t layers = 1)
      : Recurrent(parent, name, in, hidden, layers, 4) {}

 protected:
  Var Step(Var from_x, Var from_h, Var h, Var* c) override;
};

class GRU : public Recurrent {
 public:
  GRU(const Module* parent, const std::string& name, int64_t in, int64_t hidden, int64_t layers = 1)
      : Recurrent(parent, name, in, hidden, layers, 3) {}

 protected:
  Var Step(Var from_x, Var from_h, Var h, Var* c) override;
};

}  // namespace zg::nn
