// Eager: runs functions and modules at once. While an Eager exists, functions that the thread calls
// outside of Graph::train and Graph::eval compute their results right away, with the same ops,
// kernels and gradient rules as a graph on one rank of the same device, and so with the same bits.
// (A GPU's kernel for the gradient of a norm has an order of its own for the bias before the norm,
// whose gradient may then have other last bits than in a graph.)
//
//   zg::Eager eager;
//   Classifier model;
//   zg::Tensor x = eager.f32({2, 784}, pixels);
//   zg::Tensor loss = zg::cross_entropy(model(x), eager.i64({2}, {3, 7}));
//   loss.backward();
//   fmt::print("{}\n{}\n", loss.to_string(), zg::Tensor(model.hidden.weight).grad().to_string());
//
// Parameters and buffers begin with the values that a Trainer with the same seed would give them;
// all calls share them, until the Eager is destroyed. Values are kept as long as a Tensor needs
// them, or a result that was computed from them and may be differentiated (NoGrad).
//
// Nothing throws: an error, such as shapes that do not fit, ends the process with its message, which
// names the module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/eager/tensor.h"
#include "framework/optim/optimizer.h"
#include "framework/state/name_in_file.h"

namespace zg {

struct EagerOptions {
  uint64_t seed = 1;        // for initial values and random ops
  bool training = false;    // dropout is active, and modules use the statistics of their inputs
  std::string init{};       // parameters and buffers, by name: a path that Weights::Open takes
  NameInFile init_names{};  // how that file names them
  int threads = 1;          // threads that compute together; no bit depends on their number
  int gpu = -1;             // the index of the GPU that computes; -1: the CPU
};

namespace eager {
class Session;
}

class Eager {
 public:
  explicit Eager(const EagerOptions& options = {});
  ~Eager();
  Eager(const Eager&) = delete;
  Eager& operator=(const Eager&) = delete;

  // A tensor with these values, row-major.
  Tensor f32(const Shape& shape, const std::vector<float>& values);
  Tensor i64(const Shape& shape, const std::vector<int64_t>& values);
  Tensor boolean(const Shape& shape, const std::vector<bool>& values);

  // While not training, parameters are the weights that the optimizer of the steps so far has for
  // evaluation, where it has such, as in a graph's eval: a moving average. These have no gradient.
  void set_training(bool training);

  // Ends a training step: updates every trainable parameter that has a gradient, as a graph's step
  // without clipping does, sets buffers to their next values, and clears all gradients. The learning
  // rate is the optimizer's times `lr_factor`. Error: an optimizer with other states than that of the
  // steps before.
  void step(const optim::Optimizer& optimizer, double lr_factor = 1.0);

  // Clears all gradients.
  void zero_grad();

 private:
  friend class NoGrad;

  std::shared_ptr<eager::Session> session_;
};

// While one exists, results of functions keep nothing that they were computed from, so that a long
// computation, such as a loop that samples from a model, needs no more memory than its last values.
// They have no gradient.
//
//   const zg::NoGrad no_grad(eager);
class NoGrad {
 public:
  explicit NoGrad(Eager& eager);
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  const std::shared_ptr<eager::Session> session_;
  const bool kept_history_;
};

}  // namespace zg
