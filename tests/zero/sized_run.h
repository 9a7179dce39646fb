// A model of texts whose lengths differ, for tests of graphs with several sizes of their inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/fake_device.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {

inline constexpr int64_t kSamples = 2, kWords = 11, kChannels = 8, kLongest = 7;
inline const std::vector<int64_t> kSizes = {3, 5, kLongest};

// With a buffer, dropout, and a parameter of which short texts use a part.
struct Model : nn::Module {
  Model()
      : positions(this, "positions", {kLongest, kChannels}, Initializer::Normal(0.5)),
        embedding(this, "embedding", kWords, kChannels),
        norm(this, "norm", kChannels),
        attention(this, "attention", kChannels, /*heads=*/2, /*dropout=*/0.25),
        output(this, "output", kChannels, kWords) {}

  Var forward(Var words) override {
    const int64_t length = words.dim(1);
    const Var x = embedding(words) + slice(positions, 0, 0, length);
    nn::AttentionMasks masks;
    masks.causal = true;
    return output(attention(transpose(norm(transpose(x, 1, 2)), 1, 2), masks));
  }

  nn::Parameter positions;
  nn::Embedding embedding;
  nn::BatchNorm1d norm;
  nn::MultiheadAttention attention;
  nn::Linear output;
};

struct Config {
  int stage = 0;
  DType dtype = DType::kF32;
  int64_t micro_batches = 6;
  int64_t overlap_bytes = 0;
  bool update_early = false;
  bool on_device = false;
  bool record = false;
  int threads = 1;
  std::vector<int64_t> sizes = kSizes;  // one: a graph of one size
  bool profile = false;
};

// The model, its graph and its trainer.
class SizedRun {
 public:
  SizedRun(const Config& config, Communicator& communicator) : graph_("texts") {
    const auto build = [&](Inputs& in, int64_t length) -> Outputs {
      const Var words = in.i64("words", {kSamples, length}),
                next = in.i64("next", {kSamples, length});
      const Var logits = model_(words);
      return {{"loss", cross_entropy(logits, next)}, {"logits", logits}};
    };
    if (config.sizes.size() == 1) {
      graph_.train(optim::AdamW{0.02}, [&](Inputs& in) { return build(in, config.sizes[0]); });
    } else {
      graph_.train(optim::AdamW{0.02}, config.sizes, build);
    }
    graph_.eval("first", [&](Inputs& in) { return model_(in.i64("words", {kSamples, 2})); });
    CompileOptions& options = graph_.config();
    options.zero.stage = config.stage;
    options.zero.bucket_bytes = 512;
    options.zero.shard_min_elements = 0;
    options.dtype = config.dtype;
    options.micro_batches = config.micro_batches;
    options.overlap_bytes = config.overlap_bytes;
    options.update_early = config.update_early;
    TrainerOptions trainer_options;
    trainer_options.profile = config.profile;
    trainer_options.record = config.record;
    trainer_options.threads = config.threads;
    if (config.on_device) trainer_options.kernels = &FakeDeviceKernels();
    made_ = make_trainer(graph_, communicator, trainer_options);
  }

  Status status() const { return made_.status(); }
  Trainer& trainer() { return **made_; }

  // The step that is next; its size and data follow from its number.
  StatusOr<float> Step(const std::vector<std::string>& groups = {}) {
    const int64_t step = trainer().steps_done();
    if (trainer().size() != 0) ZG_RETURN_IF_ERROR(trainer().set_size(SizeOf(step)));
    const auto feed = [&](int64_t micro_batch) { return Feed(step, micro_batch); };
    return groups.empty() ? trainer().step(feed) : trainer().step_groups(groups, feed);
  }

  static int64_t SizeOf(int64_t step) { return kSizes[(2 + step * 5 / 3) % kSizes.size()]; }

  Status Feed(int64_t step, int64_t micro_batch) {
    words_.clear();
    next_.clear();
    for (int64_t i = 0; i < kSamples * SizeOf(step); ++i) {
      words_.push_back((step * 31 + micro_batch * 7 + i * 3) % kWords);
      next_.push_back((words_.back() * 5 + 1) % kWords);
    }
    return trainer().feed({{"words", words_}, {"next", next_}});
  }

 private:
  Model model_;
  Graph graph_;
  StatusOr<std::unique_ptr<Trainer>> made_ = NotFound("not made");
  std::vector<int64_t> words_, next_;
};

}  // namespace zg::testing
