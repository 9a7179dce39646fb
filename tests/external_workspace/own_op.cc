// Trains a model with an op defined in this project: y = (w x)^3 for a known w.
#include <cstdint>
#include <vector>

#include "cube.h"

struct Cubes : zg::nn::Module {
  zg::nn::Linear linear{this, "linear", 16, 8};
  zg::Var forward(zg::Var x) override { return cube(linear(x)); }
};

int main(int argc, char** argv) {
  RegisterCube();
  zg::Job job = zg::Job::start(argc, argv);
  Cubes model;
  zg::Graph graph("cubes");
  graph.train(zg::optim::Adam{0.02}, [&](zg::Inputs& in) {
    zg::Var x = in.f32("x", {32, 16}), y = in.f32("y", {32, 8});
    return zg::mse_loss(model(x), y);
  });
  zg::Training training = zg::train(job, graph);
  std::vector<float> x(32 * 16), y(32 * 8);
  uint32_t random = 1 + job.rank();
  while (training.next()) {
    for (float& value : x) {
      random = random * 1664525 + 1013904223;
      value = static_cast<float>(random >> 8) * 0x1p-23f - 1.0f;
    }
    for (int row = 0; row < 32; ++row) {
      for (int i = 0; i < 8; ++i) {
        const float sum = 0.5f * x[row * 16 + i] - 0.25f * x[row * 16 + i + 8];
        y[row * 8 + i] = sum * sum * sum;
      }
    }
    training.step({{"x", x}, {"y", y}});
  }
}
