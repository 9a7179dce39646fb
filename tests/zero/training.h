// Trains small models on in-process ranks, for tests that compare runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"
#include "framework/optim/optimizer.h"
#include "framework/passes/compile_options.h"
#include "framework/passes/plan_memory.h"
#include "framework/passes/predict_traffic.h"
#include "framework/state/save_options.h"
#include "framework/tensor/dtype.h"
#include "tests/zero/axes_traffic.h"

namespace zg::testing {

// kPaddedGpt is kGpt with logits of more columns than tokens; kEvenGpt has a vocabulary that ranks
// can share. A GPT has 2 heads and a Llama 4 heads and 2 key heads, unless the name says otherwise;
// kEightHeadLlama has 4 key heads, kSixHeadLlama 3.
enum class TestModel {
  kMlp,
  kClassifier,
  kGpt,
  kPaddedGpt,
  kEvenGpt,
  kFourHeadGpt,
  kSixHeadGpt,
  kLlama,
  kSixHeadLlama,
  kEightHeadLlama,
};
bool IsLlama(TestModel model);

// A rank on a device, and its connection from its communicator on the host.
struct DeviceRank {
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
};
using ConnectDevice = std::function<StatusOr<DeviceRank>(Communicator& host)>;

struct RunConfig {
  TestModel model = TestModel::kMlp;
  int ranks = 1;
  std::vector<MeshAxis> mesh = {};            // of these ranks; empty: one axis "data"
  std::vector<PlacementRule> placement = {};  // along its axes other than data axes
  int stage = 0;
  std::vector<StageRule> stage_rules = {};  // another stage by name
  std::string secondary_axis = {};
  int64_t micro_batches = 1;
  int steps = 3;
  int64_t bucket_bytes = 4096;  // several buckets even for small models
  int64_t shard_min_elements = 0;
  Partition partition = Partition::kEven;
  DType dtype = DType::kF32;
  std::string f32_modules = {};                    // patterns of modules
  std::optional<optim::Optimizer> optimizer = {};  // none: the model's own
  std::vector<optim::ParameterGroup> groups = {};
  ReduceEvery reduce_every = ReduceEvery::kMicroBatch;
  std::string recompute = {};  // patterns of modules
  double max_grad_norm = 0;    // 0: gradients are not clipped
  bool update_early = false;
  int64_t overlap_bytes = 0;
  std::string resume = {};  // a checkpoint to resume from
  std::string save = {};    // a directory for a checkpoint after the last step
  SaveOptions save_options = {};
  ConnectDevice connect_device = nullptr;   // null: the host
  const KernelRegistry* kernels = nullptr;  // as in TrainerOptions; likewise the next two
  bool record = false;
  bool tf32 = false;
  std::string gemm_choices = {};  // a file, for `kernels`; only rank 0 can read it
};

// The final state of a run on one rank; digests and the sum only on rank 0.
struct RunResult {
  std::vector<float> losses;      // of the steps after a resumed checkpoint's
  std::vector<float> grad_norms;  // if gradients are clipped
  std::string param_sha256;
  std::string optimizer_sha256;
  std::string resumed_param_sha256;  // right after resuming, likewise the next one
  std::string resumed_optimizer_sha256;
  double param_sum = 0;
  float eval_loss = 0;
  CategoryBytes predicted = {};
  CategoryBytes measured = {};
  int64_t predicted_peak = 0;
  int64_t lower_bound = 0;  // of the peak: the most bytes alive at one moment
  int64_t measured_peak = 0;
  TrafficCounters measured_traffic = {};                      // of all steps, before the eval
  std::map<std::string, PredictedTraffic> predicted_traffic;  // of one step
  std::vector<AxesTraffic>
      traffic_by_axes;  // on a mesh of several axes, unless collectives overlap
  std::string ir;
  std::string arithmetic;
};

StatusOr<RunResult> Train(const RunConfig& config);                         // rank 0's
StatusOr<std::vector<RunResult>> TrainOnAllRanks(const RunConfig& config);  // by rank

}  // namespace zg::testing
