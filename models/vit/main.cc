// Trains a ViT on Fashion-MNIST: 28x28 images of 10 kinds of clothes, from Debian's package
// dataset-fashion-mnist, which tools/setup.sh installs; prints its accuracy on the test images.
//   bazel run -c opt //models/vit -- --ranks 2 --zero 2

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/data/data_loader.h"
#include "framework/io/idx_file.h"
#include "models/vit/model.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

constexpr int64_t kSize = 28;
constexpr int64_t kPixels = kSize * kSize;

struct Flags {
  std::string data = kFashionMnistDirectory;
  int64_t layers = 6;
  int64_t channels = 128;
  double dropout = 0.1;
  double lr = 1e-3;
  double weight_decay = 0.05;
};

struct Batch {
  std::vector<float> x;
  std::vector<int64_t> y;
  std::vector<float> weights;  // 0: an empty row
};

// Pixels of about mean 0 and variance 1.
void CopyImage(const LabelledImages& images, int64_t from, int64_t to, Batch* batch) {
  const uint8_t* const pixels = images.pixels.data() + from * kPixels;
  for (int64_t i = 0; i < kPixels; ++i) {
    batch->x[to * kPixels + i] = (static_cast<float>(pixels[i]) / 255.0f - 0.286f) / 0.353f;
  }
  batch->y[to] = images.labels[from];
}

// The share of the test images that are recognised. Ranks take batches in turn.
StatusOr<double> Accuracy(Job& job, Trainer& trainer, const LabelledImages& images) {
  const int64_t batch = job.options().batch;
  Batch rows = {std::vector<float>(batch * kPixels), std::vector<int64_t>(batch), {}};
  int64_t hits = 0;
  for (int64_t begin = 0; begin < images.count; begin += batch * job.num_data_ranks()) {
    const int64_t own = begin + job.data_rank() * batch;
    for (int64_t row = 0; row < batch; ++row) {
      CopyImage(images, std::min(own + row, images.count - 1), row, &rows);
    }
    ZG_RETURN_IF_ERROR(trainer.eval("predict", {{"x", rows.x}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> logits, trainer.result("predict"));
    for (int64_t row = 0; job.is_main() && row < batch * job.num_data_ranks(); ++row) {
      if (begin + row >= images.count) break;
      const float* const first = logits.data() + row * 10;
      const int64_t best = std::max_element(first, first + 10) - first;
      hits += best == images.labels[begin + row] ? 1 : 0;
    }
  }
  return static_cast<double>(hits) / static_cast<double>(images.count);
}

Status Run(Job& job, const Flags& flags) {
  ZG_ASSIGN_OR_RETURN(const LabelledImages images,
                      ReadFashionMnist(FashionMnistPart::kTrain, flags.data));
  ZG_ASSIGN_OR_RETURN(const LabelledImages tests,
                      ReadFashionMnist(FashionMnistPart::kTest, flags.data));
  models::VitConfig config;
  config.layers = flags.layers;
  config.channels = flags.channels;
  config.hidden = 4 * flags.channels;
  config.dropout = flags.dropout;
  models::Vit model(config);
  Graph graph("vit");
  const int64_t batch = job.options().batch;
  const Shape shape = {batch, 1, kSize, kSize};
  graph.train(optim::AdamW{.lr = flags.lr, .weight_decay = flags.weight_decay}, [&](Inputs& in) {
    const Var rows = cross_entropy(model(in.f32("x", shape)), in.i64("y", {batch}),
                                   {.reduction = Reduction::kNone});
    return weighted_mean(rows, in.f32("weights", {batch}));
  });
  graph.eval("predict", [&](Inputs& in) { return model(in.f32("x", shape)); });

  TrainOptions options;
  options.description = fmt::format("vit: {} layers, {} heads, {} channels, {} patches",
                                    config.layers, config.heads, config.channels, config.patches());
  options.samples_per_micro_batch = batch;
  Training training = train(job, graph, options);
  Trainer& trainer = training.trainer();

  SampleOrderOptions order;
  order.num_samples = images.count;
  order.batch = batch;
  order.micro_batches = job.options().compile.micro_batches;
  order.seed = job.options().seed;
  ZG_ASSIGN_OR_RETURN(const SampleOrder samples, SampleOrder::Create(order));
  // With one for each rank, this rank's is made ahead; else all are, of which it takes its own.
  const bool has_one = order.micro_batches == job.num_data_ranks();
  const int64_t first = has_one ? job.data_rank() : 0;
  const int64_t per_rank = has_one ? 1 : order.micro_batches;
  DataLoader<Batch> loader(samples, first, per_rank, [&](const MicroBatch& from, Batch* to) {
    to->x.assign(batch * kPixels, 0.0f);
    to->y.assign(batch, 0);
    to->weights = from.weights(batch);  // the last step of an epoch may be partly filled
    for (int64_t row = 0; row < from.num_real(); ++row) {
      CopyImage(images, static_cast<int64_t>(from.samples[row]), row, to);
    }
    return Status::Ok();
  });
  while (training.next()) {
    training.step([&](int64_t micro_batch) -> Status {
      ZG_ASSIGN_OR_RETURN(const Batch* rows, loader.Load(training.step_number() - 1, micro_batch));
      return trainer.feed({{"x", rows->x}, {"y", rows->y}, {"weights", rows->weights}});
    });
  }
  if (training.report().was_ended_by_signal) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const double accuracy, Accuracy(job, trainer, tests));
  training.log("accuracy", accuracy);
  if (job.is_main()) {
    print_out(
        fmt::format("  accuracy    {:.2f} % of {} test images\n", 100.0 * accuracy, tests.count));
  }
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Trains a ViT on Fashion-MNIST.");
  parser.section("Model");
  parser.add_int("layers", &flags.layers, at_least(1), "transformer blocks");
  parser.add_int("embd", &flags.channels, at_least(4), "channels, a multiple of 4");
  parser.add_double("dropout", &flags.dropout, between(0, 0.99), "dropout probability");
  parser.section("Data");
  parser.add_string("data", &flags.data, "directory of the four files of Fashion-MNIST", "DIR");
  parser.section("Training");
  parser.add_double("lr", &flags.lr, at_least(0), "AdamW's learning rate, after warm-up");
  parser.add_double("weight-decay", &flags.weight_decay, at_least(0), "AdamW's weight decay");
  JobOptions defaults;
  defaults.steps = 4000;
  defaults.batch = 64;
  defaults.lr_schedule = "cosine";
  defaults.warmup_steps = 100;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return Run(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
