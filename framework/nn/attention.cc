#include "framework/nn/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/nn/conditions.h"
#include "framework/nn/decoding.h"
#include "framework/nn/dims.h"
#include "framework/nn/extremes.h"
#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"
#include "framework/nn/trace.h"
#include "framework/ops/rotary_frequencies.h"

namespace zg {
namespace {

// Added to a score: its key's weight becomes 0. It is representable in f16, too.
constexpr double kUnseen = -6e4;

StatusOr<Var> WithKeyMask(Var q, Var k, Var v, AttentionOptions options) {
  if (options.mask.shape().num_dims() != 2) {
    return InvalidArgument(
        "attention: got the mask bool{}, expected bool (B, Tk), false where a key "
        "is hidden",
        options.mask.shape().ToString());
  }
  options.mask = to(options.mask, DType::kI64);
  return attention(q, k, v, options);
}

StatusOr<Var> WithSeenPairs(Var q, Var k, Var v, AttentionOptions options) {
  if (options.causal || options.window != 0 || !options.mask.empty()) {
    return InvalidArgument(
        "attention: got a bias of dtype bool beside causal, a window or a mask, expected it alone; "
        "let it be false where they hide a key");
  }
  const Var sees = options.bias;
  options.bias = (to(sees, q.dtype()) - 1.0) * -kUnseen;
  const Var y = attention(q, k, v, options);
  if (y.empty()) return y;
  // A query that sees no key would get the mean of all.
  const Var sees_none = !any(sees, {-1}, /*keep_dims=*/true);  // (1 or B, 1 or heads, Tq, 1)
  const Var heads = reshape(y, {y.dim(0), y.dim(1), options.heads, -1});
  return reshape(masked_fill(heads, transpose(sees_none, 1, 2), 0.0), y.shape().dims());
}

// Where causal attention continues from the tokens of earlier runs; else null.
nn::Decoding* DecodingOf(const AttentionOptions& options) {
  return options.causal ? nn::Decoding::Current() : nullptr;
}

// The shape of a bias that is the same for all queries or all keys, when it lists them; {} if it does.
Dims BiasDims(Var q, Var k, const AttentionOptions& options) {
  const Var& bias = options.bias;
  if (bias.empty() || bias.shape().num_dims() != 4 || q.shape().num_dims() != 3 ||
      k.shape().num_dims() != 3) {
    return {};
  }
  const nn::Decoding* const decoding = DecodingOf(options);
  Dims dims = bias.shape().dims();
  if (dims[2] == 1) dims[2] = q.dim(1);
  if (dims[3] == 1) dims[3] = decoding == nullptr ? k.dim(1) : decoding->context();
  return dims == bias.shape().dims() ? Dims() : dims;
}

// x (B, T, heads C) with `added` channels of zeros after those of each head.
Var PadHeads(Var x, int64_t heads, int64_t added) {
  if (added == 0) return x;
  return flatten(pad(unflatten(x, 2, {heads, -1}), 3, 0, added), 2);
}

// Whether the heads of values have another number of channels than those of queries and keys.
bool HasOtherValues(Var q, Var k, Var v, int64_t heads, int64_t key_heads) {
  const auto has_heads = [](Var x, int64_t count) {
    return !x.empty() && x.shape().num_dims() == 3 && count > 0 && x.dim(2) > 0 &&
           x.dim(2) % count == 0;
  };
  return has_heads(q, heads) && has_heads(k, key_heads) && has_heads(v, key_heads) &&
         q.dim(2) / heads == k.dim(2) / key_heads && v.dim(2) != k.dim(2);
}

// Zeros add nothing to a score, and of values they are channels of their own.
Var WithOtherValues(Var q, Var k, Var v, const AttentionOptions& options, int64_t key_heads) {
  const int64_t of_keys = k.dim(2) / key_heads, of_values = v.dim(2) / key_heads;
  const int64_t width = std::max(of_keys, of_values);
  AttentionOptions padded = options;
  if (options.scale == 0.0) padded.scale = 1.0 / std::sqrt(static_cast<double>(of_keys));
  const Var wide_q = PadHeads(q, options.heads, width - of_keys);
  const Var wide_k = PadHeads(k, key_heads, width - of_keys);
  const Var y = attention(wide_q, wide_k, PadHeads(v, key_heads, width - of_values), padded);
  if (y.empty() || width == of_values) return y;
  return flatten(slice(unflatten(y, 2, {options.heads, width}), 3, 0, of_values), 2);
}

// Attends to the keys and values of earlier runs as well.
Var DecodedAttention(nn::Decoding& decoding, Var q, Var k, Var v, const AttentionOptions& options) {
  nn::Trace& trace = nn::Trace::Of("attention");
  if (!options.mask.empty() || q.dim(1) != k.dim(1)) {
    return trace.Fail(InvalidArgument(
        "attention: while decoding, got causal attention of {} queries to {} keys{}, expected that of "
        "tokens to themselves, without a mask",
        q.dim(1), k.dim(1), options.mask.empty() ? "" : " with a mask"));
  }
  std::vector<Var> inputs = {q, decoding.Cached(k, "keys"), decoding.Cached(v, "values")};
  if (!options.bias.empty()) {
    const Shape& bias = options.bias.shape();
    if (bias.num_dims() != 4 || bias.dim(3) != decoding.context()) {
      return trace.Fail(InvalidArgument(
          "attention: while decoding, got the bias {}, expected (1 or B, 1 or heads, {}, {}), with the "
          "keys of the whole context; make it from relative_positions",
          bias.ToString(), q.dim(1), decoding.context()));
    }
    inputs.push_back(options.bias);
  }
  if (!options.sinks.empty()) inputs.push_back(options.sinks);
  inputs.push_back(decoding.start());
  return trace.Append("cached_attention", inputs,
                      {{"heads", options.heads},
                       {"key_heads", options.key_heads == 0 ? options.heads : options.key_heads},
                       {"window", options.window},
                       {"scale", options.scale},
                       {"soft_cap", options.soft_cap},
                       {"has_sinks", !options.sinks.empty()}});
}

}  // namespace

Var attention(Var qkv, int64_t heads, bool causal) {
  nn::Decoding* const decoding = nn::Decoding::Current();
  const bool is_packed = !qkv.empty() && qkv.shape().num_dims() == 3 && qkv.dim(2) % 3 == 0;
  if (decoding == nullptr || !causal || !is_packed) {
    return nn::append("attention", {qkv}, {{"heads", heads}, {"causal", causal}});
  }
  const std::vector<Var> parts = chunk(qkv, 3, 2);
  if (parts.size() != 3) return Var();  // the graph has the error
  AttentionOptions options;
  options.heads = heads;
  return DecodedAttention(*decoding, parts[0], parts[1], parts[2], options);
}

Var attention(Var q, Var k, Var v, const AttentionOptions& options) {
  nn::Trace& trace = nn::Trace::Of("attention");
  if (const int64_t key_heads = options.key_heads == 0 ? options.heads : options.key_heads;
      HasOtherValues(q, k, v, options.heads, key_heads)) {
    return nn::Checked("attention", q,
                       [&] { return WithOtherValues(q, k, v, options, key_heads); });
  }
  if (const Dims dims = BiasDims(q, k, options); !dims.empty()) {
    AttentionOptions whole = options;
    whole.bias = expand(options.bias, dims);
    return attention(q, k, v, whole);
  }
  if (!options.mask.empty() && options.mask.dtype() == DType::kBool) {
    return nn::Checked("attention", q, [&] { return WithKeyMask(q, k, v, options); });
  }
  if (!options.bias.empty() && options.bias.dtype() == DType::kBool) {
    return nn::Checked("attention", q, [&] { return WithSeenPairs(q, k, v, options); });
  }
  if (!(options.dropout >= 0.0 && options.dropout < 1.0)) {
    return trace.Fail(
        InvalidArgument("attention: dropout is {}, expected 0 <= dropout < 1", options.dropout));
  }
  nn::Decoding* const decoding = DecodingOf(options);
  if (decoding != nullptr && trace.status().ok()) {
    return DecodedAttention(*decoding, q, k, v, options);
  }
  ir::Attributes attributes = {
      {"heads", options.heads},
      {"key_heads", options.key_heads == 0 ? options.heads : options.key_heads},
      {"causal", options.causal},
      {"window", options.window},
      {"scale", options.scale},
      {"soft_cap", options.soft_cap},
      {"masked", !options.mask.empty()},
      {"biased", !options.bias.empty()},
      {"has_sinks", !options.sinks.empty()}};
  std::vector<Var> inputs = {q, k, v};
  if (!options.mask.empty()) inputs.push_back(options.mask);
  if (!options.bias.empty()) inputs.push_back(options.bias);
  if (!options.sinks.empty()) inputs.push_back(options.sinks);
  if (options.dropout == 0.0 || !trace.training()) {
    return trace.Append("dot_product_attention", inputs, std::move(attributes));
  }
  attributes.Set("probability", options.dropout);
  attributes.Set("stream", trace.NextStream());
  return trace.Append("dropout_attention", inputs, std::move(attributes));
}

RotaryOptions yarn_rotary(int64_t rotated, double theta, double factor, int64_t original_context,
                          double fast_turns, double slow_turns, bool rounds) {
  RotaryOptions options;
  options.theta = theta;
  options.rotated = rotated;
  options.scale = factor <= 1.0 ? 1.0 : 0.1 * std::log(factor) + 1.0;
  constexpr int64_t kMost = 1 << 16;  // of channels
  const bool is_valid = rotated <= kMost && theta > 1.0 && factor > 0.0 && original_context > 0 &&
                        fast_turns > 0.0 && slow_turns > 0.0;
  if (!is_valid) {  // no frequencies; rotary says so
    options.frequencies = {std::nan("")};
    return options;
  }
  const auto channels = static_cast<double>(rotated);
  const auto pair_of = [&](double turns) {  // that turns so often within the original context
    const double wavelength = static_cast<double>(original_context) / turns;
    return channels * std::log(wavelength / (2.0 * std::acos(-1.0))) / (2.0 * std::log(theta));
  };
  const double fastest = pair_of(fast_turns), slowest = pair_of(slow_turns);
  const double first = std::max(rounds ? std::floor(fastest) : fastest, 0.0);
  double last = std::min(rounds ? std::ceil(slowest) : slowest, channels - 1.0);
  if (first == last) last += 0.001;
  for (int64_t pair = 0; pair < rotated / 2; ++pair) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(pair) / channels);
    const double share = std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
    options.frequencies.push_back(frequency * (1.0 - share) + frequency / factor * share);
  }
  return options;
}

Var rotary(Var x, int64_t head_size, const RotaryOptions& options, Var positions) {
  std::vector<Var> inputs = {x};
  if (positions.empty() && nn::Decoding::Current() != nullptr) {
    positions = nn::Decoding::Current()->start();
  }
  if (!positions.empty()) inputs.push_back(positions);
  return nn::append("rotary", inputs,
                    {{"head_size", head_size},
                     {"theta", options.theta},
                     {"interleaved", options.interleaved},
                     {"factor", options.factor},
                     {"low_frequency", options.low_frequency},
                     {"high_frequency", options.high_frequency},
                     {"original_context", options.original_context},
                     {"frequencies", FrequenciesText(options.frequencies)},
                     {"rotated", options.rotated},
                     {"scale", options.scale}});
}

}  // namespace zg
