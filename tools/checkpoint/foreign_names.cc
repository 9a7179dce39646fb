#include "tools/checkpoint/foreign_names.h"

#include <fmt/format.h>

#include <charconv>

namespace zg::checkpoint_tool {
namespace {

constexpr bool kTransposed = true;
constexpr bool kOptional = true;
constexpr size_t kMaxDigits = 6;

// Hugging Face's GPT2Model. Its Conv1D has weights (in, out), our Linear (out, in). Everything else
// agrees: q, k and v side by side, heads contiguous in each.
ForeignFormat Gpt2() {
  ForeignFormat format;
  format.name = "gpt2";
  format.doc = "Hugging Face GPT-2, our //models/gpt";
  format.rules = {
      {"token_embedding.weight", "wte.weight", "V C"},
      {"position_embedding.weight", "wpe.weight", "T C"},
      {"blocks.*.norm1.weight", "h.*.ln_1.weight", "C"},
      {"blocks.*.norm1.bias", "h.*.ln_1.bias", "C"},
      {"blocks.*.attention.qkv.weight", "h.*.attn.c_attn.weight", "3C C", kTransposed},
      {"blocks.*.attention.qkv.bias", "h.*.attn.c_attn.bias", "3C"},
      {"blocks.*.attention.projection.weight", "h.*.attn.c_proj.weight", "C C", kTransposed},
      {"blocks.*.attention.projection.bias", "h.*.attn.c_proj.bias", "C"},
      {"blocks.*.norm2.weight", "h.*.ln_2.weight", "C"},
      {"blocks.*.norm2.bias", "h.*.ln_2.bias", "C"},
      {"blocks.*.mlp.expand.weight", "h.*.mlp.c_fc.weight", "4C C", kTransposed},
      {"blocks.*.mlp.expand.bias", "h.*.mlp.c_fc.bias", "4C"},
      {"blocks.*.mlp.contract.weight", "h.*.mlp.c_proj.weight", "C 4C", kTransposed},
      {"blocks.*.mlp.contract.bias", "h.*.mlp.c_proj.bias", "C"},
      {"final_norm.weight", "ln_f.weight", "C"},
      {"final_norm.bias", "ln_f.bias", "C"},
  };
  format.prefix = "transformer.";
  format.skipped = {"h.*.attn.bias", "h.*.attn.masked_bias"};
  format.tied_copy = "lm_head.weight";
  format.tied_to = "token_embedding.weight";
  format.has_config = true;
  format.rows = "V";
  return format;
}

// torch.nn.Sequential of Linear and modules without parameters; our nn::Sequential "layers".
ForeignFormat Sequential() {
  ForeignFormat format;
  format.name = "sequential";
  format.doc = "PyTorch Sequential of Linear layers, our //models/recipe";
  format.rules = {
      {"layers.*.weight", "*.weight", "o i"},
      {"layers.*.bias", "*.bias", "o", !kTransposed, kOptional},
  };
  format.has_gaps = true;
  return format;
}

// torch.nn.Sequential(Linear, ReLU, Linear).
ForeignFormat Classifier() {
  ForeignFormat format;
  format.name = "classifier";
  format.doc = "PyTorch Sequential(Linear, ReLU, Linear), our //models/classifier";
  format.rules = {
      {"hidden.weight", "0.weight", "H I"},
      {"hidden.bias", "0.bias", "H"},
      {"output.weight", "2.weight", "K H"},
      {"output.bias", "2.bias", "K"},
  };
  return format;
}

}  // namespace

const std::vector<ForeignFormat>& ForeignFormats() {
  static const auto* const formats =
      new std::vector<ForeignFormat>{Gpt2(), Sequential(), Classifier()};
  return *formats;
}

StatusOr<const ForeignFormat*> FindForeignFormat(std::string_view name) {
  std::string names;
  for (const ForeignFormat& format : ForeignFormats()) {
    if (format.name == name) return &format;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return InvalidArgument("format: got '{}', expected one of {}", name, names);
}

std::optional<int> MatchPattern(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return name == pattern ? std::optional(-1) : std::nullopt;
  const std::string_view tail = pattern.substr(star + 1);
  if (name.size() <= star + tail.size() || name.substr(0, star) != pattern.substr(0, star) ||
      name.substr(name.size() - tail.size()) != tail) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(star, name.size() - tail.size() - star);
  if (digits.size() > kMaxDigits || (digits[0] == '0' && digits.size() > 1)) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
  if (error != std::errc() || end != digits.end() || number < 0) return std::nullopt;
  return number;
}

std::string FillPattern(std::string_view pattern, int number) {
  std::string name(pattern);
  const size_t star = name.find('*');
  return star == name.npos ? name : name.replace(star, 1, fmt::format("{}", number));
}

}  // namespace zg::checkpoint_tool
