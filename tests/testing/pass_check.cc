#include "tests/testing/pass_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/base/random.h"
#include "framework/ir/attribute_parser.h"
#include "framework/ir/parser.h"
#include "framework/ir/printer.h"
#include "framework/ir/text_cursor.h"
#include "framework/passes/insert_collectives.h"
#include "tests/testing/lines.h"
#include "tests/testing/optimizer_formulas.h"
#include "tests/testing/ranked_run.h"

namespace zg::testing {
namespace {

// 2^6: f16 gradients of tests stay finite.
constexpr double kLossScale = 64;
constexpr double kInitialLossScaleExponent = 16;
// Times the scale: below that, f16 has too few digits without it.
constexpr double kSmallestF16Gradient = 0.05;

bool HasPrefix(const std::string& key, std::string_view prefix) { return StartsWith(key, prefix); }

double MaxAbs(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// Where two values differ by more than `tolerance` of the largest element, or of `smallest_scale`;
// with 0, by anything. A
// gradient may be there in 16 bits or as the same number in f32.
// With `keeps_finite`, after has a number of its own where before has none.
std::string Difference(const HeapTensor& before, const HeapTensor& after, double tolerance,
                       double smallest_scale = 1e-3, bool keeps_finite = false) {
  if (before.type().shape != after.type().shape) {
    return fmt::format("{} before, {} after", before.type().ToString(), after.type().ToString());
  }
  if (tolerance == 0 && SameBits(before, after)) return "";
  const std::vector<double> a = before.ToDoubles();
  const std::vector<double> b = after.ToDoubles();
  const double limit = tolerance * std::max(MaxAbs(a), smallest_scale);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (keeps_finite && !std::isfinite(a[i])) continue;
    // More than f16 holds.
    if (tolerance > 0 && std::abs(a[i]) > 65504 && std::isinf(b[i])) continue;
    const bool is_close = a[i] == b[i] || std::abs(a[i] - b[i]) <= limit;
    if (is_close && (tolerance > 0 || std::signbit(a[i]) == std::signbit(b[i]))) continue;
    return fmt::format("element {}: {} before, {} after", i, a[i], b[i]);
  }
  return "";
}

class Checker {
 public:
  Checker(std::string_view pass, const ir::Graph& before, const ir::Graph& after,
          const PassCheckOptions& options)
      : pass_(pass), before_(before), after_(after), options_(options) {
    run_.seed = options.seed;
    const double exponent = std::log2(kLossScale) - kInitialLossScaleExponent;
    run_.tensors["loss_scaler"] =
        HeapTensor::FromDoubles({DType::kF32, Shape{4}}, {exponent, 0, 0, 0});
  }

  std::string Check() {
    if (options_.is_fragment) {
      const std::string failure = WatchUnread();
      if (!failure.empty()) return failure;
    }
    if (Is("build-backward")) return CheckBuildBackward();
    if (Is("accumulate-results")) return CheckAccumulateResults();
    if (Is("append-update")) return CheckAppendUpdate();
    if (Is("scale-loss")) return CheckScaleLoss();
    if (Is("clip-gradients")) return CheckClipGradients();
    if (Is("master-weights") && before_.micro_batches() > 1) return CheckOtherSums(0.01);
    if (Is("accumulate-gradients") && pass_.find("\"step\"") != std::string_view::npos) {
      return CheckOtherSums(HasHalf(before_) ? 0.01 : 1e-4);
    }
    const std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    if (Is("infer-sbp") && !IsPlaced(before_)) return CheckInferSbp();
    if (Is("average-eval-results")) return CheckAverages();
    double tolerance = 0;
    if (Is("mixed-precision")) {
      tolerance = 0.06;
      smallest_scale_ = 0.1;  // of sums that cancel
    }
    return CompareAll(tolerance, [](const std::string&) { return true; });
  }

 private:
  bool Is(std::string_view name) const {
    return pass_.substr(0, std::min(pass_.find_first_of("(, "), pass_.size())) == name;
  }

  static bool IsPlaced(const ir::Graph& graph) {
    for (const ir::Node* node : graph.AllNodes()) {
      for (const ir::Value* output : node->outputs) {
        if (!output->sbp.empty()) return true;
      }
    }
    return false;
  }

  static bool HasHalf(const ir::Graph& graph) {
    for (const ir::Node* node : graph.AllNodes()) {
      for (const ir::Value* output : node->outputs) {
        if (SizeOf(output->type.dtype) == 2) return true;
      }
    }
    return false;
  }

  // What stands in parentheses behind the pass's name.
  ir::Attributes Options() const {
    const size_t begin = std::min(pass_.find_first_of("(, "), pass_.size());
    ir::TextCursor cursor(pass_.substr(begin), "options");
    const StatusOr<ir::Attributes> options = ir::ParseAttributes(&cursor);
    return options.ok() ? *options : ir::Attributes();
  }

  std::string WatchUnread() {
    for (const ir::Node* node : before_.AllNodes()) {
      for (const ir::Value* output : node->outputs) {
        if (!output->users.empty() || node->inputs.empty()) continue;
        const ir::Value* same = after_.FindValue(output->name);
        if (same != nullptr && same->type.dtype == output->type.dtype) {
          run_.watched.insert(output->name);
        } else if (!Is("eliminate-dead-nodes")) {
          return fmt::format("%{}, which nobody reads, is gone\n", output->name);
        }
      }
    }
    return "";
  }

  std::string RunBoth() {
    StatusOr<Observations> before = RunOnRanks(before_, run_);
    if (!before.ok()) return "before: " + before.status().message() + "\n";
    StatusOr<Observations> after = RunOnRanks(after_, run_);
    if (!after.ok()) return "after: " + after.status().message() + "\n";
    seen_before_ = std::move(*before);
    seen_after_ = std::move(*after);
    const std::string failure = CheckCopies();
    if (!failure.empty() || options_.is_fragment) return failure;
    return CheckWithoutAliases();
  }

  // Tensors in 16 bits that hold another's values do so at the end of every step.
  std::string CheckCopies() const {
    for (const ir::StoredTensor& tensor : after_.tensors()) {
      if (tensor.copy_of.empty()) continue;
      const std::vector<Observation>& copies = seen_after_.at("tensor " + tensor.name);
      const std::vector<Observation>& originals = seen_after_.at("tensor " + tensor.copy_of);
      for (size_t step = 0; step < copies.size(); ++step) {
        const HeapTensor rounded =
            HeapTensor::FromDoubles(tensor.type, originals[step].logical.ToDoubles());
        const std::string difference = Difference(rounded, copies[step].logical, 0);
        if (difference.empty()) continue;
        return fmt::format("tensor {} is no copy of {}, step {}: {}\n", tensor.name, tensor.copy_of,
                           step, difference);
      }
    }
    return "";
  }

  // What a node overwrites must not matter to the others.
  std::string CheckWithoutAliases() const {
    RunOptions run = run_;
    run.in_place = false;
    const StatusOr<Observations> seen = RunOnRanks(after_, run);
    if (!seen.ok()) return "after, not in place: " + seen.status().message() + "\n";
    for (const auto& [key, in_place] : seen_after_) {
      if (HasPrefix(key, "variable ") && in_place[0].placement.is_partial()) continue;
      const std::vector<Observation>& elsewhere = seen->at(key);
      for (size_t i = 0; i < in_place.size(); ++i) {
        const std::string difference = Difference(elsewhere[i].logical, in_place[i].logical, 0);
        if (difference.empty()) continue;
        return fmt::format("{} depends on who overwrites what, time {}: {}\n", key, i, difference);
      }
    }
    return "";
  }

  std::string Compare(const std::string& key, double tolerance) const {
    const std::vector<Observation>& a = seen_before_.at(key);
    const std::vector<Observation>& b = seen_after_.at(key);
    if (a.size() != b.size()) {
      return fmt::format("{}: seen {} times before, {} times after\n", key, a.size(), b.size());
    }
    const bool keeps_finite = pass_.find("keep_finite=true") != pass_.npos;
    for (size_t i = 0; i < a.size(); ++i) {
      const std::string difference =
          Difference(a[i].logical, b[i].logical, tolerance, smallest_scale_, keeps_finite);
      if (!difference.empty()) return fmt::format("{}, time {}: {}\n", key, i, difference);
    }
    return "";
  }

  // Outputs and tensors may not get lost; values that bridge sections come and go.
  template <typename Wanted>
  std::string CompareAll(double tolerance, const Wanted& wanted) const {
    int compared = 0;
    for (const auto& [key, observations] : seen_before_) {
      if (!wanted(key)) continue;
      if (seen_after_.count(key) == 0) {
        if (HasPrefix(key, "variable ") || HasPrefix(key, "gradient ")) continue;
        return fmt::format("{} is gone\n", key);
      }
      // A variable may get another shape in a bucket of the same name, and a reduction may leave
      // anything in one of full size.
      const Observation& after = seen_after_.at(key)[0];
      if (HasPrefix(key, "variable ") && (observations[0].logical.type() != after.logical.type() ||
                                          after.placement.is_partial())) {
        continue;
      }
      const std::string failure = Compare(key, tolerance);
      if (!failure.empty()) return failure;
      ++compared;
    }
    return compared == 0 ? "there is nothing to compare: no output, no variable, no value\n" : "";
  }

  // A loss of an eval section is divided by the ranks, whose terms will be summed.
  std::string CheckAverages() const {
    std::string failure =
        CompareAll(0, [](const std::string& key) { return !HasPrefix(key, "eval "); });
    if (StartsWith(failure, "there is nothing")) failure = "";
    for (const ir::Node* node : before_.AllNodes()) {
      if (!failure.empty()) return failure;
      if (node->section->kind != ir::SectionKind::kEval || node->op->name != "output") continue;
      const std::string key =
          fmt::format("eval {} output {}", node->section->name, node->attributes.String("name"));
      if (seen_after_.count(key) == 0) return fmt::format("{} is gone\n", key);
      const bool is_loss =
          node->inputs[0]->type == TensorType{DType::kF32, Shape{}} && ReadsMicroBatch(*node);
      const std::vector<Observation>& before = seen_before_.at(key);
      for (size_t i = 0; i < before.size() && failure.empty(); ++i) {
        std::vector<double> values = before[i].logical.ToDoubles();
        for (double& value : values) value /= is_loss ? before_.mesh().num_ranks() : 1;
        const HeapTensor expected = HeapTensor::FromDoubles(before[i].logical.type(), values);
        failure = Difference(expected, seen_after_.at(key)[i].logical, is_loss ? 1e-6 : 0);
        if (!failure.empty()) failure = fmt::format("{}: {}\n", key, failure);
      }
    }
    return failure;
  }

  static bool ReadsMicroBatch(const ir::Node& node) {
    if (node.op->traits.kind == ir::OpKind::kInput)
      return !node.attributes.Sbp("placement").is_broadcast();
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [](const ir::Value* input) { return ReadsMicroBatch(*input->producer); });
  }

  // Programs of one rank and of several: what the micro-batches of a rank give one after the other,
  // the ranks give side by side.
  std::string CheckInferSbp() const {
    const double tolerance = SumsRanksInBackward() ? 1e-4 : 0;
    std::string failure = CompareAll(tolerance, [](const std::string& key) {
      return !HasPrefix(key, "forward ") && !HasPrefix(key, "eval ") && !HasPrefix(key, "value ");
    });
    if (StartsWith(failure, "there is nothing")) failure = "";
    for (const auto& [key, sequential] : seen_before_) {
      if (!failure.empty()) return failure;
      if (!HasPrefix(key, "forward ") && !HasPrefix(key, "eval ") && !HasPrefix(key, "value ")) {
        continue;
      }
      const auto found = seen_after_.find(key);
      if (found == seen_after_.end()) return fmt::format("{} is gone\n", key);
      failure = CompareParts(key, sequential, found->second);
    }
    return failure;
  }

  static std::string CompareParts(const std::string& key,
                                  const std::vector<Observation>& sequential,
                                  const std::vector<Observation>& parallel) {
    size_t next = 0;
    for (const Observation& observation : parallel) {
      for (const HeapTensor& part : observation.parts) {
        if (next == sequential.size()) break;
        const HeapTensor& expected = sequential[next++].logical;
        // A broadcast value is the same for all micro-batches, or a sum over them.
        if (observation.placement.is_broadcast() && observation.parts.size() > 1) continue;
        const std::string difference = Difference(expected, part, 0);
        if (!difference.empty()) return fmt::format("{}, part {}: {}\n", key, next - 1, difference);
      }
    }
    if (next == sequential.size()) return "";
    return fmt::format("{}: {} micro-batches before, {} after\n", key, sequential.size(), next);
  }

  // Whether something but an accumulator or the update needs a sum over ranks.
  bool SumsRanksInBackward() const {
    StatusOr<ir::Graph> graph = ir::Parse(ir::Print(after_));
    if (!graph.ok() || !InsertCollectives().Run(*graph).ok()) return false;
    for (const ir::Node* node : graph->AllNodes()) {
      const bool is_sum = node->op->name == "all_reduce" || node->op->name == "reduce_scatter";
      if (is_sum && node->inputs.size() == 1 && node->section->kind != ir::SectionKind::kUpdate) {
        return true;
      }
    }
    return false;
  }

  double MeanOf(const Observations& seen, const std::string& key, int step) const {
    const auto found = seen.find(key);
    if (found == seen.end()) return std::nan("");
    const size_t per_step = found->second.size() / run_.steps;
    double sum = 0;
    for (size_t i = 0; i < per_step; ++i) {
      sum += found->second[step * per_step + i].logical.ToDoubles()[0];
    }
    return sum / static_cast<double>(per_step);
  }

  // A scalar of every micro-batch is handed out as their mean. What buffers hold has the rounding
  // of a mean, and later steps may read it.
  std::string CheckAccumulateResults() {
    std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    constexpr double kTolerance = 1e-5;
    failure = CompareAll(kTolerance, [&](const std::string& key) {
      return !HasPrefix(key, "forward ") || seen_after_.count(key) != 0;
    });
    if (!failure.empty() && !StartsWith(failure, "there is nothing")) return failure;
    for (const auto& [key, observations] : seen_before_) {
      if (!HasPrefix(key, "forward ") || seen_after_.count(key) != 0) continue;
      const std::string name = key.substr(std::string("forward ").size());
      if (seen_after_.count(name) == 0) return fmt::format("{} is gone\n", key);
      for (int step = 0; step < run_.steps; ++step) {
        const double before = MeanOf(seen_before_, key, step);
        const double after = MeanOf(seen_after_, name, step);
        if (std::isnan(before) && std::isnan(after)) continue;
        if (std::abs(before - after) <= kTolerance * std::max(1.0, std::abs(before))) continue;
        return fmt::format("the mean of {} is {} before, {} after\n", name, before, after);
      }
    }
    return "";
  }

  std::string CheckBuildBackward() {
    run_.steps = 1;
    std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    failure = CompareAll(
        0, [](const std::string& key) { return !HasPrefix(key, "forward output loss"); });
    if (!failure.empty() && !StartsWith(failure, "there is nothing")) return failure;
    double before = MeanOf(seen_before_, "forward output loss", 0);
    if (seen_before_.count("forward output loss_weight") != 0) {
      before /= MeanOf(seen_before_, "forward output loss_weight", 0);
    }
    const double after = MeanOf(seen_after_, "output loss", 0);
    if (!(std::abs(before - after) <= 1e-5 * std::max(1.0, std::abs(before)))) {
      return fmt::format("the mean loss is {} before, {} after\n", before, after);
    }
    for (const ir::StoredTensor& tensor : before_.tensors()) {
      if (!ir::IsTrainableParameter(*tensor.storage) ||
          seen_after_.count("gradient " + tensor.name) != 0) {
        continue;
      }
      for (const ir::Node* node : before_.section(ir::SectionKind::kForward)->nodes) {
        if (node->op->name == "output" && node->attributes.String("name") == "loss" &&
            Reads(*node, tensor.storage)) {
          return fmt::format("parameter {} has no gradient\n", tensor.name);
        }
      }
    }
    if (HasHalf(after_)) return "";  // too coarse for differences
    for (const ir::StoredTensor& tensor : before_.tensors()) {
      if (seen_after_.count("gradient " + tensor.name) == 0) continue;
      failure = CheckGradient(tensor);
      if (!failure.empty()) return failure;
    }
    return "";
  }

  static bool Reads(const ir::Node& node, const ir::Value* value) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* input) {
      return input == value || Reads(*input->producer, value);
    });
  }

  // Along a random direction; with two steps, and to both sides, which tell where the loss is too
  // crooked for them.
  std::string CheckGradient(const ir::StoredTensor& tensor) {
    const std::vector<double> gradient =
        seen_after_.at("gradient " + tensor.name)[0].logical.ToDoubles();
    std::vector<double> direction(gradient.size());
    double expected = 0;
    for (size_t i = 0; i < direction.size(); ++i) {
      direction[i] = UniformAt({options_.seed, 77}, i) < 0.5 ? -1 : 1;
      expected += gradient[i] * direction[i];
    }
    const StatusOr<double> middle = MeanLossAt(tensor, direction, 0.0);
    if (!middle.ok()) return middle.status().message() + "\n";
    double slopes[2] = {};
    double bend = 0;
    for (int i : {0, 1}) {
      const double step = i == 0 ? 1.0 / 256 : 1.0 / 1024;
      const StatusOr<double> up = MeanLossAt(tensor, direction, step);
      if (!up.ok()) return up.status().message() + "\n";
      const StatusOr<double> down = MeanLossAt(tensor, direction, -step);
      if (!down.ok()) return down.status().message() + "\n";
      slopes[i] = (*up - *down) / (2 * step);
      bend = ((*up - *middle) - (*middle - *down)) / step;
    }
    // A loss has rounding errors.
    const double noise = 1e-6 * MeanOf(seen_before_, "forward output loss", 0) * 1024;
    const double limit =
        0.03 * std::max({std::abs(slopes[1]), std::abs(expected), 0.05}) + std::abs(noise);
    if (std::abs(slopes[1] - expected) <= limit) return "";
    if (std::abs(slopes[1] - slopes[0]) > limit / 4 || std::abs(bend) > limit / 4) return "";
    return fmt::format("gradient {}: {} along a direction, the losses say {}\n", tensor.name,
                       expected, slopes[1]);
  }

  StatusOr<double> MeanLossAt(const ir::StoredTensor& tensor, const std::vector<double>& direction,
                              double step) const {
    std::vector<double> moved = InitialTensor(before_, tensor, run_).ToDoubles();
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    RunOptions run = run_;
    run.watched.clear();
    run.tensors[tensor.name] = HeapTensor::FromDoubles(tensor.type, moved);
    ZG_ASSIGN_OR_RETURN(const Observations seen, RunOnRanks(before_, run));
    return MeanOf(seen, "forward output loss", 0);
  }

  std::string CheckAppendUpdate() {
    std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    for (const auto& [key, observations] : seen_before_) {
      if (HasPrefix(key, "output ") || HasPrefix(key, "gradient ")) {
        if (seen_after_.count(key) == 0) return fmt::format("{} is gone\n", key);
        // Only in the first step do both have the same parameters.
        const std::string difference =
            Difference(observations[0].logical, seen_after_.at(key)[0].logical, 0);
        if (!difference.empty()) return fmt::format("{}: {}\n", key, difference);
      }
    }
    for (const ir::Node* node : after_.AllNodes()) {
      if (node->op->traits.kind != ir::OpKind::kUpdate) continue;
      for (const ir::StoredTensor& tensor : after_.tensors()) {
        if (tensor.storage != node->inputs[0]) continue;
        failure = CheckUpdate(tensor);
        if (!failure.empty()) return failure;
      }
    }
    return "";
  }

  // The optimizer's formulas in double precision, from the gradients that were seen.
  std::string CheckUpdate(const ir::StoredTensor& tensor) const {
    OptimizerFormulas formulas(Options(), tensor.type.shape,
                               InitialTensor(after_, tensor, run_).ToDoubles());
    for (int step = 1; step <= run_.steps; ++step) {
      const std::vector<double> g =
          seen_after_.at("gradient " + tensor.name)[step - 1].logical.ToDoubles();
      const HeapTensor& actual = seen_after_.at("tensor " + tensor.name)[step - 1].logical;
      const std::vector<double>& p = formulas.Update(g, actual.ToDoubles());
      const HeapTensor expected = HeapTensor::FromDoubles(tensor.type, p);
      const std::string difference = Difference(expected, actual, 1e-5);
      if (!difference.empty()) {
        return fmt::format("tensor {}, step {}, formulas before, program after: {}\n", tensor.name,
                           step, difference);
      }
    }
    return "";
  }

  // The first step reads the same parameters, so that its outputs have the same bits; gradients are
  // summed or rounded in another way.
  std::string CheckOtherSums(double tolerance) {
    run_.steps = 1;
    std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    failure = CompareAll(0, [](const std::string& key) { return HasPrefix(key, "output "); });
    if (!failure.empty() && !StartsWith(failure, "there is nothing")) return failure;
    for (const auto& [key, observations] : seen_before_) {
      if (!HasPrefix(key, "gradient ")) continue;
      smallest_scale_ = std::max(smallest_scale_, MaxAbs(observations[0].logical.ToDoubles()));
    }
    // Adam makes full steps of gradients that weight decay cancels all but for their rounding, and
    // so do other optimizers that divide by roots of squares. States follow squares.
    return CompareAll(tolerance, [&](const std::string& key) {
      if (HasPrefix(key, "gradient ")) return true;
      if (!HasPrefix(key, "tensor ")) return false;
      const std::string name = key.substr(7);
      for (const char* state : {".exp_avg", ".row_var", ".col_var", ".variance"}) {
        const std::string suffix = state;
        if (before_.FindTensor(name + suffix) != nullptr) return false;
        const bool is_factor =
            suffix != ".exp_avg" && name.size() > suffix.size() &&
            name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
        if (is_factor) return false;
      }
      return true;
    });
  }

  std::string CheckScaleLoss() {
    run_.steps = 1;
    std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    failure = CompareAll(0, [](const std::string& key) {
      return !HasPrefix(key, "gradient ") && !HasPrefix(key, "value ") &&
             !HasPrefix(key, "variable ");
    });
    if (!failure.empty()) return failure;
    for (const auto& [key, observations] : seen_before_) {
      if (!HasPrefix(key, "gradient ")) continue;
      std::vector<double> scaled = observations[0].logical.ToDoubles();
      for (double& value : scaled) value *= kLossScale;
      const HeapTensor expected =
          HeapTensor::FromDoubles({DType::kF32, observations[0].logical.type().shape}, scaled);
      if (seen_after_.count(key) == 0) return fmt::format("{} is gone\n", key);
      const std::string difference =
          Difference(expected, seen_after_.at(key)[0].logical, 0.01, kSmallestF16Gradient);
      if (!difference.empty())
        return fmt::format("{}, {} times: {}\n", key, kLossScale, difference);
    }
    return "";
  }

  std::string CheckClipGradients() {
    run_.steps = 1;
    std::string failure = RunBoth();
    if (!failure.empty()) return failure;
    const double scale = after_.FindTensor("loss_scaler") != nullptr ? kLossScale : 1;
    double squares = 0;
    for (const auto& [key, observations] : seen_before_) {
      if (!HasPrefix(key, "gradient ")) continue;
      for (double g : observations[0].logical.ToDoubles()) squares += g / scale * g / scale;
    }
    const auto weight_output = seen_after_.find("output loss_weight");
    const bool is_weighted = weight_output != seen_after_.end();
    const double weight = is_weighted ? weight_output->second[0].logical.ToDoubles()[0] : 1;
    const double norm = std::sqrt(squares) / weight;
    const ir::Attributes options = Options();
    const double max_norm = options.Has("max_norm") ? options.Float("max_norm") : 1.0;
    const bool takes_norm = !is_weighted || max_norm > 0;
    if (takes_norm != (seen_after_.count("output grad_norm") != 0)) {
      return fmt::format("there is {} output grad_norm\n", takes_norm ? "no" : "an");
    }
    const double got =
        takes_norm ? seen_after_.at("output grad_norm")[0].logical.ToDoubles()[0] : norm;
    if (!(std::abs(got - norm) <= 1e-5 * norm)) {
      return fmt::format("the norm of the gradients is {}, the output {}\n", norm, got);
    }
    // As torch.nn.utils.clip_grad_norm_ does.
    const double factor = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
    run_.gradient_factor = factor / scale / weight;
    StatusOr<Observations> before = RunOnRanks(before_, run_);
    if (!before.ok()) return before.status().message() + "\n";
    seen_before_ = std::move(*before);
    // One update is done and none left out.
    const double exponent = std::log2(kLossScale) - kInitialLossScaleExponent;
    std::string failure_of_state = CheckState("loss_scaler", {exponent, 1, 1, 0});
    if (failure_of_state.empty()) failure_of_state = CheckState("update_counter", {1, 0});
    if (!failure_of_state.empty()) return failure_of_state;
    return CompareAll(run_.gradient_factor == 1.0 ? 0 : 1e-5, [](const std::string& key) {
      return key != "tensor loss_scaler" && !HasPrefix(key, "value ");
    });
  }

  std::string CheckState(const std::string& name, const std::vector<double>& expected) const {
    const auto found = seen_after_.find("tensor " + name);
    if (found == seen_after_.end()) return "";
    const HeapTensor& got = found->second.back().logical;
    const std::string difference =
        Difference(HeapTensor::FromDoubles(got.type(), expected), got, 0);
    return difference.empty() ? "" : fmt::format("tensor {}: {}\n", name, difference);
  }

  const std::string_view pass_;
  const ir::Graph& before_;
  const ir::Graph& after_;
  const PassCheckOptions options_;
  RunOptions run_;
  double smallest_scale_ = 1e-3;  // of what differences are relative to
  Observations seen_before_;
  Observations seen_after_;
};

}  // namespace

std::string CheckPass(std::string_view pass, const ir::Graph& before, const ir::Graph& after,
                      const PassCheckOptions& options) {
  return Checker(pass, before, after, options).Check();
}

}  // namespace zg::testing
