#include "tests/models/small_training.h"

#include <memory>

#include "tests/models/small_models.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

Status TrainOnRank(const std::string& name, const SmallTraining& training,
                   Communicator& communicator, SmallTrained* result) {
  const ReferenceData data(name);
  const SmallModel model = SmallModels().at(name)();
  const int64_t batch = kReferenceBatch / training.micro_batches;
  Graph graph(name);
  graph.train(optim::AdamW{.lr = 0.01}, [&](Inputs& in) {
    const Var y = model.result(in, batch);
    return model.loss(y, in, batch);
  });
  graph.config().zero.stage = training.stage;
  graph.config().zero.shard_min_elements = 0;
  graph.config().micro_batches = training.micro_batches;
  graph.config().dtype = training.dtype;
  graph.config().max_grad_norm = training.max_grad_norm;
  // A module without children has no path to name.
  const std::string first = model.module->named_parameters().front().name;
  if (training.recomputes && first.find('.') != first.npos) graph.config().recompute = {"*"};
  TrainerOptions options;
  options.threads = training.threads;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      make_trainer(graph, communicator, options));
  ZG_RETURN_IF_ERROR(trainer->load_parameters(ReferenceFolder(name) + "/model.safetensors"));
  for (size_t step = 0; step < kSmallSteps; ++step) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      return data.Feed(*trainer, "", static_cast<int64_t>(step), micro_batch,
                       training.micro_batches);
    }));
    result->losses.push_back(loss);
  }
  ExpectMemoryAsPlanned(trainer->executor());
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
  result->param_sha256 = parameters.sha256;
  result->optimizer_sha256 = state.sha256;
  const auto workspace = static_cast<int>(MemoryCategory::kWorkspace);
  result->workspace_bytes = trainer->executor().plan().category_bytes[workspace];
  return Status::Ok();
}

}  // namespace

SmallTrained TrainSmallModel(const std::string& name, const SmallTraining& training) {
  return ResultsOnRanks<SmallTrained>(training.ranks,
                                      [&](Communicator& communicator, SmallTrained* result) {
                                        return TrainOnRank(name, training, communicator, result);
                                      })[0];
}

std::vector<std::string> SmallModelNames() {
  std::vector<std::string> names;
  for (const auto& [name, make] : SmallModels()) names.push_back(name);
  return names;
}

}  // namespace zg::testing
