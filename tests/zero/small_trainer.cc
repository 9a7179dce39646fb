#include "tests/zero/small_trainer.h"

#include <gtest/gtest.h>

#include <memory>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "models/classifier/model.h"

namespace zg::testing {

Status SmallStep(Trainer& trainer) {
  std::vector<float> x(4 * 12);
  const std::vector<int64_t> y = {0, 1, 2, 1};
  return trainer
      .step([&](int64_t micro_batch) {
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>((i + 3 * micro_batch) % 7) - 3.0f;
        }
        return trainer.feed({{"x", x}, {"y", y}});
      })
      .status();
}

Status StepUntilSaved(Trainer& trainer) {
  bool is_saved = false;
  while (!is_saved) {
    ZG_RETURN_IF_ERROR(SmallStep(trainer));
    ZG_ASSIGN_OR_RETURN(is_saved, trainer.continue_saving());
  }
  return Status::Ok();
}

std::vector<Status> OnSmallTrainers(const SmallTrainerConfig& config,
                                    const std::function<Status(Trainer&)>& body) {
  RegisterAllOps();
  std::vector<Status> statuses(config.ranks);
  const Status together = RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    models::Classifier model({12, config.hidden, 3});
    Graph graph("small");
    graph.train(optim::Sgd{.lr = config.lr, .momentum = config.has_momentum ? 0.9 : 0.0},
                [&](Inputs& in) {
                  return cross_entropy(model(in.f32("x", {4, 12})), in.i64("y", {4}));
                });
    graph.config().enable_zero({.stage = config.stage});
    graph.config().micro_batches = config.micro_batches;
    graph.config().dtype = config.dtype;
    TrainerOptions options;
    options.seed = config.seed;
    options.arithmetic = config.arithmetic;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        make_trainer(graph, communicator, options));
    statuses[communicator.rank()] = body(*trainer);
    return Status::Ok();
  });
  EXPECT_TRUE(together.ok()) << together.message();
  return statuses;
}

Status OnSmallTrainer(const SmallTrainerConfig& config,
                      const std::function<Status(Trainer&)>& body) {
  return OnSmallTrainers(config, body)[0];
}

void SaveSteps(const SmallTrainerConfig& config, const std::string& directory, int steps) {
  for (const Status& status : OnSmallTrainers(config, [&](Trainer& trainer) -> Status {
         for (int i = 0; i < steps; ++i) {
           ZG_RETURN_IF_ERROR(SmallStep(trainer));
           SaveOptions options;
           options.max_shard_bytes = 300;
           ZG_RETURN_IF_ERROR(trainer.save(directory, options));
         }
         return Status::Ok();
       })) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace zg::testing
