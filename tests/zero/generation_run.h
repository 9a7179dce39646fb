// Models that generate text with caches, on in-process ranks: their logits are compared with those
// of whole texts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ops/register_all_ops.h"
#include "framework/train/generator.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "models/lstm/model.h"
#include "models/mamba/model.h"
#include "tests/zero/tensor_runs.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {

inline constexpr int64_t kContext = 80;  // more than a block of attention's keys
inline constexpr int64_t kVocabulary = 50;
inline constexpr int64_t kLayers = 2;
inline constexpr int64_t kStreams = 2;  // texts of each rank, in the program "streams"

// Attention beside recurrences, whose caches and states go together.
struct Hybrid : nn::Module {
  nn::Embedding table{this, "table", kVocabulary, 16};
  models::MambaLayer mamba{this, "mamba", {1, 16, 32, 4, 4, 4}};
  nn::GRU gru{this, "gru", 16, 16};
  nn::Linear gate{this, "gate", 16, 16};
  nn::CausalSelfAttention attention{this, "attention", 16, 2};
  Var forward(Var tokens) override {
    Var x = mamba(table(tokens));
    x = x + gru(x);
    x = x + recurrence_over_tokens(sigmoid(gate(x)), x);
    return linear(x + attention(x), table.weight);
  }
};

// Attention with biases by distance: learned ones of T5's kind, and those of ALiBi (arXiv 2108.12409); and
// with a soft cap and sinks.
struct Distances : nn::Module {
  static constexpr int64_t kHeads = 4, kFar = 12;
  nn::Embedding table{this, "table", kVocabulary, 32};
  nn::Linear qkv{this, "qkv", 32, 64};  // two heads of keys
  nn::Embedding biases{this, "biases", kFar + 1, kHeads};
  nn::Linear last{this, "last", 32, 96};
  nn::Parameter sinks{this, "sinks", {kHeads}, Initializer::Normal(1.0)};
  Var forward(Var tokens) override {
    const Var behind = maximum(relative_positions(tokens.dim(1)), 0);
    AttentionOptions options;
    options.heads = kHeads;
    options.key_heads = 2;
    options.causal = true;
    options.bias = permute(biases(minimum(behind, kFar)) * 20.0, {0, 3, 1, 2});
    Var x = table(tokens);
    const Var all = qkv(x);
    x = x + attention(slice(all, 2, 0, 32), slice(all, 2, 32, 48), slice(all, 2, 48, 64), options);
    options.key_heads = kHeads;
    options.bias =
        to(unsqueeze(behind, 1), DType::kF32) *
        constant({1, kHeads, 1, 1}, std::vector<float>{-0.5f, -0.25f, -0.125f, -0.0625f});
    const auto last_parts = chunk(last(x), 3, 2);
    x = x + attention(last_parts[0], last_parts[1], last_parts[2], options);
    options.bias = {};
    options.soft_cap = 3.0;
    options.sinks = sinks;
    x = x + attention(last_parts[1], last_parts[2], last_parts[0], options);
    return linear(x, table.weight);
  }
};

inline std::shared_ptr<nn::Module> MakeModel(const std::string& name) {
  if (name == "mamba") {
    return std::make_shared<models::Mamba>(
        models::MambaConfig{kLayers, 16, 32, 4, 4, 3, kVocabulary});
  }
  if (name == "lstm") {
    return std::make_shared<models::LstmLanguage>(models::LstmConfig{kVocabulary, 8, 16, kLayers});
  }
  if (name == "distances") return std::make_shared<Distances>();
  if (name == "hybrid") return std::make_shared<Hybrid>();
  if (name == "gpt") {
    return std::make_shared<models::Gpt>(
        models::GptConfig{kLayers, 2, 32, kContext, kVocabulary, 0.1});
  }
  return std::make_shared<models::Llama>(
      models::LlamaConfig{kLayers, 4, 2, 32, 48, kContext, kVocabulary});
}

inline std::vector<int64_t> Text(int64_t size, int64_t seed = 1) {
  std::vector<int64_t> text(size);
  for (int64_t i = 0; i < size; ++i) text[i] = (seed * 31 + i * i * 7 + i * 3) % kVocabulary;
  return text;
}

struct Config {
  std::string model = "gpt";
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  int64_t chunk = 7;
  std::vector<MeshAxis> mesh = {};  // of `ranks`
  bool splits_sequence = false;     // along the axis tensor
  int64_t texts = 1;
  int64_t beams = 0;
};

inline std::vector<PlacementRule> RulesOf(const Config& config) {
  const bool is_llama = config.model == "llama";
  std::vector<PlacementRule> rules =
      is_llama ? testing::LlamaTensorRules() : testing::GptTensorRules();
  const auto add = [&](const std::vector<PlacementRule>& more) {
    rules.insert(rules.end(), more.begin(), more.end());
  };
  add(is_llama ? testing::kLlamaVocabulary : testing::kGptVocabulary);
  if (config.splits_sequence) add(is_llama ? testing::kLlamaSequence : testing::kGptSequence);
  return rules;
}

// A model after a training step, with the programs of a generator, one that computes whole texts,
// and one that decodes several texts of each rank.
class RankRun {
 public:
  RankRun(const Config& config, Communicator& communicator)
      : communicator_(communicator),
        model_(MakeModel(config.model)),
        graph_(config.model),
        generator_(Trained(),
                   {.context = kContext,
                    .chunk = config.chunk,
                    .texts = config.texts,
                    .beams = config.beams},
                   [&](Var tokens) { return (*model_)(tokens); }) {
    graph_.eval("whole", [&](Inputs& in) {
      return reshape((*model_)(in.i64("x", {1, kContext}, Sbp::B())), {kContext, kVocabulary});
    });
    graph_.eval("streams", [&](Inputs& in) {
      const Var tokens = in.i64("tokens", {kStreams, 1});
      const nn::Decoding decoding("streams", in.i64("start", {kStreams}), kContext);
      return (*model_)(tokens);
    });
    graph_.config().zero.stage = config.stage;
    graph_.config().zero.bucket_bytes = 4096;
    graph_.config().zero.shard_min_elements = 0;
    graph_.config().mesh = config.mesh;
    const Mesh mesh = graph_.config().MeshOf(communicator.size());
    if (mesh.FindAxis("tensor") >= 0) graph_.config().placement = RulesOf(config);
    graph_.config().micro_batches = mesh.num_data_ranks();
    graph_.config().dtype = config.dtype;
  }

  Status Start() {
    ZG_ASSIGN_OR_RETURN(trainer_, make_trainer(graph_, communicator_));
    return Train();
  }

  Status Train() {
    return trainer_
        ->step([&](int64_t micro_batch) {
          x_ = Text(kContext, micro_batch);
          y_ = Text(kContext, micro_batch + 5);
          return trainer_->feed({{"x", x_}, {"y", y_}});
        })
        .status();
  }

  // Returns one row of logits per token.
  StatusOr<std::vector<std::vector<float>>> Whole(std::vector<int64_t> text) {
    text.resize(kContext);
    ZG_RETURN_IF_ERROR(trainer_->eval("whole", {{"x", text}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer_->result("whole"));
    std::vector<std::vector<float>> rows;
    for (int64_t i = 0; i < kContext; ++i) {
      rows.emplace_back(logits.begin() + i * kVocabulary, logits.begin() + (i + 1) * kVocabulary);
    }
    return rows;
  }

  StatusOr<std::vector<float>> Logits(const std::vector<int64_t>& text) {
    return generator_.logits(*trainer_, text);
  }
  auto Generate(const std::vector<int64_t>& prompt, const GenerateOptions& options) {
    return generator_.generate(*trainer_, prompt, options);
  }

  Trainer& trainer() { return *trainer_; }
  Generator& generator() { return generator_; }

 private:
  Graph& Trained() {
    graph_.train(optim::AdamW{.lr = 0.02}, [&](Inputs& in) {
      return cross_entropy((*model_)(in.i64("x", {1, kContext})), in.i64("y", {1, kContext}));
    });
    return graph_;
  }

  Communicator& communicator_;
  std::shared_ptr<nn::Module> model_;
  Graph graph_;
  Generator generator_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<int64_t> x_, y_;
};

inline void OnRanks(const Config& config, const std::function<Status(RankRun&)>& body) {
  RegisterAllOps();
  const Status status = RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    RankRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.Start());
    return body(run);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

inline std::vector<int64_t> Prefix(const std::vector<int64_t>& text, int64_t size) {
  return {text.begin(), text.begin() + size};
}

inline Status ExpectLogitsOfWholeTexts(RankRun& run) {
  const std::vector<int64_t> text = Text(kContext);
  ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole(text));
  for (int64_t size = 1; size <= kContext; ++size) {  // token by token
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.Logits(Prefix(text, size)));
    EXPECT_EQ(logits, whole[size - 1]) << size << " tokens";
  }
  for (const int64_t size : {2, 7, 8, 33, 50, 79, 80}) {  // in chunks
    run.generator().reset();
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.Logits(Prefix(text, size)));
    EXPECT_EQ(logits, whole[size - 1]) << size << " tokens at once";
  }
  for (const int64_t size : {80, 80, 41, 42, 60}) {  // with cached prefixes
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.Logits(Prefix(text, size)));
    EXPECT_EQ(logits, whole[size - 1]) << size << " tokens of a longer text";
  }
  std::vector<int64_t> other = Text(kContext);
  for (size_t i = 30; i < other.size(); ++i) other[i] = (other[i] + 1) % kVocabulary;
  ZG_ASSIGN_OR_RETURN(const auto whole_other, run.Whole(other));
  ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.Logits(Prefix(other, 60)));
  EXPECT_EQ(logits, whole_other[59]);
  return Status::Ok();
}

// Texts at different positions: the second lags behind, the others begin with other tokens.
inline Status ExpectStreamsOfWholeTexts(RankRun& run) {
  std::vector<std::vector<int64_t>> texts;
  std::vector<std::vector<std::vector<float>>> wholes;
  const int num_data_ranks = run.trainer().executor().graph().mesh().num_data_ranks();
  for (int rank = 0; rank < num_data_ranks; ++rank) {
    for (int64_t i = 0; i < kStreams; ++i) {
      const std::vector<int64_t> text = Text(kContext, 3 + rank * kStreams + i);
      ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole(text));
      if (rank != run.trainer().data_rank()) continue;
      texts.push_back(text);
      wholes.push_back(whole);
    }
  }
  for (int64_t step = 0; step < 45; ++step) {
    const std::vector<int64_t> start = {step, std::max<int64_t>(0, step - 3)};
    const std::vector<int64_t> tokens = {texts[0][start[0]], texts[1][start[1]]};
    ZG_RETURN_IF_ERROR(run.trainer().eval("streams", {{"tokens", tokens}, {"start", start}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.trainer().local_result("streams"));
    for (int64_t i = 0; i < kStreams; ++i) {
      const std::vector<float> own(logits.begin() + i * kVocabulary,
                                   logits.begin() + (i + 1) * kVocabulary);
      EXPECT_EQ(own, wholes[i][start[i]]) << "text " << i << ", position " << start[i];
    }
  }
  return Status::Ok();
}

inline int64_t CacheBytes(const MemoryPlan& plan, const std::string& name) {
  int64_t bytes = 0;
  for (const PlannedBuffer& buffer : plan.buffers) {
    const std::string& of = buffer.name;
    if (of.size() > 6 && of.substr(of.size() - 6) == ".cache" && of.rfind(name, 0) == 0) {
      bytes += buffer.bytes;
    }
  }
  return bytes;
}

}  // namespace zg
