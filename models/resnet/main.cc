// Trains a ResNet on Fashion-MNIST (Debian's package dataset-fashion-mnist) and prints its accuracy on
// the test images at the end of each epoch.
//   bazel run -c opt //models/resnet -- --ranks 2 --zero 2
//   bazel run -c opt //models/resnet -- --preset resnet18

#include <fmt/format.h>

#include <string>

#include "framework/data/data_loader.h"
#include "framework/io/idx_file.h"
#include "models/images/image_accuracy.h"
#include "models/images/image_batches.h"
#include "models/images/image_data.h"
#include "models/resnet/model.h"
#include "zerograph/zerograph.h"

namespace zg {
namespace {

struct Flags {
  std::string preset = "small";
  std::string data = kFashionMnistDirectory;
  bool augment = true;
  int64_t frame = 0;
  double lr = 0.1;
  double weight_decay = 5e-4;
  int64_t train_images = 0;
  int64_t test_images = 0;
};

void AddFlags(FlagParser* parser, Flags* flags) {
  parser->section("Model");
  parser->add_choice("preset", &flags->preset, {"small", "resnet18"},
                     "small: stages of 16, 32 and 64 channels; resnet18: of 64 to 512");
  parser->section("Data");
  parser->add_string("data", &flags->data, "directory with the files of Fashion-MNIST", "DIR");
  parser->add_bool("augment", &flags->augment, "moves and mirrors images of the training part");
  parser->add_int("frame", &flags->frame, between(0, 98),
                  "black pixels added at each edge; 2: images of 32 x 32");
  parser->add_int("train-images", &flags->train_images, at_least(0),
                  "first images of the training part; 0: all");
  parser->add_int("test-images", &flags->test_images, at_least(0),
                  "first images of the test part; 0: all");
  parser->section("Training");
  parser->add_double("lr", &flags->lr, at_least(0), "SGD's learning rate, with momentum 0.9");
  parser->add_double("weight-decay", &flags->weight_decay, at_least(0), "SGD's weight decay");
}

Status TrainAndTest(Job& job, const Flags& flags) {
  ZG_ASSIGN_OR_RETURN(const LabelledImages images,
                      models::ReadImages(FashionMnistPart::kTrain, flags.data, flags.train_images));
  ZG_ASSIGN_OR_RETURN(const LabelledImages test_images,
                      models::ReadImages(FashionMnistPart::kTest, flags.data, flags.test_images));
  ZG_ASSIGN_OR_RETURN(const SampleOrder order,
                      models::TrainingOrder(job, images, /*drops_partial_step=*/true));
  const models::ImageBatches batches(images, job.options().seed, flags.augment, flags.frame);
  const models::ImageBatches test_batches(test_images, job.options().seed, /*augments=*/false,
                                          flags.frame);

  models::ResNetConfig config =
      flags.preset == "small" ? models::SmallResNet() : models::ResNetConfig{};
  config.image_channels = 1;
  models::ResNet model(config);
  Graph graph("resnet");
  const int64_t batch = job.options().batch;
  const Shape shape = {batch, 1, batches.height(), batches.width()};
  optim::Sgd sgd;
  sgd.lr = flags.lr;
  sgd.momentum = 0.9;
  sgd.weight_decay = flags.weight_decay;
  graph.train(sgd, [&](Inputs& in) {
    return cross_entropy(model(in.f32("x", shape)), in.i64("y", {batch}));
  });
  graph.eval("predict", [&](Inputs& in) { return model(in.f32("x", shape)); });

  TrainOptions options;
  options.settings = {{"augment", fmt::to_string(flags.augment)},
                      {"frame", fmt::to_string(flags.frame)},
                      {"training images", fmt::to_string(images.count)}};
  options.samples_per_micro_batch = batch;
  Training training = train(job, graph, options);
  Trainer& trainer = training.trainer();

  DataLoader<models::ImageBatch> loader(
      order, job.data_rank(), trainer.micro_batches_per_rank(),
      [&](const MicroBatch& from, models::ImageBatch* to) {
        batches.Fill(from, batch, to);
        return Status::Ok();
      },
      /*depth=*/2, /*distance=*/job.num_data_ranks());

  const auto test = [&](int64_t epoch) -> Status {
    ZG_ASSIGN_OR_RETURN(const double accuracy,
                        models::Accuracy(job, trainer, test_images, test_batches));
    if (!job.is_main()) return Status::Ok();
    training.log("test_accuracy", accuracy);
    print_out(fmt::format("epoch {}: {:.2f} % of {} test images right\n", epoch, 100 * accuracy,
                          test_images.count));
    return Status::Ok();
  };
  while (training.next()) {
    const int64_t step = training.step_number() - 1;
    training.step([&](int64_t micro_batch) -> Status {
      ZG_ASSIGN_OR_RETURN(const models::ImageBatch* const loaded, loader.load(step, micro_batch));
      return trainer.feed({{"x", loaded->x}, {"y", loaded->y}});
    });
    const bool ends_epoch = (step + 1) % order.steps_per_epoch() == 0;
    if (ends_epoch || step + 1 == job.options().steps) {
      ZG_RETURN_IF_ERROR(test((step + order.steps_per_epoch()) / order.steps_per_epoch()));
    }
  }
  return Status::Ok();
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagParser parser("Trains a ResNet on Fashion-MNIST and tests it.");
  AddFlags(&parser, &flags);
  JobOptions defaults;
  defaults.steps = 1872;  // eight epochs on two ranks
  defaults.batch = 128;
  defaults.lr_schedule = "cosine";
  defaults.warmup_steps = 50;
  defaults.final_lr_factor = 0.01;
  Job job = Job::start(argc, argv, parser, defaults);
  job.run([&](Job& rank) { return TrainAndTest(rank, flags); });
  return 0;
}

}  // namespace
}  // namespace zg

int main(int argc, char** argv) { return zg::Main(argc, argv); }
