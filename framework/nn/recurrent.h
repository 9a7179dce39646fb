// LSTM (Hochreiter and Schmidhuber 1997), GRU (Cho et al., arXiv 1406.1078) and RNN (Elman 1990) with the
// parameters of torch.nn.LSTM, GRU and RNN (batch_first): weight_ih_l0 (gates x H, in), weight_hh_l0
// (gates x H, H), bias_ih_l0, bias_hh_l0, and so on for each layer; gates in the order i, f, g, o and r,
// z, n. LSTMCell, GRUCell and RNNCell compute one element; their parameters lack the suffix.
// A layer is one node of the graph for a whole sequence. Cells are a few nodes for each element, which
// also have second derivatives.
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

struct RecurrentParameters {
  RecurrentParameters(const Module* module, const std::string& suffix, int64_t in, int64_t hidden,
                      int64_t gates);

  Parameter weight_ih;
  Parameter weight_hh;
  Parameter bias_ih;
  Parameter bias_hh;
};

class Recurrent : public Module {
 public:
  // Starts from `state` and updates it to the state after the last element; null, or without
  // states: starts from zeros. With `lengths`, i64 (B), a sequence ends after so many elements, one to T:
  // the last state is that of its last element, from where the other direction starts, and the results
  // behind it are zeros (PyTorch's packed sequences). Another length ends the job, if `state` or a
  // second direction asks for the last element; else it counts as none or all of them.
  Var operator()(Var x, RecurrentState* state = nullptr, Var lengths = {});

 protected:
  Recurrent(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
            int64_t gates, const RecurrentOptions& options);
  Var forward(Var x) override { return (*this)(x, nullptr); }

 private:
  // The states h of all elements and, if there are such, c, each (B, T, H); from x's contributions
  // to the gates, weight, bias and, unless they are zeros, the states before. Empty after an error.
  virtual std::vector<Var> RunSequence(const std::vector<Var>& inputs, bool from_end) const = 0;
  virtual bool has_cells() const { return false; }

  // Calls f(state, its shape without the dim of samples, name) for the states of all layers.
  template <typename F>
  void ForEachState(RecurrentState* states, const F& f) const;

  struct Ends;  // of sequences of several lengths

  // One layer in one direction: (B, T, H); updates h and c, which may be empty, if it `keeps` them.
  // Without `ends` all sequences have T elements.
  Var Run(const RecurrentParameters& layer, Var x, const Ends* ends, bool from_end, bool keeps,
          Var* h, Var* c);

  RecurrentOptions options_;
  std::deque<RecurrentParameters> layers_;  // a deque, because parameters must not move
};

class LSTM : public Recurrent {
 public:
  LSTM(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
       const RecurrentOptions& options)
      : Recurrent(parent, name, in, hidden, /*gates=*/4, options) {}
  LSTM(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
       int64_t layers = 1)
      : LSTM(parent, name, in, hidden, RecurrentOptions{layers}) {}

 private:
  std::vector<Var> RunSequence(const std::vector<Var>& inputs, bool from_end) const override;
  bool has_cells() const override { return true; }
};

class GRU : public Recurrent {
 public:
  GRU(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
      const RecurrentOptions& options)
      : Recurrent(parent, name, in, hidden, /*gates=*/3, options) {}
  GRU(const Module* parent, const std::string& name, int64_t in, int64_t hidden, int64_t layers = 1)
      : GRU(parent, name, in, hidden, RecurrentOptions{layers}) {}

 private:
  std::vector<Var> RunSequence(const std::vector<Var>& inputs, bool from_end) const override;
};

// h' = tanh(from x + from h), or relu.
class RNN : public Recurrent {
 public:
  RNN(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
      const RecurrentOptions& options = {}, bool uses_relu = false)
      : Recurrent(parent, name, in, hidden, /*gates=*/1, options), uses_relu_(uses_relu) {}

 private:
  std::vector<Var> RunSequence(const std::vector<Var>& inputs, bool from_end) const override;

  bool uses_relu_;
};

// One element of a sequence, for loops of one's own: x (B, in), h (B, H) -> h' (B, H); an empty h is
// zeros.
class RecurrentCell : public Module {
 protected:
  // What x and h contribute to the gates, (B, gates x H).
  struct Gates {
    Var of_x;
    Var of_h;
  };

  RecurrentCell(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
                int64_t gates)
      : Module(parent, name), parameters_(this, "", in, hidden, gates) {}
  Gates GatesOf(Var x, Var h);
  // Whether it is (B, H), for x (B, in); if not, the module has failed.
  bool CheckState(const char* name, Var x, Var state);

 private:
  RecurrentParameters parameters_;
};

class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(const Module* parent, const std::string& name, int64_t in, int64_t hidden)
      : RecurrentCell(parent, name, in, hidden, 4) {}
  // Updates c, which is empty for zeros.
  Var operator()(Var x, Var h, Var* c);
};

class GRUCell : public RecurrentCell {
 public:
  GRUCell(const Module* parent, const std::string& name, int64_t in, int64_t hidden)
      : RecurrentCell(parent, name, in, hidden, 3) {}
  Var operator()(Var x, Var h = {});
};

class RNNCell : public RecurrentCell {
 public:
  RNNCell(const Module* parent, const std::string& name, int64_t in, int64_t hidden,
          bool uses_relu = false)
      : RecurrentCell(parent, name, in, hidden, 1), uses_relu_(uses_relu) {}
  Var operator()(Var x, Var h = {});

 private:
  bool uses_relu_;
};

}  // namespace zg::nn
