// A first program: a classifier of points by the quadrant that they lie in.
//   bazel run //models/first -- --ranks 2 --zero 3
#include <random>
#include <vector>

#include "zerograph/zerograph.h"

struct Classifier : zg::nn::Module {
  zg::nn::Linear hidden{this, "hidden", 2, 32};
  zg::nn::Linear output{this, "output", 32, 4};
  zg::Var forward(zg::Var x) override { return output(zg::relu(hidden(x))); }  // (B, 2) -> (B, 4)
};

int main(int argc, char** argv) {
  zg::Job job = zg::Job::start(argc, argv);  // flags, ranks, device; starts mpirun for --ranks N
  const int64_t B = job.options().batch;     // samples of a micro-batch: --batch
  Classifier model;
  zg::Graph graph("first");  // a description: knows no ranks
  graph.train(zg::optim::Adam{1e-2}, [&](zg::Inputs& in) {
    zg::Var x = in.f32("x", {B, 2}), y = in.i64("y", {B});  // shapes of one micro-batch
    return zg::cross_entropy(model(x), y);
  });
  graph.config().zero.stage = 2;  // what every rank keeps a shard of; --zero overrides it

  zg::Training training = zg::train(job, graph);  // compiles, or ends with the error
  while (training.next()) {
    std::mt19937 random(static_cast<unsigned>(training.step_number() * job.size() + job.rank()));
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> x(B * 2);
    std::vector<int64_t> y(B);
    for (int64_t i = 0; i < B; ++i) {
      x[2 * i] = uniform(random);
      x[2 * i + 1] = uniform(random);
      y[i] = (x[2 * i] > 0 ? 1 : 0) + (x[2 * i + 1] > 0 ? 2 : 0);
    }
    training.step({{"x", x}, {"y", y}});  // this rank's micro-batch
  }
}
