// Names of ops that passes look for or choose among. Code that makes a specific node writes its
// name: builder.Op("cast", ...); code that asks for an op's role uses its traits (ir/op_traits.h).
#pragma once

namespace zg::op_names {

// Fused by fuse-gelu.
inline constexpr char kGelu[] = "gelu";
inline constexpr char kGeluGrad[] = "gelu_grad";
inline constexpr char kLinear[] = "linear";
inline constexpr char kLinearGelu[] = "linear_gelu";
inline constexpr char kLinearGradInput[] = "linear_grad_input";
inline constexpr char kLinearGradInputGelu[] = "linear_grad_input_gelu";

// What a rule's weights for evaluation are computed by.
inline constexpr char kFusedElementwise[] = "fused_elementwise";

// Fused by fuse-additions.
inline constexpr char kAdd[] = "add";
inline constexpr char kLinearGradBias[] = "linear_grad_bias";

// Fused by fuse-loss-gradient.
inline constexpr char kSoftmaxCrossEntropy[] = "softmax_cross_entropy";
inline constexpr char kSoftmaxCrossEntropyGrad[] = "softmax_cross_entropy_grad";
inline constexpr char kSoftmaxCrossEntropyWithGrad[] = "softmax_cross_entropy_with_grad";

// The changes of placement; the boxing table chooses one of them.
inline constexpr char kAllReduce[] = "all_reduce";
inline constexpr char kReduceScatter[] = "reduce_scatter";
inline constexpr char kAllGather[] = "all_gather";
inline constexpr char kAllToAll[] = "all_to_all";
inline constexpr char kLocalSlice[] = "local_slice";
inline constexpr char kLocalTerm[] = "local_term";

// Waits until a started change of placement is done.
inline constexpr char kWait[] = "wait";

// keep-caches gives it storage.
inline constexpr char kCachedRows[] = "cached_rows";
inline constexpr char kKeepRows[] = "keep_rows";
inline constexpr char kLeftRows[] = "left_rows";
inline constexpr char kMoveTexts[] = "move_texts";
inline constexpr char kReadRows[] = "read_rows";
inline constexpr char kWriteRows[] = "write_rows";

// Removed once backward is built.
inline constexpr char kCustomGradient[] = "custom_gradient";
inline constexpr char kStopGradient[] = "stop_gradient";

// eval-weights replaces it.
inline constexpr char kOtherWeights[] = "other_weights";

// Give updates the norm of the gradients, with and without a state.
inline constexpr char kUpdateControl[] = "update_control";
inline constexpr char kGuardedUpdateControl[] = "guarded_update_control";
inline constexpr char kScaledUpdateControl[] = "scaled_update_control";

// An update that uses norms of whole tensors, and the op that computes their squares.
inline constexpr char kNormedUpdate[] = "normed_update";
inline constexpr char kTensorSquareSums[] = "tensor_square_sums";

// Updates with 8-bit or with factored states, and the ops that compute the sums of factored ones.
inline constexpr char kAdam8Update[] = "adam8_update";
inline constexpr char kFactoredUpdate[] = "factored_update";
inline constexpr char kFactorSums[] = "factor_sums";
inline constexpr char kFactoredStepSums[] = "factored_step_sums";

}  // namespace zg::op_names
