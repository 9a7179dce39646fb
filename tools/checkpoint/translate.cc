#include "tools/checkpoint/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "framework/base/format.h"
#include "framework/base/problems.h"
#include "framework/io/float_values.h"
#include "framework/io/safetensors_header.h"

namespace zg::checkpoint_tool {
namespace {

constexpr int kWholeFile = -1;  // scope of a letter's size that is not within one number

struct DimRule {
  int64_t factor = 1;
  char letter = 0;
};

// "3C C" -> {3, C}, {1, C}
std::vector<DimRule> ParseShape(std::string_view text) {
  std::vector<DimRule> dims(1);
  int64_t factor = 0;
  for (const char c : text) {
    if (c == ' ') {
      dims.emplace_back();
      factor = 0;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      factor = 10 * factor + (c - '0');
    } else {
      dims.back() = {std::max<int64_t>(factor, 1), c};
    }
  }
  return dims;
}

bool AreSameBytes(const Weights::Tensor& a, const Weights::Tensor& b) {
  return a.entry->dtype == b.entry->dtype && a.entry->shape == b.entry->shape &&
         (a.entry->size_bytes() == 0 || std::memcmp(a.data, b.data, a.entry->size_bytes()) == 0);
}

class Translator {
 public:
  Translator(const ForeignFormat& format, Side from, const Weights& weights)
      : format_(format),
        from_(from),
        to_(from == Side::kOurs ? Side::kTheirs : Side::kOurs),
        weights_(weights) {}

  StatusOr<Translation> Run() {
    for (const auto& [name, tensor] : weights_.tensors()) {
      if (!tensor.is_optimizer_state) Place(name, tensor);
    }
    UseTiedCopy();
    FindMissing();
    for (size_t rule = 0; rule < format_.rules.size(); ++rule) {
      for (const auto& [key, placed] : placed_) {
        if (key.first == rule) Add(format_.rules[rule], key.second, placed);
      }
    }
    ZG_RETURN_IF_ERROR(problems_.AsStatus(
        weights_.path(),
        fmt::format("the tensors are not those of {} ({})",
                    from_ == Side::kOurs ? "a model of ours for this format" : "this format",
                    format_.name),
        "give the weights of such a model, or another format"));
    for (const auto& [letter, size] : sizes_) {
      if (letter.second == kWholeFile) result_.sizes[letter.first] = size;
    }
    result_.count = static_cast<int64_t>(numbers_.size());
    return std::move(result_);
  }

 private:
  struct Placed {
    std::string name;  // in the file
    Weights::Tensor tensor;
  };

  // Finds the rule for a tensor of the file.
  void Place(const std::string& name, const Weights::Tensor& tensor) {
    std::string_view bare = name;
    if (from_ == Side::kTheirs) {
      if (!format_.tied_copy.empty() && name == format_.tied_copy) {
        tied_copy_ = {name, tensor};
        return;
      }
      if (bare.substr(0, format_.prefix.size()) == format_.prefix) {
        bare.remove_prefix(format_.prefix.size());
      }
      for (const std::string_view pattern : format_.skipped) {
        if (!MatchPattern(pattern, bare)) continue;
        result_.skipped.push_back(name);
        return;
      }
    }
    for (size_t rule = 0; rule < format_.rules.size(); ++rule) {
      const std::optional<int> number = MatchPattern(NameOn(from_, format_.rules[rule]), bare);
      if (!number) continue;
      const auto [place, is_new] = placed_.try_emplace({rule, *number}, Placed{name, tensor});
      if (!is_new) problems_.Add("{} and {} are one tensor", place->second.name, name);
      if (*number >= 0) numbers_.insert(*number);
      return;
    }
    problems_.Add("{}: is not expected", QuoteForMessage(name));
  }

  // The copy replaces the tensor, or must be equal to it.
  void UseTiedCopy() {
    if (!tied_copy_) return;
    for (size_t rule = 0; rule < format_.rules.size(); ++rule) {
      if (format_.rules[rule].ours != format_.tied_to) continue;
      const auto [place, is_new] = placed_.try_emplace({rule, -1}, *tied_copy_);
      if (is_new) return;
      if (AreSameBytes(place->second.tensor, tied_copy_->tensor)) {
        result_.skipped.push_back(tied_copy_->name);
      } else {
        problems_.Add("{}: differs from {}, but our model has one tensor for both",
                      tied_copy_->name, place->second.name);
      }
    }
  }

  void FindMissing() {
    // Numbers start at 0. A number that is far too large must not ask for a million tensors.
    std::set<int> expected = numbers_;
    if (!format_.has_gaps && !numbers_.empty()) {
      const int last = std::min(*numbers_.rbegin(), static_cast<int>(weights_.tensors().size()));
      for (int number = 0; number < last; ++number) expected.insert(number);
    }
    if (expected.empty()) expected.insert(0);
    for (size_t rule = 0; rule < format_.rules.size(); ++rule) {
      const std::string_view pattern = NameOn(from_, format_.rules[rule]);
      if (format_.rules[rule].is_optional) continue;
      const bool is_numbered = pattern.find('*') != pattern.npos;
      for (const int number : is_numbered ? expected : std::set<int>{-1}) {
        if (placed_.count({rule, number}) != 0) continue;
        problems_.Add("{}: is missing", FillPattern(pattern, number));
      }
    }
  }

  // The size of a letter, from the first dim that shows it.
  int64_t SizeOf(const DimRule& dim, int number, int64_t got) {
    const bool is_local = std::islower(static_cast<unsigned char>(dim.letter)) != 0;
    const int scope = is_local ? number : kWholeFile;
    return dim.factor * sizes_.try_emplace({dim.letter, scope}, got / dim.factor).first->second;
  }

  void Add(const NameRule& rule, int number, const Placed& placed) {
    const SafetensorsEntry& entry = *placed.tensor.entry;
    if (!IsFloatValue(entry.dtype)) {
      problems_.Add("{}: got {}, expected F32, F16 or BF16", placed.name,
                    SafetensorsDTypeName(entry.dtype));
      return;
    }
    const std::vector<DimRule> dims = ParseShape(rule.shape);
    // Swaps the dims between their order and ours.
    const auto turned = [&](std::vector<int64_t> shape, Side side) {
      if (rule.is_transposed && side == Side::kTheirs) std::reverse(shape.begin(), shape.end());
      return shape;
    };
    if (entry.shape.size() != dims.size()) {
      problems_.Add("{}: got the shape [{}], expected {}", placed.name, fmt::join(entry.shape, ","),
                    Counted(dims.size(), "dim"));
      return;
    }
    const std::vector<int64_t> got = turned(entry.shape, from_);
    std::vector<int64_t> expected;
    for (size_t i = 0; i < dims.size(); ++i) expected.push_back(SizeOf(dims[i], number, got[i]));
    if (got != expected) {
      problems_.Add("{}: got the shape [{}], expected [{}]", placed.name,
                    fmt::join(entry.shape, ","), fmt::join(turned(expected, from_), ","));
      return;
    }
    result_.tensors.push_back(
        {placed.tensor, FillPattern(NameOn(to_, rule), number), turned(got, to_), &rule});
  }

  const ForeignFormat& format_;
  const Side from_;
  const Side to_;
  const Weights& weights_;
  std::map<std::pair<size_t, int>, Placed> placed_;  // by the rule's index and the number
  std::set<int> numbers_;
  std::optional<Placed> tied_copy_;
  std::map<std::pair<char, int>, int64_t> sizes_;  // by the letter and, if lower-case, the number
  Problems problems_;
  Translation result_;
};

}  // namespace

StatusOr<Translation> Translate(const ForeignFormat& format, Side from, const Weights& weights) {
  return Translator(format, from, weights).Run();
}

}  // namespace zg::checkpoint_tool
