// State of eval programs: rows that a program leaves in the arena for its next run, or for another
// program, such as the keys and values of a text that is generated token by token. Shapes: B texts,
// S new tokens of each, T rows of a cache, C channels; start (1) or (B): the position of the new
// tokens; parents (B): the text that each text goes on from, where it is another one.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/attention_rules.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

using attention_rules::kHeads;

const Sbp B = Sbp::B();
const Sbp kSplit = Sbp::S(0);

constexpr char kOnlyForEval[] = "caches are for eval programs";

bool IsStart(const TensorType& start, int64_t batch) {
  return start.dtype == DType::kI64 && (start.shape == Shape{1} || start.shape == Shape{batch});
}
constexpr char kNoStart[] = "start is neither i64 (1) nor (B)";

// Parents may be the last input, after start.
bool HasParents(const ir::OpCall& call) { return call.inputs.size() == 3; }
bool AreParents(const TensorType& parents, int64_t batch) {
  return parents.dtype == DType::kI64 && parents.shape == Shape{batch};
}
constexpr char kNoParents[] = "parents are not i64 (B)";

// The second input and the third, if there is one.
Status CheckStartAndParents(const ir::OpCall& call, const InputNames& names, int64_t batch) {
  if (!IsStart(call.inputs[1], batch)) return Rejected(call, names, kNoStart);
  if (!HasParents(call) || AreParents(call.inputs[2], batch)) return Status::Ok();
  return Rejected(call, names, kNoParents);
}

Sbp SplitOfStart(const TensorType& start) { return start.shape == Shape{1} ? B : kSplit; }

ir::OpDef Cache() {
  ir::OpDef op;
  op.name = "cache";
  op.traits.kind = ir::OpKind::kVariable;
  op.doc =
      "Storage that eval programs leave to their next run, with zeros at first; no checkpoint has "
      "it. `placement` says how it lies on every mesh axis named data; along others it lies as the "
      "rows that are written.";
  op.min_inputs = op.max_inputs = 0;
  op.attributes = {{"dtype", DType::kF32, true},
                   {"shape", Shape{}, true},
                   {"role", Role::kAccumulator},
                   {"placement", B}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    return Types{{call.attributes.DType("dtype"), call.attributes.Shape("shape")}};
  };
  op.not_differentiable = "a source has no inputs";
  return op;
}

ir::OpDef CachedRows() {
  const InputNames names = {"rows", "start", "parents"};
  ir::OpDef op;
  op.name = "cached_rows";
  op.doc =
      "The rows of the cache `name`, of `size` rows, of which the new ones are start[b], "
      "start[b] + 1, ...; the others are as earlier runs left them, for the text parents[b] if "
      "there are three inputs. keep-caches makes it write_rows; until then no run has left "
      "anything, and the others are 0.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"name", std::string(), true}, {"size", int64_t{1}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"rows"}));
    const Shape& rows = call.inputs[0].shape;
    const int64_t size = call.attributes.Int("size");
    if (rows.num_dims() != 3) return Rejected(call, names, "rows are not (B, S, C)");
    ZG_RETURN_IF_ERROR(CheckStartAndParents(call, names, rows.dim(0)));
    if (rows.dim(1) > size) {
      return Rejected(call, names, fmt::format("the cache has {} rows, which is less", size));
    }
    return Types{{call.inputs[0].dtype, {rows.dim(0), size, rows.dim(2)}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    if (HasParents(call)) return Signatures{{{kHeads, B, B}, {kHeads}}};
    return Signatures{{{kSplit, SplitOfStart(call.inputs[1])}, {kSplit}}, {{kHeads, B}, {kHeads}}};
  };
  op.not_differentiable = kOnlyForEval;
  return op;
}

ir::OpDef MoveTexts() {
  const InputNames names = {"cache", "parents", "start"};
  ir::OpDef op;
  op.name = "move_texts";
  op.traits.has_side_effect = true;
  op.doc =
      "cache[b, t] = cache[parents[b], t] for t < start[b], in place and for all texts at once; "
      "the other rows stay. A parent that is none of the texts ends the job.";
  op.min_inputs = op.max_inputs = 3;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"cache"}));
    const Shape& cache = call.inputs[0].shape;
    if (cache.num_dims() != 3) return Rejected(call, names, "the cache is not (B, T, C)");
    if (!AreParents(call.inputs[1], cache.dim(0))) return Rejected(call, names, kNoParents);
    if (!IsStart(call.inputs[2], cache.dim(0))) return Rejected(call, names, kNoStart);
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall&) { return Signatures{{{kHeads, B, B}, {kHeads}}}; };
  op.not_differentiable = kOnlyForEval;
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

ir::OpDef WriteRows() {
  const InputNames names = {"cache", "rows", "start"};
  ir::OpDef op;
  op.name = "write_rows";
  op.traits.has_side_effect = true;
  op.doc =
      "cache[b, start[b] + s] = rows[b, s], in place; the other rows stay. A row outside of the "
      "cache ends the job.";
  op.min_inputs = op.max_inputs = 3;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"cache", "rows"}));
    const Shape& cache = call.inputs[0].shape;
    const Shape& rows = call.inputs[1].shape;
    if (cache.num_dims() != 3 || rows.num_dims() != 3 || rows.dim(0) != cache.dim(0) ||
        rows.dim(1) > cache.dim(1) || rows.dim(2) != cache.dim(2)) {
      return Rejected(call, names, "cache and rows are not (B, T, C) and (B, S, C), S <= T");
    }
    if (!IsStart(call.inputs[2], cache.dim(0))) return Rejected(call, names, kNoStart);
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Signatures{{{kSplit, kSplit, SplitOfStart(call.inputs[2])}, {kSplit}},
                      {{kHeads, kHeads, B}, {kHeads}}};
  };
  op.not_differentiable = kOnlyForEval;
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

// The state of eval programs that has one row for each text, whatever the number of tokens.
constexpr char kOneRow[] = "rows are not (B, 1, C)";

ir::OpDef LeftRows() {
  const InputNames names = {"texts", "start", "parents"};
  ir::OpDef op;
  op.name = "left_rows";
  op.doc =
      "f32 (B, 1, channels), for the B of texts (B, ...): the rows that keep_rows of the same "
      "`name` has left in an earlier run, for the text parents[b] if there are three inputs, and 0 "
      "for a text with start 0. keep-caches makes it read_rows; until then no run has left "
      "anything, and they are 0.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"name", std::string(), true}, {"channels", int64_t{1}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const Shape& texts = call.inputs[0].shape;
    if (texts.num_dims() < 1) return Rejected(call, names, "texts have no dims");
    ZG_RETURN_IF_ERROR(CheckStartAndParents(call, names, texts.dim(0)));
    const int64_t channels = call.attributes.Int("channels");
    if (channels < 1) {
      return InvalidArgument("left_rows: channels is {}, expected at least 1", channels);
    }
    return Types{{DType::kF32, {texts.dim(0), 1, channels}}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    if (HasParents(call)) return Signatures{};
    return Signatures{{{kSplit, SplitOfStart(call.inputs[1])}, {kSplit}}};
  };
  op.not_differentiable = kOnlyForEval;
  return op;
}

ir::OpDef ReadRows() {
  const InputNames names = {"cache", "start"};
  ir::OpDef op;
  op.name = "read_rows";
  op.doc = "A copy of a cache of one row for each text, with 0 for a text with start 0.";
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"cache"}));
    const Shape& cache = call.inputs[0].shape;
    if (cache.num_dims() != 3 || cache.dim(1) != 1) return Rejected(call, names, kOneRow);
    if (!IsStart(call.inputs[1], cache.dim(0))) return Rejected(call, names, kNoStart);
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Signatures{{{kSplit, SplitOfStart(call.inputs[1])}, {kSplit}}};
  };
  op.not_differentiable = kOnlyForEval;
  return op;
}

ir::OpDef KeepRows() {
  const InputNames names = {"rows", "start"};
  ir::OpDef op;
  op.name = "keep_rows";
  op.traits.computes_in_f32 = true;
  op.doc =
      "Leaves rows to the left_rows of the same `name` in later runs, and returns them. start is "
      "0. keep-caches makes it write_rows.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"name", std::string(), true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"rows"}));
    const Shape& rows = call.inputs[0].shape;
    if (rows.num_dims() != 3 || rows.dim(1) != 1) return Rejected(call, names, kOneRow);
    if (!IsStart(call.inputs[1], rows.dim(0))) return Rejected(call, names, kNoStart);
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    return Signatures{{{kSplit, SplitOfStart(call.inputs[1])}, {kSplit}}};
  };
  op.not_differentiable = kOnlyForEval;
  return op;
}

ir::OpDef PositionIds() {
  const InputNames names = {"start"};
  ir::OpDef op;
  op.name = "position_ids";
  op.doc = "i64 (B, size): start[b], start[b] + 1, ...";
  op.attributes = {{"size", int64_t{1}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& start = call.inputs[0];
    const int64_t size = call.attributes.Int("size");
    if (start.dtype != DType::kI64 || start.shape.num_dims() != 1) {
      return Rejected(call, names, "start is not i64 (B)");
    }
    if (size < 1) return InvalidArgument("position_ids: size is {}, expected size >= 1", size);
    return Types{{DType::kI64, {start.shape.dim(0), size}}};
  };
  op.sbp_signatures = [](const ir::OpCall&) { return Signatures{{{kSplit}, {kSplit}}}; };
  op.not_differentiable = "whole numbers have no gradient";
  return op;
}

// Before the last input, which is start, may be a bias and then sinks.
int NumSinks(const ir::OpCall& call) { return call.attributes.Bool("has_sinks") ? 1 : 0; }
bool IsBiased(const ir::OpCall& call) {
  return static_cast<int>(call.inputs.size()) == 5 + NumSinks(call);
}

Status CheckHeads(const ir::OpCall& call, const InputNames& names) {
  const Shape& q = call.inputs[0].shape;
  const Shape& keys = call.inputs[1].shape;
  const int64_t heads = call.attributes.Int("heads");
  const int64_t key_heads = call.attributes.Int("key_heads");
  if (q.num_dims() != 3 || keys.num_dims() != 3 || keys != call.inputs[2].shape ||
      keys.dim(0) != q.dim(0) || keys.dim(1) < q.dim(1)) {
    return Rejected(call, names,
                    "q is not (B, S, H D), or keys and values are not alike (B, T, K D), T >= S");
  }
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0) {
    return InvalidArgument("{}: {} heads and {} key heads, expected a multiple of at least 1 each",
                           call.op->name, heads, key_heads);
  }
  if (q.dim(2) % heads != 0 || keys.dim(2) != q.dim(2) / heads * key_heads) {
    return Rejected(call, names,
                    fmt::format("the last dims do not divide into {} heads of q and {} of keys, of "
                                "one size",
                                heads, key_heads));
  }
  if (NumSinks(call) > 0 && call.inputs[call.inputs.size() - 2].shape != Shape{heads}) {
    return Rejected(call, names, "sinks are not (H), one for each head of q");
  }
  if (!IsBiased(call)) return Status::Ok();
  const Shape& bias = call.inputs[3].shape;
  const bool fits = bias.num_dims() == 4 && (bias.dim(0) == 1 || bias.dim(0) == q.dim(0)) &&
                    (bias.dim(1) == 1 || bias.dim(1) == heads) && bias.dim(2) == q.dim(1) &&
                    bias.dim(3) == keys.dim(1);
  if (!fits) return Rejected(call, names, "bias is not (1 or B, 1 or H, S, T)");
  return Status::Ok();
}

std::vector<ir::SbpSignature> CachedAttentionSignatures(const ir::OpCall& call) {
  std::vector<Sbp> texts(call.inputs.size(), kSplit), heads(call.inputs.size(), kHeads);
  texts.back() = SplitOfStart(call.inputs.back());
  heads.back() = B;
  if (NumSinks(call) > 0) {
    texts[texts.size() - 2] = B;
    heads[heads.size() - 2] = kSplit;
  }
  if (IsBiased(call)) {
    const Shape& bias = call.inputs[3].shape;
    if (bias.dim(0) == 1) texts[3] = B;
    heads[3] = bias.dim(1) == 1 ? B : attention_rules::kRowsOfHeads;
  }
  return {{texts, {kSplit}}, {heads, {kHeads}, call.attributes.Int("key_heads")}};
}

ir::OpDef CachedAttention() {
  ir::OpDef op;
  op.name = "cached_attention";
  op.doc =
      "dot_product_attention, causal, of queries that stand at start[b], start[b] + 1, ... to the "
      "rows of caches up to their own; rows behind the last query are not read. Before `start` may be "
      "a bias (1 or B, 1 or H, S, T), and behind it sinks.";
  op.min_inputs = 4;
  op.max_inputs = 6;
  op.attributes = {{"heads", int64_t{1}, true}, {"key_heads", int64_t{1}, true},
                   {"window", int64_t{0}},      {"scale", 0.0},
                   {"soft_cap", 0.0},           {"has_sinks", false}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    InputNames names = {"q", "keys", "values"};
    if (IsBiased(call)) names.push_back("bias");
    if (NumSinks(call) > 0) names.push_back("sinks");
    names.push_back("start");
    if (call.inputs.size() != names.size()) {
      return InvalidArgument("{}: got {} inputs, expected {}", call.op->name, call.inputs.size(),
                             fmt::join(names, ", "));
    }
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"q", "keys", "values", "bias", "sinks"}));
    ZG_RETURN_IF_ERROR(CheckHeads(call, names));
    if (!IsStart(call.inputs.back(), call.inputs[0].shape.dim(0))) {
      return Rejected(call, names, kNoStart);
    }
    if (const int64_t window = call.attributes.Int("window"); window < 0) {
      return InvalidArgument("{}: window is {}, expected at least 1, or 0 for none", call.op->name,
                             window);
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "scale"));
    ZG_RETURN_IF_ERROR(attention_rules::CheckSoftCap(call));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = CachedAttentionSignatures;
  op.localize = [](const ir::OpCall& logical, ir::OpCall* local) {
    attention_rules::SetOwnHeads("heads", logical, 0, local);
    attention_rules::SetOwnHeads("key_heads", logical, 1, local);
  };
  op.not_differentiable = kOnlyForEval;
  // Counts all rows of the caches, because only a run knows how many are filled.
  op.flops = [](const ir::OpCall& call) {
    const Shape& q = call.inputs[0].shape;
    const int64_t pairs = q.dim(1) * call.inputs[1].shape.dim(1);
    return q.dim(0) * pairs * (4 * q.dim(2) + 5 * call.attributes.Int("heads"));
  };
  return op;
}

}  // namespace

void RegisterCacheOps(ir::OpRegistry& registry) {
  registry.Register(Cache());
  registry.Register(CachedRows());
  registry.Register(MoveTexts());
  registry.Register(WriteRows());
  registry.Register(LeftRows());
  registry.Register(ReadRows());
  registry.Register(KeepRows());
  registry.Register(PositionIds());
  registry.Register(CachedAttention());
}

}  // namespace zg
