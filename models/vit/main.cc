// Trains a ViT on Fashion-MNIST: 28x28 images of 10 kinds of clothes, from Debian's package
// dataset-fashion-mnist, which tools/setup.sh installs; prints its accuracy on the test images.
//   bazel run -c opt //models/vit -- --ranks 2 --zero 2

#include <fmt/format.h>

#include <string>

#include "framework/data/data_loader.h"
#include "framework/io/idx_file.h"
#include "models/images/image_accuracy.h"
#include "models/images/image_batches.h"
#include "models/images/image_data.h"
#include "models/vit/model.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

struct Flags {
  std::string data = kFashionMnistDirectory;
  int64_t layers = 6;
  int64_t channels = 128;
  double dropout = 0.1;
  double lr = 1e-3;
  double weight_decay = 0.05;
};

Status Run(Job& job, const Flags& flags) {
  ZG_ASSIGN_OR_RETURN(const LabelledImages images,
                      models::ReadImages(FashionMnistPart::kTrain, flags.data));
  ZG_ASSIGN_OR_RETURN(const LabelledImages tests,
                      models::ReadImages(FashionMnistPart::kTest, flags.data));
  ZG_ASSIGN_OR_RETURN(const SampleOrder order,
                      models::TrainingOrder(job, images, /*drops_partial_step=*/false));
  const uint64_t seed = job.options().seed;
  const models::ImageBatches batches(images, seed, /*augments=*/false);
  const models::ImageBatches test_batches(tests, seed, /*augments=*/false);

  models::VitConfig config;
  config.layers = flags.layers;
  config.channels = flags.channels;
  config.hidden = 4 * flags.channels;
  config.dropout = flags.dropout;
  models::Vit model(config);
  Graph graph("vit");
  const int64_t batch = job.options().batch;
  const Shape shape = {batch, 1, batches.height(), batches.width()};
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

  DataLoader<models::ImageBatch> loader(
      order, job.data_rank(), trainer.micro_batches_per_rank(),
      [&](const MicroBatch& from, models::ImageBatch* to) {
        batches.Fill(from, batch, to);  // the last step of an epoch may be partly filled
        return Status::Ok();
      },
      /*depth=*/2, /*distance=*/job.num_data_ranks());
  while (training.next()) {
    training.step([&](int64_t micro_batch) -> Status {
      ZG_ASSIGN_OR_RETURN(const models::ImageBatch* const rows,
                          loader.load(training.step_number() - 1, micro_batch));
      return trainer.feed({{"x", rows->x}, {"y", rows->y}, {"weights", rows->weights}});
    });
  }
  if (training.report().was_ended_by_signal) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const double accuracy, models::Accuracy(job, trainer, tests, test_batches));
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
  parser.add_int("layers", &flags.layers, between(1, 10000), "transformer blocks");
  parser.add_int("embd", &flags.channels, between(4, 1 << 20), "channels, a multiple of 4");
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
