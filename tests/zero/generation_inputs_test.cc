// Generation by models that see more than the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/train/generator.h"
#include "tests/zero/generation_run.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kMemory = 5, kWidth = 16;

// A text that is generated from a memory, as in translation.
struct Decoder : nn::Module {
  nn::Embedding table{this, "table", kVocabulary, kWidth};
  nn::Parameter positions{this, "positions", {kContext, kWidth}, Initializer::Normal(0.5)};
  nn::TransformerDecoderLayer layer{this, "layer", kWidth, 2};

  Var operator()(Var tokens, Var memory) {
    nn::AttentionMasks causal;
    causal.causal = true;
    const Var x = table(tokens) + at_positions(positions, tokens.dim(1));
    return linear(layer(x, memory, causal), table.weight);
  }
};

class Translation {
 public:
  explicit Translation(Communicator& communicator) : communicator_(communicator) {}

  Status Start() {
    graph_.train(optim::Sgd{0.1}, [&](Inputs& in) {
      const Var memory = in.f32("memory", {1, kMemory, kWidth});
      const Var logits = decoder_(in.i64("x", {1, kContext}), memory);
      return cross_entropy(reshape(logits, {kContext, kVocabulary}), in.i64("y", {kContext}));
    });
    generator_.emplace(graph_, GeneratorOptions{.context = kContext, .chunk = 7},
                       [&](Var tokens, Inputs& in) {
                         return decoder_(tokens, in.f32("memory", {1, kMemory, kWidth}, Sbp::B()));
                       });
    graph_.eval("whole", [&](Inputs& in) {
      const Var memory = in.f32("memory", {1, kMemory, kWidth}, Sbp::B());
      return decoder_(in.i64("x", {1, kContext}, Sbp::B()), memory);
    });
    graph_.config().zero.stage = 3;
    ZG_ASSIGN_OR_RETURN(trainer_, make_trainer(graph_, communicator_));
    return Status::Ok();
  }

  // Generates, and checks that each token is the most probable one, and that its logits are those of the
  // whole text. Returns the last ones.
  StatusOr<std::vector<float>> Generate(std::vector<int64_t> text,
                                        const std::vector<float>& memory) {
    GenerateOptions options;
    options.inputs = {{"memory", memory}};
    options.max_tokens = 6;
    options.sampler.temperature = 0.0;
    ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> tokens,
                        generator_->generate(*trainer_, text, options));
    std::vector<float> logits;
    for (const int64_t token : tokens) {
      ZG_ASSIGN_OR_RETURN(logits, generator_->logits(*trainer_, text, options.inputs));
      std::vector<int64_t> padded = text;
      padded.resize(kContext);
      ZG_RETURN_IF_ERROR(trainer_->eval("whole", {{"x", padded}, {"memory", memory}}));
      ZG_ASSIGN_OR_RETURN(const std::vector<float> whole, trainer_->result("whole"));
      const auto row = whole.begin() + (static_cast<int64_t>(text.size()) - 1) * kVocabulary;
      EXPECT_EQ(logits, std::vector<float>(row, row + kVocabulary));
      EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
      text.push_back(token);
    }
    return logits;
  }

  // Whether the program reads the memory, or what has been made of it.
  bool ReadsMemory(const std::string& eval) const {
    for (const ir::Node* node : trainer_->program().graph.NodesOf(ir::OpKind::kInput)) {
      if (node->section->name == eval && node->attributes.String("name") == "memory") return true;
    }
    return false;
  }

  std::string ErrorWithoutInputs() {
    return std::string(generator_->logits(*trainer_, Text(3)).status().message());
  }

 private:
  Communicator& communicator_;
  Decoder decoder_;
  Graph graph_{"translate"};
  std::optional<Generator> generator_;
  std::unique_ptr<Trainer> trainer_;
};

TEST(Generation, SeesInputsBesideTheText) {
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    Translation translation(communicator);
    ZG_RETURN_IF_ERROR(translation.Start());
    EXPECT_TRUE(translation.ReadsMemory("generate.inputs"));
    EXPECT_FALSE(translation.ReadsMemory("generate.prefill"));
    EXPECT_FALSE(translation.ReadsMemory("generate.decode"));
    std::vector<float> memory(kMemory * kWidth);
    std::vector<std::vector<float>> logits;
    for (const float scale : {1.0f, -3.0f}) {
      for (size_t i = 0; i < memory.size(); ++i) memory[i] = scale * static_cast<float>(i % 7) / 4;
      ZG_ASSIGN_OR_RETURN(logits.emplace_back(), translation.Generate(Text(20), memory));
    }
    EXPECT_NE(logits[0], logits[1]);
    EXPECT_NE(translation.ErrorWithoutInputs().find("\"memory\" was not set"), std::string::npos);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// Attention to a memory, whose heads ranks share along the axis tensor.
struct Cross : nn::Module {
  nn::Embedding table{this, "table", kVocabulary, kWidth};
  nn::Linear query{this, "query", kWidth, kWidth}, key{this, "key", kWidth, kWidth};
  nn::Linear value{this, "value", kWidth, kWidth}, output{this, "output", kWidth, kWidth};

  Var operator()(Var tokens, Var memory) {
    AttentionOptions options, causal;
    options.heads = causal.heads = 2;
    causal.causal = true;
    const Var x = table(tokens), q = query(x);
    const Var own = attention(q, key(x), value(x), causal);
    const Var other = attention(q, key(memory), value(memory), options);
    return linear(x + output(own + other), table.weight);
  }
};

TEST(Generation, KeepsOnEachRankWhatItsHeadsMakeOfInputs) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<std::vector<float>> logits(2);
    for (const int ranks : {1, 2}) {
      const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
        Cross model;
        Graph graph("cross");
        Generator generator(graph, {.context = kContext, .chunk = 7}, [&](Var tokens, Inputs& in) {
          return model(tokens, in.f32("memory", {1, kMemory, kWidth}, Sbp::B()));
        });
        graph.config().mesh = {{"data", 1}, {"tensor", ranks}};
        graph.config().placement = {{"query", "tensor", Sbp::S(0)},
                                    {"key", "tensor", Sbp::S(0)},
                                    {"value", "tensor", Sbp::S(0)},
                                    {"output.weight", "tensor", Sbp::S(1)}};
        graph.config().dtype = dtype;
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
        int split = 0;
        for (const ir::Node* node : trainer->program().graph.NodesOf(ir::OpKind::kVariable)) {
          split += node->op->name == "cache" && node->outputs[0]->sbp.back().is_split();
        }
        EXPECT_EQ(split, ranks == 1 ? 0 : 4);  // of the text and of the memory
        const std::vector<float> memory(kMemory * kWidth, 0.7f);
        ZG_ASSIGN_OR_RETURN(const std::vector<float> result,
                            generator.logits(*trainer, Text(12), {{"memory", memory}}));
        if (communicator.rank() == 0) logits[ranks - 1] = result;
        return Status::Ok();
      });
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    for (size_t i = 0; i < logits[0].size(); ++i) {
      EXPECT_NEAR(logits[1][i], logits[0][i], dtype == DType::kF32 ? 1e-4 : 0.2);
    }
  }
}

// A model that looks along the tokens by itself does not see those of earlier runs: its logits would be
// those of another text.
std::string ErrorOfModel(const std::function<Var(Var x)>& along_tokens) {
  InProcessGroup group(1);
  const nn::Embedding table(nullptr, "table", kVocabulary, kWidth);
  Graph graph("along");
  Generator generator(graph, {.context = kContext, .chunk = 7}, [&](Var tokens) {
    const Var x = embedding(tokens, table.weight);
    AttentionOptions causal;
    causal.causal = true;
    return linear(attention(x, x, x, causal) + along_tokens(x), table.weight);
  });
  const auto trainer = make_trainer(graph, group.communicator(0));
  EXPECT_TRUE(trainer.ok()) << trainer.status().ToString();
  return std::string(generator.logits(**trainer, Text(20)).status().message());
}

TEST(Generation, RefusesModelsThatLookAlongTokensByThemselves) {
  RegisterAllOps();
  EXPECT_EQ(ErrorOfModel([](Var x) { return x; }), "");
  EXPECT_EQ(ErrorOfModel([](Var x) { return slice(with_earlier_tokens(x, 1), 1, 0, x.dim(1)); }),
            "");
  const auto shifted_by = [](int64_t distance, double factor) {
    return [=](Var x) { return factor * slice(pad(x, 1, distance, 0), 1, 0, x.dim(1)); };
  };
  const auto summed = [](Var x) { return cumsum(x, 1); };
  const auto numbered = [](Var x) {
    return x * unsqueeze(to(arange(x.dim(1), 1), DType::kF32), 1);
  };
  for (const std::function<Var(Var)>& function : std::vector<std::function<Var(Var)>>{
           shifted_by(1, 1.0), shifted_by(4, 1.0), shifted_by(10, 0.01), summed, numbered}) {
    EXPECT_NE(ErrorOfModel(function).find("the model looks along the tokens"), std::string::npos)
        << ErrorOfModel(function);
  }
}

}  // namespace
}  // namespace zg
