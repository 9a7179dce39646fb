#include "tests/models/small_architectures.h"

#include <cmath>

namespace zg::testing {
namespace {

constexpr int64_t kTime = 12;
constexpr int64_t kVocabulary = 61;

struct ResidualBlock : nn::Module {
  nn::GroupNorm norm1, norm2;
  nn::Conv2d conv1, conv2, skip;
  nn::Linear time;

  ResidualBlock(const nn::Module* parent, const std::string& name, int64_t in, int64_t out)
      : Module(parent, name),
        norm1(this, "norm1", 4, in),
        norm2(this, "norm2", 4, out),
        conv1(this, "conv1", in, out, 3, {.padding = 1}),
        conv2(this, "conv2", out, out, 3, {.padding = 1}),
        skip(this, "skip", in, out, 1),
        time(this, "time", 16, out) {}

  Var operator()(Var x, Var at) {
    const Scope scope(*this);
    const Var shift = time(silu(at));
    const Var h = conv1(silu(norm1(x))) + reshape(shift, {shift.dim(0), shift.dim(1), 1, 1});
    return conv2(silu(norm2(h))) + skip(x);
  }
};

struct UNet : nn::Module {
  nn::Linear time1{this, "time1", 8, 16}, time2{this, "time2", 16, 16};
  nn::Conv2d first{this, "first", 2, 8, 3, {.padding = 1}};
  ResidualBlock down_block{this, "down_block", 8, 8};
  nn::Conv2d down{this, "down", 8, 16, 3, {.stride = 2, .padding = 1}};
  ResidualBlock middle{this, "middle", 16, 16};
  nn::GroupNorm norm{this, "norm", 4, 16};
  nn::MultiheadAttention attention{this, "attention", 16, 2};
  nn::ConvTranspose2d up{this, "up", 16, 8, 4, {.stride = 2, .padding = 1}};
  ResidualBlock up_block{this, "up_block", 16, 8};
  nn::Conv2d last{this, "last", 8, 2, 3, {.padding = 1}};

  Var operator()(Var x, Var steps) {
    const Var frequencies = exp(to(arange(4), DType::kF32) * (-std::log(10000.0) / 4));
    const Var angles = unsqueeze(steps, 1) * frequencies;
    const Var time = time2(silu(time1(concat({sin(angles), cos(angles)}, 1))));
    const Var wide = down_block(first(x), time);
    Var h = middle(down(wide), time);
    const Var pixels = transpose(flatten(norm(h), 2), 1, 2);
    h = h + reshape(transpose(attention(pixels), 1, 2), h.shape().dims());
    return last(up_block(concat({up(h), wide}, 1), time));
  }
};

SmallModel MakeUNet() {
  auto model = std::make_shared<UNet>();
  const auto images = [](Inputs& in, const char* name, int64_t batch) {
    return in.f32(name, {batch, 2, 8, 8});
  };
  return {model,
          [=](Inputs& in, int64_t batch) {
            const Var x = images(in, "x", batch);
            return (*model)(x, in.f32("steps", {batch}));
          },
          [=](Var y, Inputs& in, int64_t batch) { return mse_loss(y, images(in, "y", batch)); }};
}

// Two of four experts for each token.
struct MixtureOfExperts : nn::Module {
  nn::Embedding embedding{this, "embedding", kVocabulary, 16};
  nn::Linear router{this, "router", 16, 4, {.has_bias = false}};
  nn::Parameter up{this, "up", {4, 24, 16}, Initializer::Normal(0.2)};
  nn::Parameter down{this, "down", {4, 16, 24}, Initializer::Normal(0.2)};
  nn::Linear output{this, "output", 16, kVocabulary};
  Var z_loss;

  Var forward(Var tokens) override {
    const Var x = embedding(tokens);
    const Var scores = router(x);
    const TopK best = top_k(scores, 2);  // (B, T, 2)
    const Var hidden = grouped_matmul(unsqueeze(x, 2), up, best.indices, /*transposed=*/true);
    const Var y = grouped_matmul(square(relu(hidden)), down, best.indices, /*transposed=*/true);
    z_loss = mean(square(logsumexp(scores, {-1})));
    return output(x + sum(y * unsqueeze(softmax(best.values), -1), {2}));
  }
};

SmallModel MakeMixture() {
  auto model = std::make_shared<MixtureOfExperts>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.i64("x", {batch, kTime}));
          },
          [=](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch, kTime})) + 0.01 * model->z_loss;
          }};
}

// Attention along the edges of a graph.
struct GraphAttention : nn::Module {
  nn::Linear projection, source, target;

  GraphAttention(const nn::Module* parent, const std::string& name, int64_t in, int64_t out)
      : Module(parent, name),
        projection(this, "projection", in, out, {.has_bias = false}),
        source(this, "source", out, 1),
        target(this, "target", out, 1, {.has_bias = false}) {}

  // nodes (N, C), the edges' nodes (E) -> (N, out)
  Var operator()(Var nodes, Var from, Var into) {
    const Scope scope(*this);
    const Var h = projection(nodes);
    const auto of = [](Var of_nodes, Var edges) { return index_select(of_nodes, 0, edges); };
    const Var shares = exp(leaky_relu(of(source(h), from) + of(target(h), into), 0.2));
    const Var totals = index_add(zeros({nodes.dim(0), 1}), 0, into, shares);
    return index_add(zeros_like(h), 0, into, of(h, from) * (shares / of(totals, into)));
  }
};

struct GraphNetwork : nn::Module {
  GraphAttention layer1{this, "layer1", 6, 12}, layer2{this, "layer2", 12, 4};

  // x (B, N, C), edges (B, 2, E)
  Var operator()(Var x, Var edges) {
    const int64_t batch = x.dim(0), nodes = x.dim(1);
    const Var of_all = edges + reshape(arange(batch, 0, nodes), {batch, 1, 1});
    const Var from = flatten(select(of_all, 1, 0)), into = flatten(select(of_all, 1, 1));
    const Var h = elu(layer1(flatten(x, 0, 1), from, into));
    return reshape(layer2(h, from, into), {batch, nodes, 4});
  }
};

SmallModel MakeGraph() {
  auto model = std::make_shared<GraphNetwork>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            const Var x = in.f32("x", {batch, 5, 6});
            return (*model)(x, in.i64("edges", {batch, 2, 9}));
          },
          [](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch, 5}));
          }};
}

// A selective state space model.
struct StateSpace : nn::Module {
  nn::Linear input{this, "input", 8, 16, {.has_bias = false}};
  nn::Conv1d conv{this, "conv", 8, 8, 3, {.padding = 2, .groups = 8}};
  nn::Linear parameters_of{this, "parameters_of", 8, 8, {.has_bias = false}};
  nn::Linear step{this, "step", 8, 8};
  nn::Parameter log_decay{this, "log_decay", {8, 4}, Initializer::Normal(0.2)};
  nn::Parameter skip{this, "skip", {8}, Initializer::Ones()};
  nn::Linear output{this, "output", 8, 8, {.has_bias = false}};

  Var forward(Var x) override {
    const std::vector<Var> halves = chunk(input(x), 2, -1);
    const Var convolved = slice(conv(transpose(halves[0], 1, 2)), 2, 0, x.dim(1));
    const Var signal = silu(transpose(convolved, 1, 2));
    const std::vector<Var> projections = chunk(parameters_of(signal), 2, -1);
    const Var width = softplus(step(signal));
    const Var decay = exp(unsqueeze(width, -1) * -exp(log_decay));
    const Var added = unsqueeze(width * signal, -1) * unsqueeze(projections[0], 2);
    const Var states = linear_recurrence(decay, added, 1);  // (B, T, channels, states)
    const Var y = sum(states * unsqueeze(projections[1], 2), {-1});
    return output((y + skip * signal) * silu(halves[1]));
  }
};

SmallModel MakeStateSpace() {
  auto model = std::make_shared<StateSpace>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, kTime, 8}));
          },
          [](Var y, Inputs& in, int64_t batch) {
            return mse_loss(y, in.f32("y", {batch, kTime, 8}));
          }};
}

// A generator and a critic, each with its loss of the same step.
struct Adversaries : nn::Module {
  nn::Sequential generator{this, "generator"}, critic{this, "critic"};
  Var made;

  Adversaries() {
    generator.add<nn::Linear>(4, 16);
    generator.add<nn::LeakyReLU>(0.2);
    generator.add<nn::Linear>(16, 6);
    critic.add<nn::Linear>(6, 16);
    critic.add<nn::Mish>();
    critic.add<nn::Linear>(16, 1);
  }

  // The critic's score of what the generator makes, whose gradient is the generator's alone.
  Var forward(Var noise) override {
    made = generator(noise);
    const nn::ConstantParameters constant(critic);
    return critic(made);
  }
};

SmallModel MakeAdversaries() {
  auto model = std::make_shared<Adversaries>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("noise", {batch, 4}));
          },
          [=](Var score, Inputs& in, int64_t batch) {
            const Var real = model->critic(in.f32("y", {batch, 6}));
            const Var fake = model->critic(stop_gradient(model->made));
            return mean(softplus(-score) + softplus(-real) + softplus(fake));
          }};
}

// A bidirectional LSTM and a chain of tags: the negative log-likelihood of a conditional random
// field.
struct Tagger : nn::Module {
  static constexpr int64_t kTags = 5;

  nn::Embedding embedding{this, "embedding", kVocabulary, 8};
  nn::LSTM lstm{this, "lstm", 8, 10, {.layers = 2, .bidirectional = true}};
  nn::Linear output{this, "output", 20, kTags};
  nn::Parameter transition{this, "transition", {kTags, kTags}, Initializer::Zeros()};

  Var forward(Var tokens) override { return output(lstm(embedding(tokens))); }

  Var Loss(Var scores, Var tags) {
    const Var own_scores = sum(gather(scores, -1, unsqueeze(tags, -1)), {1, 2});
    const Var steps = slice(tags, 1, 0, kTime - 1) * kTags + slice(tags, 1, 1, kTime);
    const Var of_steps = zg::embedding(steps, reshape(transition, {kTags * kTags, 1}));
    const Var own_steps = sum(of_steps, {1, 2});
    Var total = select(scores, 1, 0);
    for (int64_t t = 1; t < kTime; ++t) {
      total = logsumexp(unsqueeze(total, 2) + transition, {1}) + select(scores, 1, t);
    }
    return mean(logsumexp(total, {1}) - own_scores - own_steps);
  }
};

SmallModel MakeTagger() {
  auto model = std::make_shared<Tagger>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.i64("x", {batch, kTime}));
          },
          [=](Var scores, Inputs& in, int64_t batch) {
            return model->Loss(scores, in.i64("y", {batch, kTime}));
          }};
}

// Encodes images by the nearest vectors of a codebook, straight-through.
struct Quantiser : nn::Module {
  nn::Conv2d encoder{this, "encoder", 4, 6, 3, {.padding = 1}};
  nn::Embedding codebook{this, "codebook", 9, 6};
  nn::PReLU prelu{this, "prelu", 6};
  nn::Conv2d decoder{this, "decoder", 6, 4, 3, {.padding = 1}};
  Var commitment, images;

  Var forward(Var x) override {
    images = x;
    const Var z = permute(encoder(pixel_unshuffle(x, 2)), {0, 2, 3, 1});
    const Var distance = sum(square(unsqueeze(z, -2) - codebook.weight), {-1});
    const Var q = codebook(argmin(distance, -1));
    commitment = mse_loss(q, stop_gradient(z)) + 0.25 * mse_loss(z, stop_gradient(q));
    const Var through = permute(z + stop_gradient(q - z), {0, 3, 1, 2});
    return pixel_shuffle(decoder(prelu(through)), 2);
  }
};

SmallModel MakeQuantiser() {
  auto model = std::make_shared<Quantiser>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, 1, 8, 8}));
          },
          [=](Var y, Inputs&, int64_t) { return mse_loss(y, model->images) + model->commitment; }};
}

// An encoder and a decoder with T5's relative positions: a bias for each distance and head.
struct Translator : nn::Module {
  struct Block : nn::Module {
    nn::Linear projection, out;
    nn::RMSNorm norm;
    Block(const nn::Module* parent, const std::string& name)
        : projection(parent, name, 16, 48, {.has_bias = false}),
          out(parent, name + "_out", 16, 16, {.has_bias = false}),
          norm(parent, name + "_norm", 16) {}

    Var operator()(Var x, Var memory, const AttentionOptions& options) {
      const std::vector<Var> weights = chunk(projection.weight, 3);
      const Var q = linear(norm(x), weights[0]);
      return x + out(attention(q, linear(memory, weights[1]), linear(memory, weights[2]), options));
    }
  };

  nn::Embedding embedding{this, "embedding", kVocabulary, 16};
  nn::Embedding distances{this, "distances", 7, 2};
  Block encoder{this, "encoder"}, decoder{this, "decoder"}, cross{this, "cross"};

  // (1, heads, T, T)
  Var Bias(int64_t length) {
    const Var distance = arange(length) - unsqueeze(arange(length), 1);
    return unsqueeze(permute(distances(clamp(distance, -3, 3) + 3.0), {2, 0, 1}), 0);
  }

  Var operator()(Var tokens, Var memory) {
    const Var source = embedding(memory);
    const Var encoded =
        encoder(source, source, {.heads = 2, .scale = 1.0, .bias = Bias(source.dim(1))});
    Var h = embedding(tokens);
    h = decoder(h, h, {.heads = 2, .causal = true, .scale = 1.0, .bias = Bias(h.dim(1))});
    h = cross(h, encoded, {.heads = 2, .scale = 1.0});
    return linear(h, embedding.weight);
  }
};

SmallModel MakeTranslator() {
  auto model = std::make_shared<Translator>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            const Var tokens = in.i64("x", {batch, kTime});
            return (*model)(tokens, in.i64("memory", {batch, 7}));
          },
          [](Var logits, Inputs& in, int64_t batch) {
            return cross_entropy(logits, in.i64("y", {batch, kTime}));
          }};
}

std::vector<Var> VarsOf(const std::vector<nn::Parameter*>& parameters) {
  std::vector<Var> vars;
  for (const nn::Parameter* parameter : parameters) vars.push_back(*parameter);
  return vars;
}

// One step of gradient descent inside of the model, on fixed points (MAML).
struct FastWeights : nn::Module {
  nn::Sequential net{this, "net"};

  FastWeights() {
    net.add<nn::Linear>(3, 8);
    net.add<nn::Tanh>();
    net.add<nn::Linear>(8, 1);
  }

  Var forward(Var x) override {
    const Var points = reshape(to(arange(12), DType::kF32) / 6.0 - 1.0, {4, 3});
    const Var inner_loss = mean(square(net(points)));
    const std::vector<nn::Parameter*> parameters = net.parameters();
    const std::vector<Var> slopes = gradients(inner_loss, VarsOf(parameters));
    std::map<const nn::Parameter*, Var> slope;
    for (size_t i = 0; i < slopes.size(); ++i) slope[parameters[i]] = slopes[i];
    const nn::ParameterValues fast(
        net, [&](const nn::Parameter& parameter) { return parameter - 0.5 * slope[&parameter]; });
    return net(x);
  }
};

SmallModel MakeFastWeights() {
  auto model = std::make_shared<FastWeights>();
  return {model,
          [=](Inputs& in, int64_t batch) {
            return (*model)(in.f32("x", {batch, 3}));
          },
          [](Var y, Inputs& in, int64_t batch) {
            return mse_loss(y, in.f32("y", {batch, 1}));
          }};
}

}  // namespace

const std::map<std::string, SmallModel (*)()>& SmallArchitectures() {
  static const auto& models = *new std::map<std::string, SmallModel (*)()>{
      {"unet", MakeUNet},
      {"mixture", MakeMixture},
      {"graph", MakeGraph},
      {"state_space", MakeStateSpace},
      {"adversaries", MakeAdversaries},
      {"tagger", MakeTagger},
      {"quantiser", MakeQuantiser},
      {"translator", MakeTranslator},
      {"fast_weights", MakeFastWeights},
  };
  return models;
}

}  // namespace zg::testing
