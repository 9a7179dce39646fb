#include <fmt/format.h>

#include <algorithm>

#include "tests/testing/random_choice.h"
#include "tests/testing/random_graph.h"

namespace zg::testing {

std::vector<std::string> MakeRandomRules(const ir::Graph& model, int ranks, unsigned seed) {
  Random random(seed ^ 0x9e3779b9);
  std::vector<std::string> rules;
  for (const ir::StoredTensor& tensor : model.tensors()) {
    if (!ir::HasRole(*tensor.storage, Role::kParameter) || random.Percent(50)) continue;
    const Shape& shape = tensor.type.shape;
    std::vector<int> dims;
    for (int dim = 0; dim < shape.num_dims(); ++dim) {
      if (shape.dim(dim) % ranks == 0) dims.push_back(dim);
    }
    if (!dims.empty()) {
      rules.push_back(fmt::format("{} tensor=S({})", tensor.name, random.Pick(dims)));
    }
  }
  return rules;
}

// Some of them have no gradient.
std::vector<std::string> TrainableOf(const ir::Graph& model) {
  std::vector<std::string> names;
  for (const ir::StoredTensor& tensor : model.tensors()) {
    if (ir::IsTrainableParameter(*tensor.storage)) names.push_back(tensor.name);
  }
  return names;
}

std::vector<std::string> MakeRandomPipeline(const RandomModelOptions& options) {
  Random random(options.seed ^ 0x5bd1e995);
  const ir::Graph model = MakeRandomModel(options);
  const bool shares_micro_batches = options.tensor_ranks > 1;
  std::vector<std::string> rules;
  if (shares_micro_batches) rules = MakeRandomRules(model, options.tensor_ranks, options.seed);
  std::vector<std::string> passes;
  const bool is_f16 = random.Percent(20);
  const bool is_mixed = is_f16 || random.Percent(30);
  // Other optimizers amplify a gradient that is almost zero, and its terms are summed in another
  // order if a tensor is split.
  const std::string average = random.Percent(60) ? ", average_decay=0.5" : "";
  const std::string optimizer =
      shares_micro_batches ? R"(optimizer="sgd", momentum=0.9)" + average
                           : random.Pick<std::string>(
                                 {R"(optimizer="sgd", momentum=0.9, weight_decay=0.1)" + average,
                                  R"(optimizer="sgd")", R"(optimizer="adam", weight_decay=0.1)",
                                  R"(optimizer="adamw", weight_decay=0.1)" + average,
                                  R"(optimizer="lamb", weight_decay=0.1)",
                                  R"(optimizer="adafactor", weight_decay=0.1)",
                                  R"(optimizer="adafactor", weight_decay=0.1)"});
  const bool is_sgd = optimizer.find("sgd") != std::string::npos;
  const int most_stage = std::min(3, random.Below(6));  // mostly stages that do something
  const int stage_of_one = random.Percent(50) ? random.Below(4) : most_stage;
  const int stage = std::max(most_stage, stage_of_one);
  const bool one_micro_batch = model.micro_batches() == options.num_ranks;
  const bool updates_early = one_micro_batch && !is_f16;

  passes.push_back("average-eval-results");
  if (is_mixed) {
    passes.push_back(fmt::format("mixed-precision(dtype=\"{}\")", is_f16 ? "f16" : "bf16"));
  }
  passes.push_back("keep-caches");
  if (options.trains) {
    passes.push_back("build-backward");
    passes.push_back(fmt::format("match-phases(trained=\"{}\", dtype=\"{}\")",
                                 fmt::join(TrainableOf(model), ","), is_f16 ? "f16" : "bf16"));
  }
  passes.push_back("drop-gradient-marks");
  if (options.trains) {
    passes.push_back(fmt::format("accumulate-results(keep_finite={})", is_f16));
    if (is_f16) passes.push_back("scale-loss");
  }
  if (shares_micro_batches && random.Percent(50)) {
    passes.push_back(fmt::format("place-results(rules=\"blocks.{} -> tensor=S({})\")",
                                 random.Below(2), random.Below(3)));
  }
  if (options.trains) {
    passes.push_back(random.Percent(70) ? R"(recompute(modules="blocks.*"))"
                                        : R"(recompute(modules="blocks.0*"))");
    passes.push_back(fmt::format("append-update({}, lr=0.05)", optimizer));
  }
  if (is_mixed && options.trains) passes.push_back("master-weights");
  if (is_mixed && (!options.trains || random.Percent(50))) passes.push_back("round-weights");
  passes.push_back("eliminate-dead-nodes");
  passes.push_back(stage_of_one == most_stage
                       ? fmt::format("choose-stages(stages=\"{}\")", most_stage)
                       : fmt::format("choose-stages(stages=\"{},w{}={}\")", most_stage,
                                     1 + random.Below(3), stage_of_one));
  if (!rules.empty()) {
    passes.push_back(fmt::format("place-parameters(rules=\"{}\")", fmt::join(rules, "; ")));
  }
  if (options.trains) {
    passes.push_back(
        fmt::format("bucketing(bucket_bytes={}, shard_min_elements={}, partition=\"{}\")",
                    random.Pick<int>({64, 512, 4096}), random.Pick<int>({0, 0, 20}),
                    random.Pick<std::string>({"even", "even", "greedy", "balanced"})));
    passes.push_back("eval-weights");
  }
  passes.push_back(fmt::format("bucket-frozen(bucket_bytes={}, shard_min_elements={})",
                               random.Pick<int>({64, 4096}), random.Pick<int>({0, 20})));
  passes.push_back("infer-sbp");
  if (options.trains) {
    // Other optimizers amplify a sum that is almost zero.
    passes.push_back(is_sgd && random.Percent(30) ? R"(accumulate-gradients(reduce_every="step"))"
                                                  : "accumulate-gradients");
    if (stage >= 1) passes.push_back("shard-optimizer-state");
    if (stage >= 2) passes.push_back("shard-gradients");
  }
  if (stage >= 3) passes.push_back("shard-parameters");
  if (options.trains && (is_f16 || (!updates_early && random.Percent(60)))) {
    passes.push_back(fmt::format("clip-gradients(max_norm={}, skip_non_finite={})",
                                 random.Pick<std::string>({"0.01", "0.5", "1000.0"}),
                                 random.Percent(50)));
  }
  if (options.trains) {
    passes.push_back("tensor-norms");
    passes.push_back("sum-factors");
  }
  passes.push_back("insert-collectives");
  passes.push_back("fuse-gelu");
  passes.push_back("fuse-additions");
  if (options.trains) passes.push_back("fuse-loss-gradient");
  passes.push_back("fuse-elementwise");
  if (options.trains) passes.push_back("fuse-copies");
  if (options.trains && updates_early) passes.push_back("update-early");
  passes.push_back("schedule");
  passes.push_back(fmt::format("overlap-communication(max_bytes={})",
                               random.Pick<int64_t>({400, 3000, int64_t{1} << 40})));
  return passes;
}

}  // namespace zg::testing
