// Several texts at once, and beam search: tokens are those that logits of whole texts give.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/train/beam_search.h"
#include "tests/testing/as_planned.h"
#include "tests/zero/generation_run.h"

namespace zg {
namespace {

// More prompts than rows, so that texts begin while others go on.
std::vector<std::vector<int64_t>> Prompts() {
  std::vector<std::vector<int64_t>> prompts;
  for (const int64_t size : {3, 31, 1, 17, 9}) prompts.push_back(Text(size, size));
  return prompts;
}

GenerateOptions Sampled(int64_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.sampler = {.temperature = 1.2, .top_k = 20, .seed = 5};
  options.stop = 8;
  return options;
}

// Draws from the logits of whole texts.
StatusOr<std::vector<int64_t>> Drawn(RankRun& run, std::vector<int64_t> text, uint64_t index,
                                     const GenerateOptions& options) {
  ZG_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::create(options.sampler));
  std::vector<int64_t> tokens;
  while (static_cast<int64_t>(tokens.size()) < options.max_tokens) {
    ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole(text));
    const uint64_t number = (index << 32) + tokens.size();
    ZG_ASSIGN_OR_RETURN(const int64_t token, sampler.draw(whole[text.size() - 1], number));
    tokens.push_back(token);
    text.push_back(token);
    if (options.stop == token) break;
  }
  return tokens;
}

TEST(BatchedGeneration, DrawsFromTheLogitsOfWholeTexts) {
  for (const Config& config :
       {Config{.model = "gpt", .ranks = 2, .stage = 3, .texts = 3},
        Config{.model = "gpt", .ranks = 1, .dtype = DType::kBF16, .texts = 2, .beams = 2},
        Config{.model = "gpt", .chunk = 1, .texts = 2, .beams = 2},
        Config{.model = "llama", .chunk = 16, .texts = 8}, Config{.model = "mamba", .texts = 3},
        Config{.model = "hybrid", .ranks = 2, .stage = 2, .texts = 2},
        Config{.model = "distances", .texts = 3}}) {
    SCOPED_TRACE(fmt::format("{}, {} texts", config.model, config.texts));
    OnRanks(config, [&](RankRun& run) -> Status {
      const GenerateOptions options = Sampled(25);
      const std::vector<std::vector<int64_t>> prompts = Prompts();
      ZG_ASSIGN_OR_RETURN(const auto texts,
                          run.generator().generate_all(run.trainer(), prompts, options));
      EXPECT_EQ(texts.size(), prompts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        ZG_ASSIGN_OR_RETURN(const auto expected, Drawn(run, prompts[i], i, options));
        EXPECT_EQ(texts[i], expected) << "text " << i;
      }
      ZG_ASSIGN_OR_RETURN(const auto first, run.Generate(prompts[0], options));
      EXPECT_EQ(first, texts[0]);
      ZG_RETURN_IF_ERROR(ExpectLogitsOfWholeTexts(run));
      testing::ExpectMemoryAsPlanned(run.trainer().executor());
      return Status::Ok();
    });
  }
}

TEST(BatchedGeneration, TextsSlideOneByOne) {
  OnRanks({.model = "hybrid", .texts = 2}, [&](RankRun& run) -> Status {
    GenerateOptions options = Sampled(kContext);
    options.slide = true;
    options.stop.reset();
    const std::vector<std::vector<int64_t>> prompts = {Text(30), Text(50)};
    ZG_ASSIGN_OR_RETURN(const auto texts,
                        run.generator().generate_all(run.trainer(), prompts, options));
    // The first token of the second text after it has outgrown the context.
    const int64_t before = kContext - 50 + 1;
    std::vector<int64_t> text = prompts[1];
    text.insert(text.end(), texts[1].begin(), texts[1].begin() + before);
    ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole({text.end() - kContext / 2, text.end()}));
    ZG_ASSIGN_OR_RETURN(const Sampler sampler, Sampler::create(options.sampler));
    ZG_ASSIGN_OR_RETURN(const int64_t token,
                        sampler.draw(whole[kContext / 2 - 1], (uint64_t{1} << 32) + before));
    EXPECT_EQ(texts[1].at(before), token);
    EXPECT_EQ(texts[0].size(), kContext);
    return Status::Ok();
  });
}

TEST(BatchedGeneration, AdjustsLogits) {
  OnRanks({.texts = 2}, [&](RankRun& run) -> Status {
    GenerateOptions options = Sampled(20);
    options.adjust = [](const std::vector<int64_t>& text, std::vector<float>* logits) {
      for (int64_t token = 0; token < kVocabulary; ++token) {  // even and odd ones by turns
        if ((token + text.back()) % 2 == 1) continue;
        (*logits)[token] = -std::numeric_limits<float>::infinity();
      }
    };
    ZG_ASSIGN_OR_RETURN(const auto texts,
                        run.generator().generate_all(run.trainer(), {{4}, {7}}, options));
    for (const std::vector<int64_t>& text : texts) {
      for (size_t i = 1; i < text.size(); ++i) EXPECT_NE(text[i] % 2, text[i - 1] % 2);
    }
    return Status::Ok();
  });
}

// The same search with the logits of whole texts.
StatusOr<std::vector<Beam>> Searched(RankRun& run, const std::vector<int64_t>& prompt,
                                     int64_t num_beams, const BeamSearchOptions& options) {
  BeamSearch search(num_beams, options);
  std::vector<std::vector<int64_t>> beams = {prompt};
  while (!search.done()) {
    std::vector<float> logits;
    for (const std::vector<int64_t>& beam : beams) {
      ZG_ASSIGN_OR_RETURN(const auto whole, run.Whole(beam));
      const std::vector<float>& row = whole[beam.size() - 1];
      logits.insert(logits.end(), row.begin(), row.end());
    }
    ZG_RETURN_IF_ERROR(search.take(logits));
    std::vector<std::vector<int64_t>> next;
    for (size_t i = 0; i < search.tokens().size(); ++i) {
      next.push_back(beams[search.parents()[i]]);
      next.back().push_back(search.tokens()[i]);
    }
    beams = next;
  }
  return search.best();
}

void ExpectBeamsOfWholeTexts(const Config& config) {
  OnRanks(config, [&](RankRun& run) -> Status {
    int64_t ends = 0;
    BeamSearchOptions options;
    options.max_tokens = 20;
    for (const int64_t size : {1, 12, 12, 40}) {
      const std::vector<int64_t> prompt = Text(size, size);
      ZG_ASSIGN_OR_RETURN(const auto beams,
                          run.generator().beam_search(run.trainer(), prompt, options));
      ZG_ASSIGN_OR_RETURN(const auto expected, Searched(run, prompt, config.beams, options));
      EXPECT_EQ(beams.size(), expected.size());
      for (size_t i = 0; i < beams.size(); ++i) {
        EXPECT_EQ(beams[i].tokens, expected.at(i).tokens) << "beam " << i;
        EXPECT_EQ(beams[i].score, expected.at(i).score) << "beam " << i;
        ends += beams[i].tokens.back() == options.stop;
      }
      options.stop = beams.back().tokens[beams.back().tokens.size() / 3];
    }
    EXPECT_GT(ends, 0);
    return Status::Ok();
  });
}

TEST(BeamSearchOfModels, HasTheBeamsOfWholeTexts) {
  for (Config config : {Config{.model = "gpt", .ranks = 2, .stage = 3, .beams = 4},
                        Config{.model = "llama", .dtype = DType::kBF16, .texts = 5, .beams = 3},
                        Config{.model = "mamba", .beams = 3}, Config{.model = "lstm", .beams = 4},
                        Config{.model = "hybrid", .ranks = 2, .stage = 2, .beams = 2}}) {
    SCOPED_TRACE(config.model);
    ExpectBeamsOfWholeTexts(config);
  }
  Config along_tensor = {.model = "gpt", .ranks = 2, .beams = 3};
  along_tensor.mesh = {{"data", 1}, {"tensor", 2}};
  ExpectBeamsOfWholeTexts(along_tensor);
}

TEST(BatchedGeneration, SaysWhatIsWrong) {
  OnRanks({.texts = 2}, [](RankRun& run) -> Status {
    GenerateOptions options = Sampled(10);
    const std::vector<float> memory(4);
    options.inputs = {{"memory", memory}};
    const auto message = [&](const std::vector<std::vector<int64_t>>& prompts) {
      return run.generator().generate_all(run.trainer(), prompts, options).status().message();
    };
    EXPECT_EQ(message({{1}, {2}, {3}}),
              "generator 'generate': got inputs and 3 prompts, expected at most 2, which are "
              "computed at once");
    EXPECT_EQ(run.generator().beam_search(run.trainer(), {1}).status().message(),
              "generator 'generate': its programs keep no beams; set GeneratorOptions::beams");
    ZG_ASSIGN_OR_RETURN(const auto none, run.generator().generate_all(run.trainer(), {}));
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(message({{1}, {2, 50}}),
              "prompt 1: generator 'generate': token 1 of the text is 50, expected 0 to 49, the "
              "vocabulary");
    return Status::Ok();
  });
  OnRanks({.beams = 2}, [](RankRun& run) -> Status {
    const Status room =
        run.generator().beam_search(run.trainer(), Text(70), {.max_tokens = 12}).status();
    EXPECT_EQ(
        room.message(),
        "generator 'generate': got a prompt of 70 tokens and max_tokens 12, which outgrow the "
        "context of 80; give max_tokens <= 11");
    const Status penalty =
        run.generator().beam_search(run.trainer(), {1}, {.length_penalty = NAN}).status();
    EXPECT_EQ(penalty.message(),
              "generator 'generate': length_penalty is nan, expected a finite number");
    const std::vector<int64_t> tokens = {1, 2}, start = {3, 4}, parents = {0, 2};
    const Status parent = run.trainer().eval(
        "generate.decode", {{"tokens", tokens}, {"start", start}, {"parents", parents}});
    EXPECT_NE(parent.message().find("move_texts: a text goes on from text 2, expected 0 to 1"),
              std::string::npos)
        << parent.message();
    return Status::Ok();
  });
  nn::Embedding table(nullptr, "table", 50, 8);
  Graph graph("test");
  const Generator generator(graph, {.context = 8, .texts = 0},
                            [&](Var tokens) { return table(tokens); });
  EXPECT_EQ(graph.status().message(),
            "graph test, eval 'generate.prefill': generator 'generate': texts is 0 and beams 0, "
            "expected at least 1 and 0");
}

}  // namespace
}  // namespace zg
