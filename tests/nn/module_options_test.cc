// Options and initial values of modules that cannot be: errors that name the module.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "framework/nn/nn.h"

namespace zg::nn {
namespace {

const double kNan = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

// The error of a model of x (2, 3).
std::string ErrorOf(Module& model) {
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return model(in.f32("x", {2, 3})); });
  return graph.status().message();
}

std::string InitializerError(const Initializer& initializer) {
  Linear layer(nullptr, "layer", 3, 2);
  layer.weight.set_initializer(initializer);
  return ErrorOf(layer);
}

TEST(ModuleOptions, Initializers) {
  EXPECT_EQ(InitializerError(Initializer::Normal(0.0)), "");
  EXPECT_EQ(InitializerError(Initializer::Uniform(-1.0, 2.0)), "");
  EXPECT_EQ(InitializerError(Initializer::TruncatedNormal(1.0, kInfinity)), "");
  const std::string got =
      "graph test, eval 'run': layer: parameter 'layer.weight': got the initializer ";
  EXPECT_EQ(InitializerError(Initializer::Normal(-1.0)),
            got + "normal(-1), expected finite numbers, and a scale >= 0");
  EXPECT_EQ(InitializerError(Initializer::Normal(1.0, kInfinity)),
            got + "normal(1,inf), expected finite numbers, and a scale >= 0");
  EXPECT_EQ(InitializerError(Initializer::Uniform(-1.0)),
            got + "uniform(-1), expected finite numbers, and a scale >= 0");
  EXPECT_EQ(InitializerError(Initializer::Uniform(kNan)),
            got + "uniform(nan), expected finite numbers, and a scale >= 0");
  EXPECT_EQ(InitializerError(Initializer::TruncatedNormal(1.0, 0.0)),
            got + "truncated_normal(1,0), expected finite numbers, and a scale >= 0");
  EXPECT_EQ(InitializerError(Initializer::Constant(kNan)),
            got + "constant(nan), expected finite numbers");
}

TEST(ModuleOptions, Embedding) {
  nn::Embedding table(nullptr, "table", 4, 2, EmbeddingOptions(-1.0));
  Graph graph("test");
  graph.eval("run", [&](Inputs& in) { return table(in.i64("ids", {2})); });
  EXPECT_EQ(
      graph.status().message(),
      "graph test, eval 'run': table: parameter 'table.weight': got the initializer normal(-1), "
      "expected finite numbers, and a scale >= 0");
}

TEST(ModuleOptions, Momentum) {
  for (const double momentum : {0.0, 1.0, -0.5, 1.5, kNan}) {
    BatchNormOptions options;
    options.momentum = momentum;
    BatchNorm1d norm(nullptr, "norm", 3, options);
    const bool is_valid = momentum == 0.0 || momentum == 1.0;
    EXPECT_EQ(ErrorOf(norm).find("expected 0 to 1") == std::string::npos, is_valid) << momentum;
  }
}

std::string SpectralNormError(const SpectralNormOptions& options) {
  Linear layer(nullptr, "layer", 3, 2);
  spectral_norm(layer, options);
  return ErrorOf(layer);
}

TEST(ModuleOptions, SpectralNorm) {
  EXPECT_EQ(SpectralNormError({}), "");
  EXPECT_NE(SpectralNormError({-5}).find("spectral_norm: got -5 iterations, expected 1 to 1000"),
            std::string::npos);
  EXPECT_NE(SpectralNormError({1, kNan}).find(
                "spectral_norm: got an epsilon of nan, expected a finite number >= 0"),
            std::string::npos);
}

TEST(ModuleOptions, Lora) {
  for (const double alpha : {16.0, kNan, kInfinity}) {
    LoraOptions options;
    options.alpha = alpha;
    Linear layer(nullptr, "layer", 3, 2);
    Lora lora(options);
    lora.adapt(layer);
    EXPECT_EQ(ErrorOf(layer).find("LoRA: got an alpha / rank of") == std::string::npos,
              std::isfinite(alpha));
  }
}

TEST(ModuleOptions, IndicesOfModules) {
  Sequential layers(nullptr, "layers");
  layers.add<ReLU>();
  EXPECT_EQ(layers[0].path(), "layers.0");
  EXPECT_EXIT(layers[1], ::testing::ExitedWithCode(1),
              "error: modules 'layers': got the index 1, but their number is 1");
  ModuleList<Linear> list(nullptr, "list", 2, 3, 3);
  EXPECT_EXIT(list[-1], ::testing::ExitedWithCode(1),
              "error: modules 'list': got the index -1, but their number is 2");
}

}  // namespace
}  // namespace zg::nn
