#include "framework/ops/register_all_ops.h"

#include <mutex>

#include "framework/ops/activation.h"
#include "framework/ops/attention.h"
#include "framework/ops/broadcast.h"
#include "framework/ops/cast.h"
#include "framework/ops/collectives.h"
#include "framework/ops/dropout.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/embedding.h"
#include "framework/ops/fused_elementwise.h"
#include "framework/ops/gradient_norm.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/linear.h"
#include "framework/ops/loss_scaling.h"
#include "framework/ops/losses.h"
#include "framework/ops/optimizer.h"
#include "framework/ops/structure.h"

namespace zg {

void RegisterComputeOps(ir::OpRegistry& registry) {
  RegisterActivationOps(registry);
  RegisterAttentionOps(registry);
  RegisterBroadcastOps(registry);
  RegisterCastOp(registry);
  RegisterDropoutOps(registry);
  RegisterElementwiseOps(registry);
  RegisterEmbeddingOps(registry);
  RegisterFusedElementwiseOp(registry);
  RegisterGradientNormOps(registry);
  RegisterLayerNormOps(registry);
  RegisterLinearOps(registry);
  RegisterLossOps(registry);
  RegisterLossScalingOps(registry);
  RegisterOptimizerOps(registry);
}

void RegisterAllOps() {
  static std::once_flag once;
  std::call_once(once, [] {
    ir::OpRegistry& registry = ir::OpRegistry::Global();
    RegisterStructureOps(registry);
    RegisterCollectiveOps(registry);
    RegisterComputeOps(registry);
  });
}

}  // namespace zg
