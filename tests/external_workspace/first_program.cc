// The first program of README.md, in a project of somebody else.
#include <cstdint>
#include <vector>

#include "zerograph/zerograph.h"

struct Classifier : zg::nn::Module {
  zg::nn::Linear hidden{this, "hidden", 256, 128};
  zg::nn::Linear output{this, "output", 128, 10};
  zg::Var forward(zg::Var x) override {
    return output(zg::relu(hidden(x)));
  }  // (B, 256) -> (B, 10)
};

int main(int argc, char** argv) {
  zg::Job job = zg::Job::start(argc, argv);
  Classifier model;
  zg::Graph graph("classifier");
  graph.train(zg::optim::Sgd{0.5}, [&](zg::Inputs& in) {
    zg::Var x = in.f32("x", {32, 256}), y = in.i64("y", {32});
    return zg::cross_entropy(model(x), y);
  });
  zg::Training training = zg::train(job, graph);
  std::vector<float> x(32 * 256);
  std::vector<int64_t> y(32);
  while (training.next()) {
    // Rows whose class shows in one of their elements.
    for (int64_t row = 0; row < 32; ++row) {
      y[row] = (row + training.step_number() + 3 * job.rank()) % 10;
      for (int64_t i = 0; i < 256; ++i) x[row * 256 + i] = i == y[row] ? 1.0f : 0.0f;
    }
    training.step({{"x", x}, {"y", y}});
  }
}
