// OpTraits: what passes and the runtime need to know about an op besides its definition. They ask
// for a trait; names of ops are not compared outside framework/ops and framework/kernels.
#pragma once

#include <vector>

namespace zg::ir {

// The role of an op in a graph.
enum class OpKind {
  kCompute,            // computes its outputs from its inputs
  kVariable,           // source: storage that outlives a step
  kInput,              // source: data that the user feeds
  kConstant,           // source: a number known at compile time
  kView,               // names a part of its input's memory; has no kernel
  kPack,               // lays its inputs side by side in one flat bucket
  kCast,               // the same values in another dtype
  kAccumulate,         // adds to the value of a variable
  kPlace,              // requests a placement; boxing ops replace it before the graph runs
  kBoxing,             // changes the placement along one mesh axis, attribute `axis`
  kWait,               // waits until a started transfer is done (passes/overlap_communication.h)
  kUpdate,             // an optimizer's update: parameter, gradient, state... -> parameter,
                       // state...
  kOutput,             // sink: hands a value to the user
  kAssign,             // sink: a variable holds a value from here on
  kParameterGradient,  // sink: names the gradient of a parameter for append-update
  kNextValue,          // sink: names the value of a buffer after the step, for accumulate-results
};

struct OpTraits {
  OpKind kind = OpKind::kCompute;
  bool has_side_effect = false;  // kept even if nobody reads its outputs
  bool is_elementwise = false;   // an output element depends on the same element of the inputs only
  bool keeps_groups =
      false;               // a split S(dim) of its signatures may be one in groups, S(dim:g), too:
                           // it treats all rows and columns of a split dim alike, in any order
  bool is_random = false;  // draws by micro-batch: ranks of the data axis get different values
  bool is_loss = false;    // reduces input 0, of any floating-point dtype, to a f32 scalar
  bool stops_gradient = false;   // its results count as constants in backward
  bool computes_in_f32 = false;  // mixed precision gives it f32 operands (as PyTorch's autocast)
  bool promotes_types = false;   // and these if one of its operands is an f32 result or input
  bool keeps_dtype = false;      // and leaves f32 inputs of the program f32: it moves elements
  std::vector<int> f32_inputs = {};  // operands that are f32 beside 16-bit ones, such as statistics
  bool sinks_to_user = false;        // only holds memory: scheduled right before its first reader
  bool needs_whole_tensors = false;  // an update that needs more of a tensor than one element
  bool keeps_tensors_whole = false;  // and works on parts of a bucket that cut none of its tensors
  bool takes_addend = false;  // with attribute `adds`: its last input is added to its first output
  bool sums_rows = false;  // with attribute `sums`: its last output is its first, summed over rows
  int message_rounds = 0;  // exchanges of messages with every other rank of the axis

  bool is_source() const {
    return kind == OpKind::kVariable || kind == OpKind::kInput || kind == OpKind::kConstant;
  }
  bool is_sink() const {
    return kind == OpKind::kOutput || kind == OpKind::kAssign ||
           kind == OpKind::kParameterGradient || kind == OpKind::kNextValue;
  }
  // False if the node only names memory, or if the executor does the work itself.
  bool has_kernel() const {
    return kind != OpKind::kVariable && kind != OpKind::kInput && kind != OpKind::kView &&
           kind != OpKind::kWait && !is_sink();
  }
  // True if computing it again gives the same value and changes nothing else. A source has nothing
  // to compute from; an accumulator would be added to twice.
  bool may_repeat() const {
    return !has_side_effect && !is_source() && kind != OpKind::kAccumulate &&
           kind != OpKind::kUpdate;
  }
};

}  // namespace zg::ir
