// Generation with caches: logits equal those of the whole text computed at once, in every bit, at
// any stage, on any number of ranks; memory is as planned; invalid uses are errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/testing/as_planned.h"
#include "tests/zero/generation_run.h"

namespace zg {
namespace {

TEST(Generation, HasTheLogitsOfWholeTextsAndThePlannedMemory) {
  for (const std::string model : {"gpt", "llama"}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const int ranks : {1, 2}) {
        for (const int stage : {0, 3}) {
          SCOPED_TRACE(
              fmt::format("{}, {}, {} ranks, stage {}", model, DTypeName(dtype), ranks, stage));
          OnRanks({model, ranks, stage, dtype}, [&](RankRun& run) -> Status {
            ZG_RETURN_IF_ERROR(ExpectLogitsOfWholeTexts(run));
            ZG_RETURN_IF_ERROR(ExpectStreamsOfWholeTexts(run));
            const Executor& executor = run.trainer().executor();
            testing::ExpectMemoryAsPlanned(executor);
            const int64_t channels = model == "gpt" ? 32 : 16;
            const int64_t bytes = kLayers * 2 * kContext * channels * SizeOf(dtype);
            EXPECT_EQ(CacheBytes(executor.plan(), "generate."), bytes);
            EXPECT_EQ(CacheBytes(executor.plan(), "streams."), kStreams * bytes);
            return Status::Ok();
          });
        }
      }
    }
  }
}

TEST(Generation, KnowsDistancesToEarlierTokens) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SCOPED_TRACE(DTypeName(dtype));
    OnRanks({"distances", 2, 3, dtype}, [&](RankRun& run) -> Status {
      ZG_RETURN_IF_ERROR(ExpectLogitsOfWholeTexts(run));
      return ExpectStreamsOfWholeTexts(run);
    });
  }
}

// Models that keep states instead of, or beside, keys and values.
TEST(Generation, ContinuesFromStates) {
  struct Case {
    std::string model;
    DType dtype;
    int ranks;
    int64_t state_bytes;  // of each text
  };
  for (const Case& one :
       {Case{"mamba", DType::kF32, 2, kLayers * (3 * 32 + 32 * 4) * 4},
        Case{"mamba", DType::kBF16, 1, kLayers * (3 * 32 + 32 * 4) * 4},
        Case{"lstm", DType::kF32, 2, kLayers * 2 * 16 * 4},
        Case{"hybrid", DType::kBF16, 1, (3 * 32 + 32 * 4 + 2 * 16) * 4 + 2 * kContext * 16 * 2},
        Case{"hybrid", DType::kF32, 2, (3 * 32 + 32 * 4 + 2 * 16) * 4 + 2 * kContext * 16 * 4}}) {
    SCOPED_TRACE(fmt::format("{}, {}", one.model, DTypeName(one.dtype)));
    OnRanks({one.model, one.ranks, 3, one.dtype}, [&](RankRun& run) -> Status {
      ZG_RETURN_IF_ERROR(ExpectLogitsOfWholeTexts(run));
      ZG_RETURN_IF_ERROR(ExpectStreamsOfWholeTexts(run));
      const Executor& executor = run.trainer().executor();
      testing::ExpectMemoryAsPlanned(executor);
      EXPECT_EQ(CacheBytes(executor.plan(), "generate."), one.state_bytes);
      EXPECT_EQ(CacheBytes(executor.plan(), "streams."), kStreams * one.state_bytes);
      return Status::Ok();
    });
  }
}

TEST(Generation, StatesHaveNoLongestText) {
  OnRanks({.model = "mamba"}, [](RankRun& run) -> Status {
    GenerateOptions options;
    options.max_tokens = 3 * kContext;
    ZG_ASSIGN_OR_RETURN(const auto tokens, run.Generate(Text(2 * kContext), options));
    EXPECT_EQ(tokens.size(), 3 * kContext);
    return Status::Ok();
  });
}

// The ranks along tensor keep the keys and values of their own heads.
TEST(Generation, HasCachesByHeadsAlongTensor) {
  for (const std::string model : {"gpt", "llama"}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const int data_ranks : {1, 2}) {
        SCOPED_TRACE(fmt::format("{}, {}, data={},tensor=2", model, DTypeName(dtype), data_ranks));
        Config config = {model, 2 * data_ranks, 3, dtype, 8};
        config.mesh = {{"data", data_ranks}, {"tensor", 2}};
        config.splits_sequence = data_ranks == 2;
        OnRanks(config, [&](RankRun& run) -> Status {
          ZG_RETURN_IF_ERROR(ExpectLogitsOfWholeTexts(run));
          ZG_RETURN_IF_ERROR(ExpectStreamsOfWholeTexts(run));
          const Executor& executor = run.trainer().executor();
          testing::ExpectMemoryAsPlanned(executor);
          const int64_t channels = model == "gpt" ? 32 : 16;
          const int64_t bytes = kLayers * 2 * kContext * channels * SizeOf(dtype) / 2;
          EXPECT_EQ(CacheBytes(executor.plan(), "generate."), bytes);
          EXPECT_EQ(CacheBytes(executor.plan(), "streams."), kStreams * bytes);
          return Status::Ok();
        });
      }
    }
  }
}

// Several tokens at once are split, and their logits are whole on every rank.
TEST(Generation, SplitsChunksByRulesOfTheSequence) {
  Config config = {"llama", 2, 0, DType::kF32, 80};
  config.mesh = {{"data", 1}, {"tensor", 2}};
  config.splits_sequence = true;
  OnRanks(config, ExpectLogitsOfWholeTexts);
}

TEST(Generation, ComputesChunksOfAnySize) {
  for (const int64_t chunk : {1, 32, 80, 1000}) {
    SCOPED_TRACE(chunk);
    OnRanks({.model = "llama", .chunk = chunk}, ExpectLogitsOfWholeTexts);
  }
}

TEST(Generation, ComputesLogitsOfTheLastTokenOnly) {
  for (const std::string model : {"gpt", "llama"}) {
    OnRanks({.model = model}, [](RankRun& run) -> Status {
      std::set<std::string> programs;
      for (const auto& section : run.trainer().executor().graph().sections()) {
        for (const ir::Node* node : section->nodes) {
          for (const ir::Value* output : node->outputs) {
            const Shape& shape = output->type.shape;
            if (section->kind != ir::SectionKind::kEval || shape.num_dims() < 2) continue;
            if (shape.dim(-1) == kVocabulary) programs.insert(section->name);
          }
        }
      }
      EXPECT_EQ(programs,
                (std::set<std::string>{"generate.check", "generate.decode", "streams", "whole"}));
      return Status::Ok();
    });
  }
}

TEST(Generation, KnowsOfStepsInBetween) {
  OnRanks({}, [](RankRun& run) -> Status {
    const std::vector<int64_t> text = Text(20);
    ZG_RETURN_IF_ERROR(run.Logits(Prefix(text, 19)).status());
    ZG_RETURN_IF_ERROR(run.Train());
    ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole(text));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.Logits(text));
    EXPECT_EQ(logits, whole[19]);
    return Status::Ok();
  });
}

TEST(Generation, KnowsOfOtherChanges) {
  const auto fresh = [](RankRun& run, const char* what) -> Status {
    SCOPED_TRACE(what);
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, run.Logits(Text(20)));
    run.generator().reset();
    ZG_ASSIGN_OR_RETURN(const std::vector<float> anew, run.Logits(Text(20)));
    EXPECT_EQ(logits, anew);
    return Status::Ok();
  };
  const std::string directory = ::testing::TempDir() + "/generation_changes";
  std::filesystem::remove_all(directory);
  OnRanks({.ranks = 2, .stage = 3}, [&](RankRun& run) -> Status {
    Trainer& trainer = run.trainer();
    ZG_RETURN_IF_ERROR(run.Logits(Text(19)).status());
    ZG_ASSIGN_OR_RETURN(NamedValues values, trainer.consolidate_parameters());
    for (auto& [name, tensor] : values) {
      for (float& value : tensor.values) value *= 1.5f;
    }
    ZG_RETURN_IF_ERROR(trainer.save(directory));
    ZG_RETURN_IF_ERROR(trainer.scatter_parameters(values));
    ZG_RETURN_IF_ERROR(fresh(run, "scatter_parameters"));
    ZG_RETURN_IF_ERROR(trainer.resume(directory));  // of the same step
    ZG_RETURN_IF_ERROR(fresh(run, "resume"));
    ZG_RETURN_IF_ERROR(trainer.freeze("blocks.0.**"));  // a new arena
    ZG_RETURN_IF_ERROR(fresh(run, "freeze"));
    ZG_RETURN_IF_ERROR(trainer.unfreeze("blocks.0.**"));
    return fresh(run, "unfreeze");
  });
}

// Tokens as sampled from logits of whole texts.
TEST(Generation, DrawsFromTheLogits) {
  std::vector<int64_t> first;
  for (const int ranks : {1, 2}) {
    OnRanks({.model = "gpt", .ranks = ranks, .stage = 2}, [&](RankRun& run) -> Status {
      GenerateOptions options;
      options.max_tokens = 30;
      options.sampler = {.temperature = 1.5, .top_k = 30, .top_p = 0.9, .seed = 7};
      ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> tokens, run.Generate(Text(12), options));
      ZG_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::create(options.sampler));
      std::vector<int64_t> text = Text(12);
      for (size_t i = 0; i < 30; ++i) {
        ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole(text));
        ZG_ASSIGN_OR_RETURN(const int64_t token, sampler.draw(whole[text.size() - 1], i));
        EXPECT_EQ(token, tokens.at(i));
        text.push_back(token);
      }
      options.stop = tokens[10];
      ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> stopped, run.Generate(Text(12), options));
      EXPECT_LE(stopped.size(), 11u);
      EXPECT_EQ(stopped.back(), tokens[10]);
      options.sampler.seed = 8;
      options.stop.reset();
      ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> others, run.Generate(Text(12), options));
      EXPECT_NE(others, tokens);
      return Status::Ok();
    });
  }
}

// If the context is full, generation continues from its last half.
TEST(Generation, Slides) {
  OnRanks({.model = "llama"}, [](RankRun& run) -> Status {
    GenerateOptions options;
    options.max_tokens = 2 * kContext;
    options.slide = true;
    options.sampler.temperature = 0.0;
    const std::vector<int64_t> prompt = Text(kContext - 5);
    ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> tokens, run.Generate(prompt, options));
    EXPECT_EQ(tokens.size(), static_cast<size_t>(2 * kContext));
    std::vector<int64_t> text = prompt;
    text.insert(text.end(), tokens.begin(), tokens.begin() + 6);  // one more than the context
    ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole({text.end() - kContext / 2, text.end()}));
    const std::vector<float>& last = whole[kContext / 2 - 1];
    EXPECT_EQ(tokens[6], std::max_element(last.begin(), last.end()) - last.begin());
    return Status::Ok();
  });
}

TEST(Generation, SaysWhatIsWrong) {
  OnRanks({.model = "llama"}, [](RankRun& run) -> Status {
    const auto message = [&](const std::vector<int64_t>& prompt, const GenerateOptions& options) {
      const StatusOr<std::vector<int64_t>> tokens = run.Generate(prompt, options);
      return tokens.ok() ? "no error" : tokens.status().message();
    };
    EXPECT_EQ(message({}, {}),
              "generator 'generate': got a text without tokens, expected at least one; begin with "
              "the token that stands for the beginning of a text, or with a line break");
    EXPECT_EQ(
        message(Text(81), {}),
        "generator 'generate': got a text of 81 tokens, expected at most 80, the context; give "
        "its last ones");
    EXPECT_EQ(message({3, 50}, {}),
              "generator 'generate': token 1 of the text is 50, expected 0 to 49, the vocabulary");
    EXPECT_EQ(message({-1}, {}),
              "generator 'generate': token 0 of the text is -1, expected 0 to 49, the vocabulary");
    EXPECT_EQ(message({1}, {.max_tokens = -1}),
              "generator 'generate': max_tokens is -1, expected at least 0");
    EXPECT_EQ(message({1}, {.stop = 50}),
              "generator 'generate': the token to stop at is 50, expected 0 to 49, the vocabulary");
    EXPECT_EQ(
        message(Text(70), {.max_tokens = 12}),
        "generator 'generate': got a prompt of 70 tokens and max_tokens 12, which outgrow the "
        "context of 80; give max_tokens <= 11, or slide to go on from the last half of the "
        "context");
    EXPECT_EQ(message(Text(70), {.max_tokens = 11}), "no error");
    EXPECT_EQ(message({1}, {.sampler = {.temperature = -1.0}}),
              "sampler: temperature is -1, expected a number >= 0; 0 always takes the likeliest "
              "token");
    EXPECT_EQ(message({1}, {.sampler = {.top_p = 1.5}}),
              "sampler: top_p is 1.5, expected 0 < top_p <= 1; 1 takes all tokens");
    const std::vector<int64_t> token = {1}, start = {kContext};
    const Status behind =
        run.trainer().eval("generate.decode", {{"tokens", token}, {"start", start}});
    EXPECT_NE(behind.message().find("write_rows: 1 rows from 80 on, the cache has rows 0 to 79"),
              std::string::npos)
        << behind.message();
    return Status::Ok();
  });
}

// The graph's error about a model that cannot be decoded.
std::string GraphError(const GeneratorOptions& options, const std::function<Var(Var)>& model) {
  RegisterAllOps();
  Graph graph("test");
  const Generator generator(graph, options, model);
  return graph.status().message();
}

TEST(Generation, RefusesModelsThatCannotBeDecoded) {
  nn::Embedding table(nullptr, "table", 50, 8);
  nn::LSTM both(nullptr, "both", 8, 8, nn::RecurrentOptions{1, 0.0, /*bidirectional=*/true});
  const auto with_mask = [&](Var tokens) {
    const Var x = table(tokens);
    AttentionOptions options;
    options.causal = true;
    options.mask = tokens;
    return attention(x, x, x, options);
  };
  const std::string prefix = "graph test, eval 'generate.prefill': ";
  EXPECT_EQ(GraphError({.context = 8}, [&](Var tokens) { return table(tokens); }),
            prefix +
                "generator 'generate': the model has neither causal attention nor a recurrence, "
                "through which it would see the text so far; expected functions or modules that "
                "call zg::attention, or others of framework/nn/decoding.h");
  EXPECT_EQ(
      GraphError({.context = 8},
                 [&](Var tokens) {
                   const Var x = table(tokens);
                   return select(attention(x, x, x, {.causal = true}), 1, 0);
                 }),
      prefix +
          "generator 'generate': the model returns [1,8] of tokens [1,8], expected logits (1, "
          "8, vocabulary)");
  EXPECT_EQ(GraphError({.context = 0}, [&](Var tokens) { return table(tokens); }),
            prefix + "generator 'generate': context is 0 and chunk 64, expected at least 1 each");
  EXPECT_EQ(GraphError({.context = 8}, [&](Var tokens) { return both(table(tokens)); }),
            prefix +
                "both: while decoding, got a layer in both directions, expected sequences of one "
                "length in one direction");
  EXPECT_EQ(
      GraphError({.context = 8}, with_mask),
      prefix +
          "attention: while decoding, got causal attention of 8 queries to 8 keys with a mask, "
          "expected that of tokens to themselves, without a mask");
  EXPECT_EQ(
      GraphError({.context = 16, .chunk = 8},
                 [&](Var tokens) {
                   const Var x = table(tokens);
                   return attention(x, x, x, {.causal = true, .bias = zeros({1, 1, 8, 8})});
                 }),
      prefix +
          "attention: while decoding, got the bias [1,1,8,8], expected (1 or B, 1 or heads, 8, "
          "16), with the keys of the whole context; make it from relative_positions");
}

TEST(Generation, KeepsOnlyStatesThatAreRead) {
  RegisterAllOps();
  const auto error = [](const std::function<void(nn::Decoding&, Var)>& body) {
    Graph graph("test");
    graph.eval("run", [&](Inputs& in) {
      const Var x = in.f32("x", {2, 3});
      nn::Decoding decoding("texts", in.i64("start", {2}), 8);
      body(decoding, x);
      return x;
    });
    return graph.status().message();
  };
  EXPECT_EQ(
      error([](nn::Decoding& decoding, Var x) { decoding.Keep(x, "h"); }),
      "graph test, eval 'run': Decoding 'texts': got [2,3] to keep as h, expected (B, shape), "
      "after State");
  EXPECT_EQ(error([](nn::Decoding& decoding, Var x) {
              decoding.State(x, {3}, "h");
              decoding.Keep(sum(x), "h");
            }),
            "graph test, eval 'run': Decoding 'texts': got [] to keep as h, expected (B, shape), "
            "after State");
  EXPECT_EQ(error([](nn::Decoding& decoding, Var x) {
              decoding.Keep(decoding.State(x, {3}, "h") + x, "h");
            }),
            "");
}

TEST(Generation, IsForEvalPrograms) {
  RegisterAllOps();
  nn::Embedding table(nullptr, "table", 50, 8);
  Graph graph("test");
  graph.train(optim::Sgd{0.1}, [&](Inputs& in) {
    const Var tokens = in.i64("x", {2, 8});
    const nn::Decoding decoding("now", in.i64("start", {2}), 8);
    const Var x = table(tokens);
    return sum(attention(x, x, x, {.causal = true}));
  });
  EXPECT_EQ(graph.status().message(),
            "graph test, train: Decoding 'now': got the training function, expected one of "
            "Graph::eval");
}

}  // namespace
}  // namespace zg
